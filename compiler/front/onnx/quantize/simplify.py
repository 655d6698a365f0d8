"""Rewrites of a float model that keep its meaning and leave fewer operators to quantise.

Each pass removes nodes, or replaces one by one of another kind that no pass produces again.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen

from ....errors import ModelError
from ....graph.ir import Array
from ....pipeline.passes import Pass, Pipeline
from ..node import OnnxNode
from .dense import LowerDense, MergeTransposes, NormalizeDense
from .evaluate import Evaluator
from .find_hard_sigmoid import FindHardSigmoid
from .fold_affine import FoldAffine
from .functions import PAIRS
from .groups import FlattenGroups, LastSoftmax, MergeReshapes, RowsToImages
from .masks import DropNanGuards, MaskByAdd
from .merge_branches import MergeBranches
from .model import FloatModel

__all__ = ["simplify"]

IDENTITIES = ("Identity", "Dropout")
KEEPS = ("Cast", "Expand", "Reshape")
"""Operators whose result is their first operand, if it has its shape and element type."""
LIMIT_BYTES = 1 << 28
"""Constants that would become larger are computed by the model itself."""


@frozen
class FoldConstants:
    """Replace nodes that read constants only, and Shape, by their values.

    ``shapes``: of every tensor.
    """

    shapes: dict[str, tuple[int, ...]]
    name: str = "fold_constants"

    def run(self, model: FloatModel) -> FloatModel:
        """The model without them."""
        constants = dict(model.constants)
        kept = []
        for node in model.nodes:
            read = [name for name in node.inputs if name]
            if node.kind == "Shape" and read[0] in self.shapes:
                shape = self.shapes[read[0]]
                start, end = node.integer("start", 0), node.integer("end", len(shape))
                constants[node.outputs[0]] = np.asarray(shape[start:end], np.int64)
                continue
            if not all(name in constants for name in read) or node.kind.startswith("Random"):
                kept.append(node)
                continue
            alone = replace(model, nodes=(node,), constants=constants)
            values = dict(Evaluator(alone).run({}))
            if sum(np.asarray(value).nbytes for value in values.values()) > LIMIT_BYTES:
                kept.append(node)
            else:
                constants |= {name: np.asarray(value) for name, value in values.items()}
        return model if len(kept) == len(model.nodes) else model.with_nodes(kept, constants)


@frozen
class FindIdentities:
    """Cast to the type, and Expand or Reshape to the shape, that a tensor has, and Concat of one
    tensor -> Identity.

    shapes, dtypes: of every tensor.
    """

    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    name: str = "find_identities"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        nodes = [
            OnnxNode("Identity", node.name, node.inputs[:1], node.outputs, {})
            if self._keeps(node)
            else node
            for node in model.nodes
        ]
        return model if nodes == list(model.nodes) else model.with_nodes(nodes)

    def _keeps(self, node: OnnxNode) -> bool:
        """True if the result is the first operand."""
        if node.kind not in KEEPS and (node.kind != "Concat" or len(node.inputs) > 1):
            return False
        x, y = node.inputs[0], node.outputs[0]
        return self.shapes[x] == self.shapes[y] and self.dtypes[x] == self.dtypes[y]


@frozen
class DropIdentities:
    """Remove Identity, Dropout, and what nothing reads."""

    name: str = "drop_identities"

    def run(self, model: FloatModel) -> FloatModel:
        """The model without them."""
        renamed = self._outputs(model)
        kept = []
        for node in model.nodes:
            inputs = tuple(renamed.get(name, name) for name in node.inputs)
            outputs = tuple(renamed.get(name, name) for name in node.outputs)
            if node.kind in IDENTITIES and (
                outputs[0] not in model.outputs or inputs[0] == outputs[0]
            ):
                renamed[node.outputs[0]] = inputs[0]
            else:
                kept.append(replace(node, inputs=inputs, outputs=outputs))
        needed = set(model.outputs)
        for node in reversed(kept):
            if needed.intersection(node.outputs):
                needed.update(node.inputs)
        kept = [node for node in kept if needed.intersection(node.outputs)]
        return model if kept == list(model.nodes) else model.with_nodes(kept)

    def _outputs(self, model: FloatModel) -> dict[str, str]:
        """Computed tensors that are outputs of the model under another name."""
        return {
            node.inputs[0]: node.outputs[0]
            for node in model.nodes
            if node.kind in IDENTITIES
            and node.outputs[0] in model.outputs
            and node.inputs[0] in model.producers
            and node.inputs[0] not in model.outputs
        }


@frozen
class DropExpands:
    """Remove an Expand in front of operators of two tensors, which repeat the smaller themselves.

    ``shapes``: of every tensor.
    """

    shapes: dict[str, tuple[int, ...]]
    name: str = "drop_expands"

    def run(self, model: FloatModel) -> FloatModel:
        """The model without them; their nodes are left to nobody."""
        sources = {
            node.outputs[0]: node.inputs[0]
            for node in model.nodes
            if node.kind == "Expand"
            and len(self.shapes[node.inputs[0]]) == len(self.shapes[node.outputs[0]])
        }
        nodes = []
        for node in model.nodes:
            if node.kind in PAIRS and sum(name in sources for name in node.inputs) == 1:
                inputs = tuple(sources.get(name, name) for name in node.inputs)
                shapes = (self.shapes[name] for name in inputs)
                if np.broadcast_shapes(*shapes) == self.shapes[node.outputs[0]]:
                    node = replace(node, inputs=inputs)
            nodes.append(node)
        return model if nodes == list(model.nodes) else model.with_nodes(nodes)


@frozen
class ShortcutToConv:
    """Slice with steps over height and width, Pad with channels of zeros -> 1x1 Conv with strides.

    The shortcut of residual networks without parameters (K. He et al., 2015, option A).
    ``shapes``: of every tensor.
    """

    shapes: dict[str, tuple[int, ...]]
    name: str = "shortcut_to_conv"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        nodes, constants, dropped = [], {}, set()
        for node in model.nodes:
            pad = model.only_reader(node.outputs[0]) if node.kind == "Slice" else None
            weights = self._weights(model, node, pad) if pad and pad.kind == "Pad" else None
            if pad is None or weights is None:
                nodes.append(node)
                continue
            name = f"{pad.outputs[0]}/weights"
            constants[name] = weights
            steps = self._steps(model, node)
            attributes = {"kernel_shape": [1, 1], "strides": steps}
            conv = OnnxNode("Conv", pad.name, (node.inputs[0], name), pad.outputs, attributes)
            nodes.append(conv)
            dropped.add(pad.outputs[0])
        kept = [n for n in nodes if n.kind == "Conv" or n.outputs[0] not in dropped]
        return model.with_nodes(kept, constants) if constants else model

    def _steps(self, model: FloatModel, node: OnnxNode) -> list[int]:
        """Strides of height and width; empty when the slice does more than take every n-th."""
        if not node.has(4) or any(name not in model.constants for name in node.inputs[1:5]):
            return []
        starts, ends, axes, steps = (model.constants[name].tolist() for name in node.inputs[1:5])
        shape = self.shapes[node.inputs[0]]
        found = {2: 1, 3: 1}
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            if axis % 4 not in found or start or step < 1 or end < shape[axis]:
                return []
            found[axis % 4] = step
        return list(found.values())

    def _weights(self, model: FloatModel, node: OnnxNode, pad: OnnxNode) -> Array | None:
        """float32[out, in, 1, 1]: 1 where an output channel is an input channel."""
        sides = model.constants.get(pad.inputs[1]) if pad.has(1) else None
        value = model.constants.get(pad.inputs[2]) if pad.has(2) else np.float32(0)
        if len(self.shapes[node.inputs[0]]) != 4 or not self._steps(model, node):
            return None
        if sides is None or value is None or np.any(value) or pad.has(3):
            return None
        places = {1, 5}
        if pad.text("mode", "constant") != "constant" or sides.min() < 0:
            return None
        if any(side for place, side in enumerate(sides.tolist()) if place not in places):
            return None
        channels = self.shapes[node.inputs[0]][1]
        before, after = int(sides[1]), int(sides[5])
        weights = np.zeros((before + channels + after, channels, 1, 1), np.float32)
        weights[before + np.arange(channels), np.arange(channels)] = 1
        return weights


@frozen
class UntilSettled:
    """Passes, until none of them changes anything; each change must leave fewer nodes of a kind."""

    passes: tuple[Pass[FloatModel], ...]
    name: str = "until_settled"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        while (after := Pipeline(self.passes).run(model)) is not model:
            model = after
        return model


def simplify(
    model: FloatModel,
    shapes: dict[str, tuple[int, ...]],
    dtypes: Mapping[str, str],
    *,
    merge: bool = True,
) -> FloatModel:
    """The model with constants, identities, normalisations and added biases folded.

    shapes, dtypes: of every tensor.  merge: convolutions whose results are added become one.
    Raises ModelError when nothing is left.
    """
    branches = (MergeBranches(shapes),) if merge else ()
    passes: tuple[Pass[FloatModel], ...] = (
        FoldConstants(shapes),
        FindIdentities(shapes, dtypes),
        FindHardSigmoid(),
        DropExpands(shapes),
        DropNanGuards(),
        DropIdentities(),
        ShortcutToConv(shapes),
        FlattenGroups(shapes),
        RowsToImages(shapes),
        MergeReshapes(shapes),
        LastSoftmax(shapes),
        NormalizeDense(shapes),
        FoldAffine(shapes, rest=False),
        LowerDense(shapes),
        MergeTransposes(),
        DropIdentities(),
        UntilSettled((FoldAffine(shapes), *branches)),
        MaskByAdd(),
        DropIdentities(),
    )
    result = Pipeline(passes).run(model)
    if not result.nodes:
        raise ModelError("the outputs of the model are constants; there is nothing to quantise")
    return result
