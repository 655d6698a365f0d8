"""Groups of channels that exporters write as a dimension of their own, [N, groups, C, H, W], as
channels of an image: convolutions, gates and sums then compute them as they do all others.

Convolutions of rows are written as those of images one pixel high.  Softmax over another dimension
than the last is written with that one last.
"""

from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Array
from ..node import OnnxNode
from .functions import PAIRS
from .model import FloatModel

__all__ = ["FlattenGroups", "LastSoftmax", "MergeReshapes", "RowsToImages"]

Shapes = dict[str, tuple[int, ...]]
FLAT = "/image"
"""Behind the name of a tensor with groups: the same as an image."""


@frozen
class FlattenGroups:
    """An operator of two tensors [N, G, C, H, W]  ->  of two images, between Reshapes
    ReduceSum over G                            ->  1x1 Conv whose weights are 1 for the channel
    Concat along G of tensors [N, 1, C, H, W]   ->  Concat of images

    ``shapes``: of every tensor.
    """

    shapes: Shapes
    name: str = "flatten_groups"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        nodes: list[OnnxNode] = []
        constants: dict[str, Array] = {}
        for node in model.nodes:
            shapes = [self.shapes.get(name, ()) for name in node.inputs]
            apart = bool(shapes) and len(shapes[0]) == 5 and node.inputs[0] not in model.constants
            out = node.outputs[0]
            if apart and (self._is_pair(model, node) or self._joins(node)):
                images = self._flat(node.inputs, nodes, constants)
                nodes.append(replace(node, inputs=tuple(images), outputs=(out + FLAT,)))
                _reshape(out + FLAT, out, self.shapes[out], nodes, constants)
            elif apart and self._sums_groups(model, node):
                (image,) = self._flat(node.inputs[:1], nodes, constants)
                _, groups, channels, _, _ = shapes[0]
                eye = np.tile(np.eye(channels, dtype=np.float32), (1, groups))
                constants[f"{out}/weights"] = eye[:, :, None, None]
                names, kernel = (image, f"{out}/weights"), {"kernel_shape": [1, 1]}
                nodes.append(OnnxNode("Conv", node.name, names, (out,), kernel))
            else:
                nodes.append(node)
        return model.with_nodes(nodes, constants) if constants else model

    def _is_pair(self, model: FloatModel, node: OnnxNode) -> bool:
        """True if it has two operands with the same groups and channels."""
        if node.kind not in PAIRS or len(node.inputs) != 2 or node.inputs[1] in model.constants:
            return False
        shapes = [self.shapes[name] for name in node.inputs]
        return len(shapes[1]) == 5 and shapes[0][:3] == shapes[1][:3]

    def _joins(self, node: OnnxNode) -> bool:
        """True if it joins groups."""
        return node.kind == "Concat" and node.integer("axis", 0) == 1

    def _sums_groups(self, model: FloatModel, node: OnnxNode) -> bool:
        if node.kind != "ReduceSum" or node.integer("keepdims", 1) or not node.has(1):
            return False
        axes = model.constants.get(node.inputs[1])
        return axes is not None and axes.reshape(-1).tolist() == [1]

    def _flat(
        self, names: tuple[str, ...], nodes: list[OnnxNode], constants: dict[str, Array]
    ) -> list[str]:
        """The tensors as images; nodes that make them are added."""
        made = {node.outputs[0] for node in nodes}
        for name in dict.fromkeys(names):
            count, groups, channels, *size = self.shapes[name]
            if name + FLAT not in made:
                shape = (count, groups * channels, *size)
                _reshape(name, name + FLAT, shape, nodes, constants)
        return [name + FLAT for name in names]


