"""Let every reader find channels where it can read them.

A tensor's channels are in blocks of lanes.  Parts of a concatenation each begin a block, so that
channels of the whole may have gaps between them, and channels of a slice may begin within a block.
What reads such a tensor gets a copy, its channels side by side from a block's first on:

    f(Slice(x))           ->  f(Gather(x))
    f(Concatenate(x, y))  ->  f(Gather(Concatenate(x, y)))

A dense convolution needs no copy of a whole with gaps, nor do layers that keep channels where they
are, if their results are not parts themselves; nor does the host, which takes the channels of
outputs from anywhere.  Each node is visited once, so the pass ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.assembly import Assemble
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Lookup
from ....graph.operators.integer.windows import AveragePool2d, MaxPool2d, Upsample2d
from ....graph.operators.movement import Slice
from ....graph.passes.eliminate_dead import EliminateDead
from ..capabilities import ON_HOST, is_alias
from ..operators import AnyRequantize
from .own_parts import is_channel_concatenation, is_channel_slice
from .split_groups import is_depthwise

__all__ = ["AlignChannels"]

KEEPERS = (MaxPool2d, AveragePool2d, Upsample2d)
"""Layers whose channels are placed as those they read; others are with some attributes."""


@frozen
class _Layout:
    """The lanes of a tensor's channels, counted over the blocks of the tensor ``root`` that it is
    part of, perhaps itself.

    base: a tensor that a layer can read, whose channels from ``first`` on are this one's.
    """

    root: str
    lanes: Sequence[int]
    base: str
    first: int = 0

    def is_dense(self, block: int) -> bool:
        """True if they follow each other from a block's first on."""
        if not self.lanes:
            return True
        start = self.lanes[0]
        return start % block == 0 and self.lanes[-1] - start == len(self.lanes) - 1


