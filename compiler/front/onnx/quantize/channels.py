"""Channels of a model's tensors that may have a factor, and those that must share one.

Convolutions and dense layers take a factor off their outputs and put one on their inputs.  Between
them, a positive factor passes through what is homogeneous (Relu, pools, sums) and what moves
elements; a residual sum joins the factors of its operands, and all else asks for 1.  A Relu that is
cut off lets factors pass as long as nothing more is cut off, and no less.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ....graph.ir import Array
from ....quantize.factors import FIXED
from ..node import OnnxNode
from .evaluate import Evaluator
from .model import FloatModel
from .plan import CONTRACTIONS
from .weights import channel_axis

__all__ = ["Channels", "Ids", "find_channels"]

Ids = NDArray[np.int64]
ELEMENTWISE = ("Identity", "LeakyRelu", "Relu")
SPATIAL = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Resize")
"""Operators through which factors pass: of any elements, of channels."""
MOVES = (
    *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "Pad", "Reshape", "Slice"),
    *("SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
)
LARGEST = 1 << 24
"""Classes have numbers that float32 holds exactly."""


class Channels:
    """Classes of channels: those of one class have one factor.

    Each tensor's are an array that repeats to its shape.
    cuts: tensors that a Relu with an upper limit reads.
    """

    def __init__(self) -> None:
        self.cuts: list[tuple[str, float]] = []
        self._parents = [FIXED]
        self._of: dict[str, Ids] = {}

    def __getitem__(self, name: str) -> Ids:
        """The class of each channel of a tensor, as it was given."""
        return self._of[name]

    def __contains__(self, name: str) -> bool:
        return name in self._of

    @property
    def count(self) -> int:
        """One more than the largest class."""
        return len(self._parents)

    def put(self, name: str, ids: Ids) -> None:
        """Give tensor ``name`` classes that exist."""
        self._of[name] = ids

    def new(self, name: str, shape: tuple[int, ...]) -> None:
        """Give tensor ``name`` classes of its own."""
        count = int(np.prod(shape))
        self._of[name] = np.arange(count).reshape(shape) + len(self._parents)
        self._parents += range(len(self._parents), len(self._parents) + count)

    def fix(self, name: str) -> None:
        """Let tensor ``name`` have no factors."""
        for each in np.unique(self._of[name]):
            self._join(int(each), FIXED)

    def join(self, first: str, second: str) -> Ids:
        """Let two tensors have the same factors, one repeated to the other; their classes."""
        pairs = np.broadcast_arrays(self._of[first], self._of[second])
        for one, other in np.unique(np.stack([p.reshape(-1) for p in pairs], axis=1), axis=0):
            self._join(int(one), int(other))
        return np.array(pairs[0])

    def _join(self, one: int, other: int) -> None:
        roots = sorted((self._root(one), self._root(other)))
        self._parents[roots[1]] = roots[0]

    def _root(self, place: int) -> int:
        while self._parents[place] != place:
            place = self._parents[place]
        return place

    def settled(self) -> dict[str, Ids]:
        """The class of each channel of all tensors: one of those that were joined."""
        roots = np.array([self._root(place) for place in range(len(self._parents))])
        return {name: roots[ids] for name, ids in self._of.items()}


def find_channels(model: FloatModel, shapes: Mapping[str, tuple[int, ...]]) -> Channels:
    """The classes of every float tensor between contractions."""
    found, evaluator = Channels(), Evaluator(model)
    for signature in model.inputs:
        found.put(signature.name, np.zeros((1,) * len(signature.shape), np.int64))
    for node in model.nodes:
        if not _passes(found, evaluator, model, node, shapes):
            for name in node.inputs:
                if name in found:
                    found.fix(name)
            for name in node.outputs:
                found.put(name, np.zeros((1,) * len(shapes.get(name, ())), np.int64))
    for name in model.outputs:
        found.fix(name)
    return found


def _passes(
    found: Channels,
    evaluator: Evaluator,
    model: FloatModel,
    node: OnnxNode,
    shapes: Mapping[str, tuple[int, ...]],
) -> bool:
    """Give the outputs of a node their classes, if factors pass it."""
    computed = [name for name in node.inputs if name in found]
    if not computed or node.inputs[0] != computed[0]:
        return False
    x, out = node.inputs[0], node.outputs[0]
    if node.kind in CONTRACTIONS and node.inputs[1] in model.constants and len(computed) == 1:
        return _contracts(found, model, node, shapes)
    if node.kind in (*ELEMENTWISE, *SPATIAL) and len(computed) == len(node.outputs) == 1:
        if node.kind in SPATIAL and _varies(found[x])[2:].any():
            return False
        found.put(out, found[x])
        return shapes[out][:2] == shapes[x][:2]
    if node.kind == "Clip" and len(computed) == 1 and (high := _highest(model, node)):
        found.cuts.append((x, high))
        found.put(out, found[x])
        return True
    if node.kind in ("Add", "Sub") and len(computed) == 2:
        found.put(out, found.join(*computed))
        return True
    if node.kind == "Mul" and len(computed) == 2:
        return _gates(found, node, shapes)
    if node.kind in ("ReduceMax", "ReduceMean", "ReduceMin") and node.integer("keepdims", 1):
        if not _varies(found[x])[2:].any() and shapes[out][:2] == shapes[x][:2]:
            found.put(out, found[x])
            return True
        return False
    if node.kind in MOVES and len(computed) == (len(node.inputs) if node.kind == "Concat" else 1):
        return _moves(found, evaluator, model, node, shapes)
    return False


def _highest(model: FloatModel, node: OnnxNode) -> float | None:
    """Where a Clip from 0 on ends; None for another."""
    limits = [model.constants.get(name) for name in node.inputs[1:]]
    if len(limits) != 2 or any(each is None or each.size != 1 for each in limits):
        return None
    low, high = (float(each.reshape(-1)[0]) for each in limits if each is not None)
    return high if low == 0 < high else None


def _gates(found: Channels, node: OnnxNode, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Let the factors of a tensor pass one that has a number for each channel, and no factors."""
    gate, gated = sorted(node.inputs, key=lambda name: np.prod(shapes[name]))
    if shapes[gated] != shapes[node.outputs[0]] or shapes[gate] == shapes[gated]:
        return False
    found.fix(gate)
    found.put(node.outputs[0], found[gated])
    return True


