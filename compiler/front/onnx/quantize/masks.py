"""Scores in front of a Softmax, and the masks that are added to them.

An element far below the largest of its row counts for nothing after a Softmax, so a range
need not reach down to it.  A mask of -1e9 would leave no step for the scores otherwise.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Array
from ..node import OnnxNode
from .model import FloatModel
from .observe import Range

__all__ = ["DropNanGuards", "MaskByAdd", "Scores", "find_scores"]

DEPTH = 16.0
"""exp(-16) is 1e-7; a result of Softmax has steps of 1/256."""
FLOOR = np.float32(-1e6)
"""The lowest value of a mask until the range of the scores is known."""
MASKED = -1e3
"""Constants from here down leave elements out."""

MOVES = ("Expand", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze")

Shapes = Mapping[str, tuple[int, ...]]


@frozen
class Scores:
    """tensors: that only Softmax over their last dimension reads.

    partial: those that more is added to before.  masks: tensors that follow from no real input, and
    the scores that each is added to.  sources: tensors that others are moved elements of.
    """

    tensors: frozenset[str]
    partial: frozenset[str]
    masks: Mapping[str, frozenset[str]]
    sources: Mapping[str, str]

    def seen(self, name: str, values: Array) -> Array:
        """The values of a tensor as far as they decide its range."""
        if name in self.tensors and values.size:
            largest: Array = values.max(axis=-1, keepdims=True)
            lowest = np.where(np.isneginf(largest), 0, largest - DEPTH).astype(np.float32)
            return np.maximum(values, lowest)
        if name in self.partial and (kept := values[values > MASKED]).size:
            return np.maximum(values, kept.min() - np.float32(DEPTH))
        return np.maximum(values, FLOOR) if name in self.masks else values

    def limited(self, ranges: Mapping[str, Range]) -> dict[str, Range]:
        """Ranges by tensor, those of masks no deeper than takes any score out of its row."""
        result = dict(ranges)
        for name, others in self.masks.items():
            found = [self._range(each, ranges) for each in others]
            spans = [each[1] - each[0] for each in found if each is not None]
            if name in result and len(spans) == len(others):
                low, high = result[name]
                result[name] = max(low, -(max(spans) + DEPTH)), high
        return result

    def _range(self, name: str, ranges: Mapping[str, Range]) -> Range | None:
        """The range of a tensor, or of what it is moved elements of."""
        while name not in ranges and name in self.sources:
            name = self.sources[name]
        return ranges.get(name)


def find_scores(model: FloatModel, shapes: Shapes) -> Scores:
    """The scores and masks of ``model``."""
    real, tensors, partial = _real(model), set[str](), set[str]()
    masks: dict[str, frozenset[str]] = {}
    computed = [name for node in reversed(model.nodes) for name in node.outputs]
    for name in (*computed, *model.constants):
        readers = model.readers.get(name, ())
        if name in model.outputs or not readers:
            continue
        if all(each.kind == "Softmax" and _is_last(each, shapes) for each in readers):
            tensors.add(name)
        added = [_added_by(name, each, tensors | partial, masks) for each in readers]
        if name not in real and all(added):
            masks[name] = frozenset[str]().union(*added)
        elif all(added) and all(each.kind == "Add" for each in readers):
            partial.add(name)
    others = {name: each - masks.keys() for name, each in masks.items()}
    moves = [node for node in model.nodes if node.kind in MOVES]
    sources = {node.outputs[0]: node.inputs[0] for node in moves}
    return Scores(frozenset(tensors), frozenset(partial), others, sources)


def _added_by(
    name: str, reader: OnnxNode, sums: set[str], masks: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Masks that ``reader``, or a node after it, adds to ``name``, for ``sums``; empty if none."""
    if reader.kind == "Add" and reader.outputs[0] in sums:
        return frozenset(reader.inputs) - {name}
    if reader.kind in MOVES and reader.inputs[0] == name:
        return masks.get(reader.outputs[0], frozenset())
    return frozenset()


@frozen
class MaskByAdd:
    """Where(condition, scores, large negative) in front of Softmax  ->  scores + a mask.

    Other sums may be between.
    """

    name: str = "mask_by_add"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        nodes: list[OnnxNode] = []
        constants: dict[str, Array] = {}
        real = _real(model)
        for node in model.nodes:
            masks = node.kind == "Where" and _reaches_softmax(model, node)
            place = _masked_place(model, node) if masks else None
            if place is None or node.inputs[0] in real:
                nodes.append(node)
                continue
            out, condition, chosen = node.outputs[0], node.inputs[0], node.inputs[3 - place]
            constants[f"{out}/kept"] = np.zeros((), np.float32)
            names = [condition, f"{out}/kept", f"{out}/kept"]
            names[place] = node.inputs[place]
            if condition in model.constants:
                arrays = [{**model.constants, **constants}[name] for name in names]
                constants[f"{out}/mask"] = np.asarray(np.where(*arrays), np.float32)
            else:
                nodes.append(replace(node, inputs=tuple(names), outputs=(f"{out}/mask",)))
            nodes.append(OnnxNode("Add", f"{out}:Add", (chosen, f"{out}/mask"), (out,), {}))
        return model.with_nodes(nodes, constants) if constants else model


@frozen
class DropNanGuards:
    """Where(IsNaN(p), 0, p)  ->  p, for a Softmax p, as torch writes attention with a mask.

    A row that -infinity masks completely is NaN; masks of int8 have no infinity.
    """

    name: str = "drop_nan_guards"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model, with Identity for the guards."""
        nodes = [self._unguarded(model, node) for node in model.nodes]
        return model if nodes == list(model.nodes) else model.with_nodes(nodes)

    def _unguarded(self, model: FloatModel, node: OnnxNode) -> OnnxNode:
        guard = model.producers.get(node.inputs[0]) if node.kind == "Where" else None
        if guard is None or guard.kind != "IsNaN" or guard.inputs[0] != node.inputs[2]:
            return node
        softmax, other = model.producers.get(guard.inputs[0]), model.constants.get(node.inputs[1])
        if softmax is None or softmax.kind != "Softmax" or other is None or other.any():
            return node
        return OnnxNode("Identity", node.name, guard.inputs, node.outputs, {})


def _reaches_softmax(model: FloatModel, node: OnnxNode) -> bool:
    """True if the node's result ends in a Softmax, alone or after masks are added to it."""
    reader = model.only_reader(node.outputs[0])
    while reader is not None and reader.kind == "Add":
        reader = model.only_reader(reader.outputs[0])
    return reader is not None and reader.kind == "Softmax"


def _masked_place(model: FloatModel, node: OnnxNode) -> int | None:
    """The input of a Where that is the large negative constant, if the other is computed."""
    for place in (1, 2):
        value = model.constants.get(node.inputs[place])
        if value is not None and value.size and value.max() <= MASKED:
            return None if node.inputs[3 - place] in model.constants else place
    return None


def _is_last(node: OnnxNode, shapes: Shapes) -> bool:
    rank = len(shapes[node.inputs[0]])
    return rank > 0 and node.integer("axis", -1) % rank == rank - 1


def _real(model: FloatModel) -> frozenset[str]:
    """The tensors that follow from a float32 input, or from rows of a table."""
    found = {each.name for each in model.inputs if each.dtype == "float32"}
    for node in model.nodes:
        table = model.constants.get(node.inputs[0]) if node.kind == "Gather" else None
        looks_up = table is not None and table.dtype.kind == "f" and table.ndim > 1
        if looks_up or not found.isdisjoint(node.inputs) or node.kind.startswith("Random"):
            found.update(node.outputs)
    return frozenset(found)