@frozen
class AlignChannels:
    """lanes: channels of a block."""

    lanes: int
    name: str = "align_channels"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when all channels are well placed."""
        aligning = _Aligning(graph, self.lanes)
        for node in graph.nodes:
            aligning.visit(node)
        return aligning.build()


@dataclass(slots=True)
class _Aligning:
    graph: Graph
    block: int
    builder: GraphBuilder = field(init=False)
    wholes: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The image that a tensor is part of, and the channel there that is its first."""
    spread: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Lanes of the channels of images made of parts."""
    layouts: dict[str, _Layout] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.graph
        self.builder = GraphBuilder.over(graph)
        for node in graph.nodes:
            first, joins = 0, is_channel_concatenation(node, graph.types[node.output])
            for name in node.inputs if joins or isinstance(node.operator, Assemble) else ():
                self.wholes[name] = node.output, first
                first += graph.types[name].shape[3] if joins else 0
        for name in graph.inputs:
            self.layouts[name] = self.side_by_side(name)
        inner = {whole for whole, _ in self.wholes.values()}
        starts: dict[str, set[int]] = {}
        for name in self.wholes.keys() - inner:
            root, first = self.home(name)
            starts.setdefault(root, set()).add(first)
        for root, found in starts.items():
            self.spread[root] = self.lanes(sorted(found), graph.types[root].shape[3])

    def home(self, name: str) -> tuple[str, int]:
        """The image that ``name`` is part of in the end, perhaps itself, and its first channel."""
        first = 0
        while name in self.wholes:
            name, place = self.wholes[name]
            first += place
        return name, first

    def lanes(self, starts: list[int], channels: int) -> tuple[int, ...]:
        """The lanes of an image whose parts begin at ``starts``: each begins a block."""
        found: list[int] = []
        for start, end in zip(starts, [*starts[1:], channels], strict=True):
            lane = -(-(found[-1] + 1) // self.block) * self.block if found else 0
            found += range(lane, lane + end - start)
        return tuple(found)

    def visit(self, node: Node) -> None:
        """Add a node, with copies of what it cannot read in place."""
        if is_channel_slice(node, self.graph.types):
            self.builder.nodes.append(node)
            self.layouts[node.output] = self.sliced(node)
            return
        if node.output not in self.joined:
            inputs = tuple(self.readable(name, node) for name in node.inputs)
            node = replace(node, inputs=inputs)
        self.builder.nodes.append(node)
        for name in node.outputs:
            self.layouts[name] = self.made(node, name)

    @property
    def joined(self) -> set[str]:
        """Images made of parts."""
        return {whole for whole, _ in self.wholes.values()}

    def made(self, node: Node, name: str) -> _Layout:
        """Places of a result's channels."""
        root, first = self.home(name)
        count = (1, *self.graph.types[name].shape)[-1]
        if root in self.spread:
            return _Layout(root, self.spread[root][first : first + count], name)
        before = self.layouts.get(node.inputs[0]) if node.inputs else None
        if before is not None and self.keeps(node) and not before.is_dense(self.block):
            return replace(before, root=name, base=name)
        return self.side_by_side(name)

    def side_by_side(self, name: str) -> _Layout:
        """The layout of a tensor without gaps that is part of no other."""
        return _Layout(name, range((1, *self.graph.types[name].shape)[-1]), name)

    def sliced(self, node: Node) -> _Layout:
        """Places of a slice's channels."""
        operator, before = node.operator, self.layouts[node.inputs[0]]
        assert isinstance(operator, Slice)
        first, count = operator.starts[3], operator.shape[3]
        lanes = before.lanes[first : first + count]
        if before.root == node.inputs[0] or before.is_dense(self.block):
            return _Layout(before.root, lanes, node.inputs[0], first)
        return _Layout(before.root, lanes, before.base, before.first + first)

    def keeps(self, node: Node) -> bool:
        """True if the channels of a result are placed as those of the first operand."""
        operator = node.operator
        if isinstance(operator, Conv2d):
            return is_depthwise(operator, self.graph.types[node.inputs[1]].shape)
        if isinstance(operator, Lookup):
            return self.graph.types[node.inputs[1]].rank == 1
        return isinstance(operator, (*KEEPERS, AnyRequantize))

    def is_free(self, node: Node) -> bool:
        """True if the result of a layer that ``node`` begins is nobody's part."""
        name = node.output
        while name not in self.wholes:
            readers = self.graph.consumers(name)
            if len(readers) != 1 or not isinstance(readers[0].operator, AnyRequantize | Lookup):
                return True
            name = readers[0].output
        return False

    def readable(self, name: str, node: Node) -> str:
        """``name``, or the copy of it that ``node`` can read."""
        layout, operator = self.layouts.get(name), node.operator
        if layout is None or isinstance(operator, AnyRequantize) or self.is_on_host(node):
            return name
        if layout.root == name and not layout.is_dense(self.block):
            if isinstance(operator, Gather) or (
                isinstance(operator, Conv2d) and operator.groups == 1
            ):
                return name
            if self.keeps(node) and self.is_free(node):
                return name
        return name if layout.is_dense(self.block) else self.copy(name, node.origin)

    def is_on_host(self, node: Node) -> bool:
        """True if the host reads what ``node`` reads: it takes channels from anywhere."""
        return isinstance(node.operator, ON_HOST) and not is_alias(self.graph, node)

    def copy(self, name: str, origin: str) -> str:
        """The channels of ``name``, side by side, as a tensor of their own."""
        if name in self.copies:
            return self.copies[name]
        layout, count = self.layouts[name], self.graph.types[name].shape[-1]
        x, first = layout.base, layout.first
        shape, base = self.graph.types[x].shape, self.layouts[x]
        start = first - first % self.block
        if base.is_dense(self.block) and (start, first + count) != (0, shape[3]):
            part = Slice((0, 0, 0, start), (1, 1, 1, 1), (*shape[:3], first + count - start))
            x, first = self.builder.node(part, (x,), f"{name}/blocks", origin), first - start
        places = self.builder.constant(f"{name}/places", np.arange(first, first + count))
        self.copies[name] = self.builder.node(Gather(3), (x, places), f"{name}/aligned", origin)
        return self.copies[name]

    def build(self) -> Graph:
        """The graph."""
        if not self.copies:
            return self.graph
        return EliminateDead().run(self.builder.build(self.graph.outputs))
