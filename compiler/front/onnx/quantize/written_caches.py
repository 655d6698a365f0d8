"""Caches of a fixed length, of which a run writes one row, read as all others and then this row.

    K = Scatter(past, position, row)  ->  Concat(Gather(past, others), row)
    scores + mask                     ->  scores + Gather(mask, (*others, position))

Attention does not depend on the order of positions, if keys, values and masks have the same one.
So results are what they were, and rows join a cache as they do in decoders of other forms.  Caches
that are outputs of the model are written as before.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Array
from ..node import OnnxNode
from .functions import is_elementwise
from .model import FloatModel

__all__ = ["ReadWrittenCaches"]

SHAPED = ("Expand", "Flatten", "Reshape", "Squeeze", "Unsqueeze")
ALIKE = ("Cast", "Identity")
SCATTERS = ("ScatterElements", "ScatterND")


JOINING = ("Where",)
"""Element-wise operators that are not quantised as they are."""


class _OtherFormError(Exception):
    """The order of positions may be seen."""


@frozen
class _Write:
    """past, row: what is written to, and what; position: of one element; axis: of positions.

    order: of the dimensions of ``past`` where they were exchanged before the row was written.
    """

    past: str
    row: str
    position: str
    axis: int
    order: tuple[int, ...]


@frozen
class ReadWrittenCaches:
    """shapes: of every tensor."""

    shapes: Mapping[str, tuple[int, ...]]
    name: str = "read_written_caches"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model; ``model`` itself where nothing is written, or its place is seen."""
        writes = {
            node.outputs[0]: write
            for node in model.nodes
            if (write := self._write(model, node)) is not None
        }
        if len({(each.position, self._length(each)) for each in writes.values()}) != 1:
            return model
        try:
            return _Reordering(model, self.shapes, writes).run()
        except _OtherFormError:
            return model

    def _length(self, write: _Write) -> int:
        return self.shapes[write.past][write.axis]

    def _write(self, model: FloatModel, node: OnnxNode) -> _Write | None:
        """The row that a node writes to a tensor that is computed or given; None for any other."""
        if node.kind not in SCATTERS or node.text("reduction", "none") != "none":
            return None
        past, index, row = node.inputs
        shape = self.shapes[past]
        axis = node.integer("axis", 0) % len(shape) if node.kind == SCATTERS[0] else 0
        one = (*shape[:axis], 1, *shape[axis + 1 :])
        while prod(self.shapes[index]) > 1:
            maker = model.producers.get(index)
            if maker is None or maker.kind != "Expand":
                return None
            index = maker.inputs[0]
        if self.shapes[row] != one or past in model.constants or shape[axis] < 2:
            return None
        before, order = model.producers.get(past), tuple(range(len(shape)))
        if before is not None and before.kind == "Transpose":
            past, order = before.inputs[0], before.integers("perm", order[::-1])
        return _Write(past, row, self._origin(model, index), order[axis], order)

    def _origin(self, model: FloatModel, name: str) -> str:
        """The tensor of one element that ``name`` is in another shape."""
        while (maker := model.producers.get(name)) is not None:
            given = [each for each in maker.inputs if each not in model.constants]
            added = [model.constants[each] for each in maker.inputs if each in model.constants]
            moved = maker.kind in (*SHAPED, *ALIKE)
            moved = moved or (maker.kind == "Add" and not any(each.any() for each in added))
            if not moved or len(given) != 1:
                break
            name = given[0]
        return name