def _contracts(
    found: Channels, model: FloatModel, node: OnnxNode, shapes: Mapping[str, tuple[int, ...]]
) -> bool:
    x, out = node.inputs[0], node.outputs[0]
    place = 1 if node.kind in ("Conv", "ConvTranspose") else len(shapes[x]) - 1
    varies = _varies(found[x])
    if any(varies[axis] for axis in range(len(varies)) if axis != place):
        return False
    shape = [1] * len(shapes[out])
    weights = model.constants[node.inputs[1]]
    shape[place] = weights.shape[channel_axis(node)]
    if shape[place] != shapes[out][place]:
        return False
    found.new(out, tuple(shape))
    return True


def _varies(ids: Ids) -> NDArray[np.bool_]:
    return np.array(ids.shape) > 1


def _moves(
    found: Channels,
    evaluator: Evaluator,
    model: FloatModel,
    node: OnnxNode,
    shapes: Mapping[str, tuple[int, ...]],
) -> bool:
    """Move the classes as the elements are; what the node adds are zeros, which any factor fits."""
    if found.count >= LARGEST or (node.kind == "Pad" and node.has(2) and _fills(model, node)):
        return False
    values: dict[str, Array] = dict(model.constants)
    for name in node.inputs:
        if name in found:
            values[name] = np.broadcast_to(found[name], shapes[name]).astype(np.float32)
    for name, array in zip(node.outputs, evaluator.node(node, values), strict=True):
        found.put(name, _compressed(np.asarray(array).astype(np.int64)))
    return True


def _fills(model: FloatModel, node: OnnxNode) -> bool:
    return bool(np.any(model.constants.get(node.inputs[2], np.ones(1))))


def _compressed(ids: Ids) -> Ids:
    """With dimensions along which nothing changes of size 1."""
    for axis in range(ids.ndim):
        first = np.take(ids, [0], axis=axis)
        if (ids == first).all():
            ids = first
    return ids
