"""Images that are put together from pixels that are apart in a row, row by row.

    Assemble(parts, 8 x 8)  ->  Assemble(copies of Assemble(parts of a row, 1 x 8), 8 x 1)

STORE writes each pixel by itself where its neighbours in DRAM are another part's.  Where an image
does not fit on chip, the parts of each row of a period are therefore put together there, and copied
row by row.  None of the images that are left has pixels apart and no room, so the pass ends.
"""

from collections.abc import Iterator
from math import prod

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.assembly import Assemble
from .own_parts import COPY

__all__ = ["OwnRows"]

SHARE = 7 / 8
"""Rows that are put together on chip, and the image of which each part of them is made, take this
part of ACT, at most."""


@frozen
class _Row:
    """Parts ``names`` of the image ``whole`` that are in the same rows of each period, from row
    ``first`` on.
    """

    whole: str
    first: int
    names: tuple[str, ...]
    rows: Assemble


@frozen
class OwnRows:
    """lanes: channels of a block.  act_words: of ACT; without them, no image is changed."""

    lanes: int
    act_words: int
    name: str = "own_rows"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when there is no such image."""
        numbers = {name: number for number, node in enumerate(graph.nodes) for name in node.outputs}
        ready: dict[int, list[_Row]] = {}
        for node in graph.nodes if self.act_words else ():
            for row in self._rows(graph, node):
                last = max((numbers.get(name, -1) for name in row.names), default=-1)
                ready.setdefault(last, []).append(row)
        if not ready:
            return graph
        builder, copies = GraphBuilder.over(graph), dict[tuple[str, int], str]()
        for number, node in enumerate(graph.nodes):
            operator = node.operator
            firsts = [first for whole, first in copies if whole == node.output]
            if isinstance(operator, Assemble) and firsts:
                starts = tuple((first, 0) for first in firsts)
                operator = Assemble(operator.size, starts, (operator.steps[0], 1))
                inputs = tuple(copies[node.output, first] for first in firsts)
                node = replace(node, operator=operator, inputs=inputs)
            builder.nodes.append(node)
            for row in ready.get(number, ()):
                found = builder.node(row.rows, row.names, f"{row.whole}/rows", node.origin)
                copy = builder.node(COPY, (found,), f"{row.whole}/copy", node.origin)
                copies[row.whole, row.first] = copy
        return builder.build(graph.outputs)

    def _rows(self, graph: Graph, node: Node) -> Iterator[_Row]:
        """The rows of an image that is put together of pixels and does not fit; none of others."""
        whole = node.operator
        if not isinstance(whole, Assemble) or whole.turned or whole.steps[1] == 1:
            return
        (down, across), words = whole.steps, prod(whole.size)
        words *= -(-graph.types[node.output].shape[3] // self.lanes)
        row = words // down
        if words <= self.act_words or row + row // across > SHARE * self.act_words:
            return
        parts = list(zip(node.inputs, whole.starts, strict=True))
        for first in sorted({start[0] for start in whole.starts}):
            names = tuple(name for name, start in parts if start[0] == first)
            starts = tuple((0, start[1]) for _, start in parts if start[0] == first)
            size = graph.types[names[0]].shape[1], whole.size[1]
            yield _Row(node.output, first, names, Assemble(size, starts, (1, across)))
