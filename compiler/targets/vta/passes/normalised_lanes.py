"""Channels of rows that are normalised, in any order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import groupby

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Requantize
from ....graph.operators.movement import Concatenate, Slice
from .lane_elements import Element, Elements, NoLanesError

__all__ = ["NormalisedLanes"]


@frozen
class NormalisedLanes:
    """graph, builder, read, block: as of ``Lanes``.  image: of elements as channels.

    elements: of the graph's tensors.  tokens: rows of each vector.
    """

    graph: Graph
    builder: GraphBuilder
    read: Callable[[str], str]
    block: int
    image: Callable[[Sequence[Element]], str]
    elements: Elements
    tokens: int = 1
    _made: dict[tuple[str, int], str] = field(default_factory=dict)

    def runs(self, node: Node, places: Sequence[int]) -> Iterator[list[int]]:
        """Places of a normalisation's elements, row by row."""
        size = self.graph.types[node.output].shape[-1]
        return (list(run) for _, run in groupby(places, key=lambda place: place // size))

    def channels(self, node: Node, places: Sequence[int]) -> tuple[str, int]:
        """Elements of a normalisation as channels in this order, and their zero point.

        Raises NoLanesError.
        """
        operator, size = node.operator, self.graph.types[node.output].shape[-1]
        assert isinstance(operator, RowNorm)
        parts = list[str]()
        for run in self.runs(node, places):
            number, first = divmod(run[0], size)
            if run != list(range(run[0], run[0] + len(run))) or first % self.block:
                return self._copied(node, places, operator.zero_point), operator.zero_point
            name = self._row(node, number)
            if len(run) < size:
                part = Slice((0, 0, 0, first), (1, 1, 1, 1), (1, 1, self.tokens, len(run)))
                name = self.builder.node(part, (name,), f"{node.output}/run", node.origin)
            parts.append(name)
        return self._side_by_side(node, parts), operator.zero_point

    def _row(self, node: Node, number: int) -> str:
        """A row that is normalised, whole and in its own order."""
        key = (node.output, number)
        if key not in self._made:
            first = number * self.graph.types[node.output].shape[-1]
            row = self.image(self.elements.row(node, first))
            inputs = (row, *(self.read(each) for each in node.inputs[1:]))
            name = self.builder.node(node.operator, inputs, f"{node.output}/row", node.origin)
            self._made[key] = name
        return self._made[key]

    def _side_by_side(self, node: Node, parts: Sequence[str]) -> str:
        if len(parts) == 1:
            return parts[0]
        return self.builder.node(Concatenate(3), tuple(parts), f"{node.output}/joined", node.origin)

    def _copied(self, node: Node, places: Sequence[int], zero_point: int) -> str:
        """Each channel copied to its place by a weight of 1.  Raises NoLanesError."""
        builder, count, stem = self.builder, len(places), f"{node.output}/copied"
        size = self.graph.types[node.output].shape[-1]
        rows = sorted({place // size for place in places})
        if len(rows) > 1 and size % self.block:
            raise NoLanesError(f"{node.output!r}: normalised rows that do not fill blocks")
        whole = self._side_by_side(node, [self._row(node, row) for row in rows])
        weights = np.zeros((count, 1, 1, len(rows) * size), np.int8)
        for channel, place in enumerate(places):
            weights[channel, 0, 0, rows.index(place // size) * size + place % size] = 1
        inputs = (
            whole,
            builder.constant(f"{stem}/weights", weights),
            builder.constant(f"{stem}/bias", np.zeros(count, np.int32)),
        )
        conv = Conv2d((1, 1), (0, 0, 0, 0), 1, zero_point)
        name = builder.node(conv, inputs, f"{stem}/sum", node.origin)
        ones = builder.constant(f"{stem}/scale", np.ones(count, np.float32))
        same = Requantize(zero_point, -128, 127)
        return builder.node(same, (name, ones), stem, node.origin)
