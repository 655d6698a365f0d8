"""Convolutions whose channels are read in parts, as one convolution for each part.

    Slice(f(Requantize(Conv2d(x, w))))  ->  f(Requantize(Conv2d(x, rows of w)))

Each part then has a halo as wide as its own readers need, and as many rows on chip; it may be
written in place of a concatenation, and a table behind it is part of its layer.  f is a Lookup, or
nothing.  Only where one of these is gained are convolutions rewritten, and then none is cut again,
so the pass ends.
"""

from itertools import pairwise

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, Node
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Lookup
from ....graph.operators.integer.windows import AveragePool2d, MaxPool2d
from ....graph.operators.movement import Concatenate, Slice
from ....graph.rewrite import Rewriter, rewrite
from ..operators import AnyAdd, AnyMultiply, AnyRequantize
from .own_parts import is_channel_concatenation, is_channel_slice

__all__ = ["OwnChannels"]

READERS = (Conv2d, MaxPool2d, AveragePool2d, AnyAdd, AnyMultiply, Lookup, RowNorm, Concatenate)
"""Operators that may read a part."""

MOST_MORE = 4
"""A part of the blocks of channels: by so many there may be more, as each part begins its own."""


@frozen
class OwnChannels:
    """lanes: channels of a block."""

    lanes: int
    name: str = "own_channels"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when no convolution is read so."""
        return rewrite(graph, (self._own,), reach=0)

    def _own(self, rewriter: Rewriter, node: Node) -> str | None:
        graph, builder = rewriter.graph, rewriter.builder
        part = _part(graph, node)
        last = graph.producer(node.inputs[0]) if part else None
        finish = last
        if last is not None and isinstance(last.operator, Lookup):
            shared = graph.types[last.inputs[1]].rank > 1
            finish = None if shared else rewriter.producer(last.inputs[0])
        if part is None or last is None or finish is None:
            return None
        if not isinstance(finish.operator, AnyRequantize):
            return None
        total = rewriter.producer(finish.inputs[0])
        if total is None or not isinstance(total.operator, Conv2d) or total.operator.groups > 1:
            return None
        if any(name not in graph.constants for name in (*total.inputs[1:], *finish.inputs[1:])):
            return None
        if not self._is_worth_it(graph, last.output):
            return None
        own = slice(part.start, part.stop)
        weights, bias, *more = (*total.inputs[1:], *finish.inputs[1:])
        rows = builder.constant(f"{node.output}/rows", graph.constants[weights][own])
        rest = [
            builder.constant(f"{node.output}/part", graph.constants[name][..., own])
            for name in (bias, *more)
        ]
        sums = (total.inputs[0], rows, rest[0])
        found = builder.node(total.operator, sums, f"{node.output}/sum", total.origin)
        stem = node.output if finish is last else f"{node.output}/bytes"
        found = builder.node(finish.operator, (found, *rest[1:]), stem, finish.origin)
        if finish is not last:
            found = builder.node(last.operator, (found, last.inputs[1]), node.output, last.origin)
        return found

    def _is_worth_it(self, graph: Graph, name: str) -> bool:
        """True if parts of a tensor that others read are better made one by one."""
        _, height, *_, channels = graph.types[name].shape
        slices = graph.consumers(name)
        parts = [_part(graph, each) for each in slices]
        if height == 1 or name in graph.outputs or None in parts:
            return False
        found = sorted((each.start, each.stop) for each in parts if each)
        if any(stop > start for (_, stop), (start, _) in pairwise(found)):
            return False
        blocks = sum(-(-(stop - start) // self.lanes) for start, stop in found)
        before = -(-channels // self.lanes)
        if len(found) == 1 or MOST_MORE * (blocks - before) > before:
            return False
        readers = [each for part in slices for each in graph.consumers(part.output)]
        if any(part.output in graph.outputs for part in slices):
            return False
        return all(isinstance(each.operator, READERS) for each in readers) and any(
            _gains(graph, each) for each in readers
        )


def _part(graph: Graph, node: Node) -> range | None:
    """The channels that ``node`` cuts out of an image, if it does."""
    if not isinstance(node.operator, Slice):
        return None
    if not is_channel_slice(node, graph.types):
        return None
    first = node.operator.starts[3]
    return range(first, first + node.operator.shape[3])


def _gains(graph: Graph, reader: Node) -> bool:
    """True if a layer reads windows, is part of the one before, or takes its operand as it is."""
    operator = reader.operator
    match operator:
        case Conv2d():
            return max(graph.types[reader.inputs[1]].shape[1:3]) > 1
        case MaxPool2d() | AveragePool2d():
            return max(operator.kernel) > 1
        case Lookup():
            return True
        case _:
            return is_channel_concatenation(reader, graph.types[reader.output])