class _Reordering:
    """places: the axis of positions of each tensor that has them in the new order, by its name in
    the model; ``names``: the new ones.
    """

    def __init__(
        self, model: FloatModel, shapes: Mapping[str, tuple[int, ...]], writes: Mapping[str, _Write]
    ) -> None:
        self.model, self.shapes, self.writes = model, shapes, writes
        self.axes: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.nodes: list[OnnxNode] = []
        self.constants: dict[str, Array] = {}
        write = next(iter(writes.values()))
        self.length, self.position = shapes[write.past][write.axis], write.position
        self.places = ""

    def run(self) -> FloatModel:
        """Raises _OtherFormError."""
        for node in self.model.nodes:
            if not any(name in self.axes for name in node.inputs):
                self.nodes.append(node)
                if node.outputs[0] in self.writes:
                    self._join(node.outputs[0], self.writes[node.outputs[0]])
                continue
            axis = self._axis(node)
            inputs = tuple(self._reordered(node, name, axis) for name in node.inputs)
            if axis is None:
                self.nodes.append(
                    OnnxNode(node.kind, node.name, inputs, node.outputs, node.attributes)
                )
                continue
            # What is an output of the model, or leads to one, stays in its order too.
            self.nodes.append(node)
            self.axes[node.outputs[0]] = axis
            new = self.names[node.outputs[0]] = f"{node.outputs[0]}/rows_last"
            self._add(node.kind, inputs, new, node.attributes)
        return self.model.with_nodes(self.nodes, {**self.model.constants, **self.constants})

    def _add(
        self, kind: str, inputs: tuple[str, ...], name: str, attributes: Mapping[str, object]
    ) -> str:
        self.nodes.append(OnnxNode(kind, name, inputs, (name,), attributes))
        return name

    def _constant(self, name: str, value: Array) -> str:
        self.constants[name] = value
        return name

    def _join(self, name: str, write: _Write) -> None:
        """The cache's other rows, and the new one behind them."""
        if not self.places:
            self.places = self._order()
        axis, back = {"axis": write.axis}, {"perm": np.argsort(write.order).tolist()}
        self.axes[name] = write.order.index(write.axis)
        self.names[name] = f"{name}/rows_last"
        given = write.past, f"{self.places}/others"
        others = self._add("Gather", given, f"{name}/others", axis)
        row = self._add("Transpose", (write.row,), f"{name}/row", back)
        whole = self._add("Concat", (others, row), f"{name}/joined", axis)
        self._add("Transpose", (whole,), self.names[name], {"perm": list(write.order)})

    def _order(self) -> str:
        """The places of positions in their new order: int64[N]."""
        stem = f"{self.position}/rows_last"
        flat = self._constant(f"{stem}/flat", np.array([1]))
        count = self._constant(f"{stem}/count", np.array([self.length]))
        columns = self._constant(f"{stem}/columns", np.arange(self.length - 1))
        own = self._add("Reshape", (self.position, flat), f"{stem}/one", {})
        own = self._add("Cast", (own,), f"{stem}/whole", {"to": 7})
        own = self._add("Mod", (own, count), f"{stem}/own", {})
        behind = self._add("GreaterOrEqual", (columns, own), f"{stem}/behind", {})
        behind = self._add("Cast", (behind,), f"{stem}/step", {"to": 7})
        others = self._add("Add", (columns, behind), f"{stem}/others", {})
        return self._add("Concat", (others, own), stem, {"axis": 0})

    def _reordered(self, node: OnnxNode, name: str, axis: int | None) -> str:
        """An operand with its positions, if it has any, in the new order."""
        if name in self.names or axis is None or not _by_elements(node):
            return self.names.get(name, name)
        shape = self._shape(name)
        own = len(shape) - len(self.shapes[node.outputs[0]]) + axis
        if own < 0 or shape[own] == 1:
            return name
        new = f"{name}/rows_last"
        if not any(new in each.outputs for each in self.nodes):
            self._add("Gather", (name, self.places), new, {"axis": own})
        return new

    def _shape(self, name: str) -> tuple[int, ...]:
        found = self.model.constants.get(name)
        return self.shapes[name] if found is None else found.shape

    def _axis(self, node: OnnxNode) -> int | None:
        """The axis of positions of a node's result; None where the order of its operands' counts
        for nothing.

        Raises _OtherFormError.
        """
        first, *others = (self.axes.get(name) for name in node.inputs)
        shape = self.shapes[node.outputs[0]]
        given = self._shape(node.inputs[0])
        if node.kind == "MatMul":
            (second,) = others
            rank = len(self._shape(node.inputs[1]))
            if first is None and second == rank - 1:
                return len(shape) - 1
            if first == len(given) - 1 and second == rank - 2:
                return None
        elif _by_elements(node):
            ranks = [len(self._shape(name)) for name in node.inputs]
            known = zip((first, *others), ranks, strict=True)
            found = {each - rank for each, rank in known if each is not None}
            if len(found) == 1:
                return len(shape) + found.pop()
        elif first is not None and not any(each is not None for each in others):
            if node.kind in ALIKE:
                return first
            if node.kind == "Transpose":
                return list(node.integers("perm", tuple(range(len(shape)))[::-1])).index(first)
            last = len(shape) - 1
            if node.kind == "Softmax" and node.integer("axis", -1) % len(shape) == first == last:
                return first
            if node.kind in SHAPED:
                behind = prod(given[first + 1 :])
                for axis, size in enumerate(shape):
                    if size == self.length and prod(shape[axis + 1 :]) == behind:
                        return axis
        raise _OtherFormError


def _by_elements(node: OnnxNode) -> bool:
    return is_elementwise(node) or node.kind in JOINING
