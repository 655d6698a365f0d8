"""Heads that begin and fill blocks, where the layer that makes them can do that.

    Slice(Requantize(Conv2d(x, w)))          ->  the same of more channels, each slice at a block
    Spread(Slice(Requantize(Conv2d(x, w))))  ->  Slice(Requantize(Conv2d(x, more rows of w)))

Tables and copies of pixels may stand between.  A channel that is new has weights of 0, and the bias
gives it the byte that is wanted.  A result that is read in any other way stays unchanged.  Each
step takes away what spreads channels, so the pass ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Array, Graph, GraphBuilder, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Lookup, Requantize
from ....graph.operators.integer.windows import AveragePool2d
from ....graph.operators.movement import Slice
from ....graph.passes.eliminate_dead import EliminateDead
from .own_parts import is_channel_slice
from .spread import Spread, find_spread

__all__ = ["HeadLanes"]

Span = tuple[int, int]
"""Channels of a result: the first, and the one behind the last."""

Fill = tuple[int, int]
"""With how many channels a head is wanted, and with which byte in those that are new."""


Wanted = dict[Span, set[Fill | None]]
"""Fills that the readers of each head want; None if only its own channels are wanted."""


@frozen
class _Layout:
    """Channels of a wider result.

    places: for each head its first channel there, and how many it gets.
    sources: for each channel the one that it was, -1 for a new one.  blanks: the bytes of these.
    """

    places: dict[Span, tuple[int, int]]
    sources: Array
    blanks: Array


@frozen
class HeadLanes:
    """lanes: of a block."""

    lanes: int
    name: str = "head_lanes"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing is spread."""
        layouts: dict[str, _Layout] = {}
        for node in graph.nodes:
            if _is_dense(graph, node):
                heads = _heads(graph, node.output)
                if any(map(_fill, heads.values())) and _are_apart(heads):
                    layouts[node.output] = self.layout(heads, node)
        return _Widening(graph, layouts).run() if layouts else graph

    def layout(self, heads: Wanted, node: Node) -> _Layout:
        """Each head at the beginning of a block."""
        assert isinstance(node.operator, Requantize)
        places: dict[Span, tuple[int, int]] = {}
        sources, blanks = list[int](), list[int]()
        for (first, end), wanted in sorted(heads.items()):
            count, blank = _fill(wanted) or (end - first, node.operator.zero_point)
            places[first, end] = len(sources), count
            more = -(-count // self.lanes) * self.lanes - (end - first)
            sources += [*range(first, end), *[-1] * more]
            blanks += [blank] * (end - first + more)
        last = sum(max(places.values()))
        return _Layout(places, np.array(sources[:last]), np.array(blanks[:last]))


def _is_dense(graph: Graph, node: Node) -> bool:
    """True if ``node`` requantises a convolution that can be given more channels."""
    if not isinstance(node.operator, Requantize) or node.output in graph.outputs:
        return False
    total = graph.producer(node.inputs[0])
    if total is None or not isinstance(total.operator, Conv2d) or total.operator.groups != 1:
        return False
    return len(graph.consumers(total.output)) == 1 and find_spread(graph, node) is None


def _are_apart(heads: Wanted) -> bool:
    return all(end <= start for (_, end), (start, _) in pairwise(sorted(heads)))


def _fill(wanted: set[Fill | None]) -> Fill | None:
    """The fill that all readers of a head want."""
    return next(iter(wanted)) if len(wanted) == 1 else None


def _heads(graph: Graph, name: str) -> Wanted:
    """The heads of a result."""
    found: Wanted = {}
    finish = graph.producer(name)
    assert finish is not None
    assert isinstance(finish.operator, Requantize)
    given = np.arange(finish.operator.low, finish.operator.high + 1)
    whole = (0, graph.types[name].shape[3])
    for span, spread, made in _readers(graph, name, None, given):
        fill = None
        if spread is not None and spread.blank in made:
            fill = spread.count, int(given[made == spread.blank][0])
        found.setdefault(span or whole, set()).add(fill)
    return found


def _readers(
    graph: Graph, name: str, span: Span | None, made: Array
) -> Iterator[tuple[Span | None, Spread | None, Array]]:
    """The channels that each reader reads, None for all; how it spreads them, if it does; and what
    tables before it make of the bytes of a result.

    made: what they make up to ``name``.
    """
    if name in graph.outputs:
        yield span, None, made
    for node in graph.consumers(name):
        if span is None and is_channel_slice(node, graph.types):
            assert isinstance(node.operator, Slice)
            first = node.operator.starts[3]
            own = first, first + node.operator.shape[3]
            yield from _readers(graph, node.output, own, made)
        elif (table := _table(graph, node)) is not None:
            yield from _readers(graph, node.output, span, table[made + 128])
        else:
            yield span, _spread_by(graph, node), made


def _table(graph: Graph, node: Node) -> Array | None:
    """The bytes that ``node`` makes of all bytes, in every channel alike; None for others."""
    operator = node.operator
    if isinstance(operator, Lookup) and node.inputs[1] in graph.constants:
        table = graph.constants[node.inputs[1]]
        return table.astype(np.int64) if table.ndim == 1 else None
    if isinstance(operator, AveragePool2d) and operator.kernel == (1, 1):
        same = operator.scale == 1 and operator.x_zero_point == operator.zero_point
        return np.arange(-128, 128) if same else None
    return None


def _spread_by(graph: Graph, node: Node) -> Spread | None:
    """The spread of the layer that ``node`` begins; None where an output is spread, which nothing
    else may stand for.
    """
    readers = graph.consumers(node.output)
    if len(readers) != 1 or readers[0].output in graph.outputs:
        return None
    return find_spread(graph, readers[0])


@dataclass(slots=True)
class _Widening:
    graph: Graph
    layouts: dict[str, _Layout]
    builder: GraphBuilder = field(init=False)
    made: dict[str, str] = field(default_factory=dict)
    """Replacements of tensors that are rewritten."""
    homes: dict[str, str] = field(default_factory=dict)
    """For a tensor that has all channels of a wider result, this one."""
    filled: set[str] = field(default_factory=set)
    """Tensors that have their new channels already."""

    def __post_init__(self) -> None:
        self.builder = GraphBuilder.over(self.graph)

    def run(self) -> Graph:
        """The rewritten graph."""
        for node in self.graph.nodes:
            self.visit(node)
        return EliminateDead().run(self.builder.build(self.graph.outputs))

    def visit(self, node: Node) -> None:
        """Add a node, or what stands for it."""
        x = node.inputs[0] if node.inputs else ""
        if node.output in self.layouts:
            self.widen(node, self.layouts[node.output])
        elif x in self.homes and is_channel_slice(node, self.graph.types):
            self.cut(node)
        elif x in self.made and _table(self.graph, node) is not None:
            self.keep(node)
        elif x in self.filled:
            # What spreads it: nothing is left to be done.
            (last,) = self.graph.consumers(node.output)
            self.made[last.output] = self.made[x]
        elif node.output not in self.made:
            inputs = tuple(self.made.get(name, name) for name in node.inputs)
            self.builder.nodes.append(replace(node, inputs=inputs))

    def widen(self, node: Node, layout: _Layout) -> None:
        """Add a convolution with the channels of ``layout``."""
        total = self.graph.producer(node.inputs[0])
        assert total is not None
        assert isinstance(node.operator, Requantize)
        assert isinstance(total.operator, Conv2d)
        graph, builder, stem, new = self.graph, self.builder, node.output, layout.sources < 0
        weights, bias = (graph.constants[name][layout.sources] for name in total.inputs[1:])
        (scale,) = (graph.constants[name][layout.sources] for name in node.inputs[1:])
        weights[new], scale[new] = total.operator.weight_zero_point, 1
        bias[new] = layout.blanks[new] - node.operator.zero_point
        inputs = (
            total.inputs[0],
            builder.constant(f"{stem}/weights", weights),
            builder.constant(f"{stem}/bias", bias),
        )
        sums = builder.node(total.operator, inputs, f"{stem}/sum", total.origin)
        scales = builder.constant(f"{stem}/scale", scale)
        wide = builder.node(node.operator, (sums, scales), f"{stem}/heads", node.origin)
        self.made[stem], self.homes[stem] = wide, stem
        whole = (0, graph.types[stem].shape[3])
        if whole in layout.places and layout.places[whole][1] != whole[1]:
            self.filled.add(stem)

    def cut(self, node: Node) -> None:
        """Add a slice of a wider result."""
        operator, x = node.operator, node.inputs[0]
        assert isinstance(operator, Slice)
        first, channels = operator.starts[3], operator.shape[3]
        place, count = self.layouts[self.homes[x]].places[first, first + channels]
        slice_ = Slice((0, 0, 0, place), operator.steps, (*operator.shape[:3], count))
        self.made[node.output] = self.add(replace(node, operator=slice_, inputs=(self.made[x],)))
        if count != channels:
            self.filled.add(node.output)

    def keep(self, node: Node) -> None:
        """Add what makes the same channels of rewritten ones."""
        x, *rest = node.inputs
        self.made[node.output] = self.add(replace(node, inputs=(self.made[x], *rest)))
        if x in self.homes:
            self.homes[node.output] = self.homes[x]
        if x in self.filled:
            self.filled.add(node.output)

    def add(self, node: Node) -> str:
        """Add what stands for a node; an output, which gets no new channels, keeps its name."""
        if node.output in self.graph.outputs:
            self.builder.nodes.append(node)
            return node.output
        return self.builder.node(node.operator, node.inputs, node.output, node.origin)