@frozen
class RowsToImages:
    """Conv of [N, C, W] -> Reshape, Conv of [N, C, 1, W], Reshape.

    ``shapes``: of every tensor.
    """

    shapes: Shapes
    name: str = "rows_to_images"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        nodes: list[OnnxNode] = []
        constants: dict[str, Array] = {}
        for node in model.nodes:
            x, out = (*node.inputs[:1], "")[0], node.outputs[0]
            weights = model.constants.get(node.inputs[1]) if node.kind == "Conv" else None
            if weights is None or weights.ndim != 3 or node.text("auto_pad", "NOTSET") != "NOTSET":
                nodes.append(node)
                continue
            constants[f"{out}/weights"] = weights[:, :, None]
            before, after = node.integers("pads", (0, 0))
            attributes = {
                "kernel_shape": [1, weights.shape[2]],
                "strides": [1, *node.integers("strides", (1,))],
                "dilations": [1, *node.integers("dilations", (1,))],
                "pads": [0, before, 0, after],
                "group": node.integer("group", 1),
            }
            (count, channels, width), wide = self.shapes[x], self.shapes[out]
            _reshape(x, f"{out}/x", (count, channels, 1, width), nodes, constants)
            names = (f"{out}/x", f"{out}/weights", *node.inputs[2:])
            nodes.append(OnnxNode("Conv", node.name, names, (out + FLAT,), attributes))
            _reshape(out + FLAT, out, wide, nodes, constants)
        return model.with_nodes(nodes, constants) if constants else model


@frozen
class MergeReshapes:
    """Reshape of what a Reshape, Squeeze, Unsqueeze or Flatten made -> one Reshape, or Identity.

    ``shapes``: of every tensor.
    """

    shapes: Shapes
    name: str = "merge_reshapes"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        current = dict(model.producers)
        nodes = []
        for node in model.nodes:
            x = node.inputs[0] if node.inputs else ""
            while node.kind == "Reshape" and self._only_reshapes(model, current.get(x)):
                x = current[x].inputs[0]
            if node.kind == "Reshape" and x != node.inputs[0]:
                wanted = model.constants.get(node.inputs[1])
                if wanted is not None and (wanted > 0).all():
                    same = tuple(wanted.tolist()) == self.shapes.get(x)
                    kind, names = ("Identity", (x,)) if same else ("Reshape", (x, node.inputs[1]))
                    node = replace(node, kind=kind, inputs=names)
                    current[node.outputs[0]] = node
            nodes.append(node)
        return model if nodes == list(model.nodes) else model.with_nodes(nodes)

    def _only_reshapes(self, model: FloatModel, node: OnnxNode | None) -> bool:
        kinds = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
        return node is not None and node.kind in kinds and node.inputs[0] not in model.constants


@frozen
class LastSoftmax:
    """Softmax over another dimension than the last -> Transpose, Softmax, Transpose.

    ``shapes``: of every tensor.
    """

    shapes: Shapes
    name: str = "last_softmax"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        nodes: list[OnnxNode] = []
        for node in model.nodes:
            rank = len(self.shapes[node.inputs[0]]) if node.kind == "Softmax" else 0
            axis = node.integer("axis", -1) % rank if rank else 0
            if not rank or axis == rank - 1:
                nodes.append(node)
                continue
            order = list(range(rank))
            order[axis], order[-1] = order[-1], order[axis]
            (x, *_), (out, *_) = node.inputs, node.outputs
            turned, done = f"{out}/turned", f"{out}/rows"
            swap = {"perm": order}
            nodes += [
                OnnxNode("Transpose", f"{turned}:Transpose", (x,), (turned,), swap),
                replace(node, inputs=(turned,), outputs=(done,), attributes={"axis": -1}),
                OnnxNode("Transpose", f"{out}:Transpose", (done,), (out,), swap),
            ]
        return model if len(nodes) == len(model.nodes) else model.with_nodes(nodes)


def _reshape(
    x: str, out: str, shape: tuple[int, ...], nodes: list[OnnxNode], constants: dict[str, Array]
) -> None:
    constants[f"{out}/shape"] = np.array(shape)
    nodes.append(OnnxNode("Reshape", f"{out}:Reshape", (x, f"{out}/shape"), (out,), {}))
