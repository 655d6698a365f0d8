"""Elements of vectors, which may become channels of images, and what moves them."""

from dataclasses import field
from math import prod

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, Node
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.values import Lookup
from ....graph.operators.integer.windows import Upsample2d
from ....graph.operators.movement import Concatenate, Reshape, Slice, Transpose

__all__ = ["MOVES", "Element", "Elements", "NoLanesError", "is_move"]

Element = tuple[str, int]
"""A tensor, and the place of one of its elements, all dimensions counted as one."""

Traced = tuple[list[str], NDArray[np.int64], NDArray[np.int64]]

MOVES = (Reshape, Transpose, Slice, Concatenate, Upsample2d)


class NoLanesError(Exception):
    """The vectors cannot be had in this order."""


def is_move(graph: Graph, node: Node) -> bool:
    """True if a node only says where elements are."""
    picks = isinstance(node.operator, Gather) and node.inputs[1] in graph.constants
    return picks or isinstance(node.operator, MOVES)


@frozen
class Elements:
    """The elements of a graph's tensors, as they are before they are moved."""

    graph: Graph
    _traced: dict[str, Traced] = field(default_factory=dict)

    def of(self, name: str) -> NDArray[np.object_]:
        """Elements of a tensor beneath movements, in the tensor's shape."""
        bases, which, places = self.trace(name)
        found = np.empty(which.shape, object)
        for at in np.ndindex(which.shape):
            found[at] = bases[which[at]], int(places[at])
        return found

    def trace(self, name: str) -> Traced:
        """The tensors beneath movements; for each element which one, and its place there."""
        if name not in self._traced:
            node, shape = self.graph.producer(name), self.graph.types[name].shape
            if node is None or not is_move(self.graph, node):
                places = np.arange(prod(shape)).reshape(shape)
                self._traced[name] = [name], np.zeros(shape, np.int64), places
            else:
                bases: list[str] = []
                parts = []
                given = [name for name in node.inputs[1:] if isinstance(node.operator, Gather)]
                known = [self.graph.constants[name] for name in given]
                for each in node.inputs[: len(node.inputs) - len(known)]:
                    below, which, places = self.trace(each)
                    bases += [base for base in below if base not in bases]
                    number = np.array([bases.index(base) for base in below])
                    parts.append((number[which], places))
                (which,) = node.operator.evaluate([*(part[0] for part in parts), *known])
                (places,) = node.operator.evaluate([*(part[1] for part in parts), *known])
                self._traced[name] = bases, which, places
        return self._traced[name]

    def operands(self, node: Node, place: int) -> list[Element]:
        """Elements that an element of an element-wise node is made of."""
        shape, found = self.graph.types[node.output].shape, list[Element]()
        at = np.unravel_index(place, shape)
        for name in node.inputs[: 1 if isinstance(node.operator, Lookup) else 2]:
            bases, which, places = self.trace(name)
            own = tuple(int(i) % size for i, size in zip(at, which.shape, strict=True))
            found.append((bases[which[own]], int(places[own])))
        return found

    def row(self, node: Node, place: int) -> list[Element]:
        """The row of its operand that an element of a normalisation of rows is made of."""
        shape = self.graph.types[node.output].shape
        at = np.unravel_index(place, shape)[:-1]
        bases, which, places = self.trace(node.inputs[0])
        return [(bases[n], int(own)) for n, own in zip(which[at], places[at], strict=True)]
