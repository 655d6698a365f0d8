"""Attention of one token over a cache of keys and values, the heads that fill blocks at once.

A head of 8 channels is half a block of 16 lanes.  So the keys of several heads lie side by side, as
the rows ``K`` of one product, and each row of ``Q`` has the channels of one head, and zero points in
those of all others.  Each row of ``P V`` then has more than its head's channels; a depthwise layer
leaves the others out.

    q, k = one row for each head       ->  Q[1, 1, G * heads, C], k[1, 1, 1, C], in one order of C
    Concatenate(past, k)               ->  K = Append(past[1, 1, T, C], k)
    Concatenate(past, v), transposed   ->  V = Append(past[1, 1, C, T], 1 v), 1 unit vectors
    RowProducts(q, K), f, RowSoftmax, RowProducts(p, V)
                                       ->  the same of one matrix, and the depthwise layer
    Dense(Reshape(...))                ->  Conv2d over the G rows that are left

What is behind the first new row of a cache the host leaves free; the program puts it there.  Rows of
``Q`` get their zero points from the host: rotary positions multiply by its cosines and sines, which
are zero in other heads' channels.  Attention that this does not suit stays as it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ....graph.ir import Graph, GraphBuilder
from ....graph.operators.assembly import Append, Assemble
from ....graph.operators.integer.products import Conv2d, Dense, RowProducts
from ....graph.operators.integer.values import Requantize
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.windows import MaxPool2d, Upsample2d
from ....graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from ....graph.passes.eliminate_dead import EliminateDead
from .find_attention import Attention, find_attention
from .lanes import MOVES, Element, Lanes, NoLanesError

COPY = MaxPool2d((1, 1), (1, 1), (0, 0, 0, 0))

__all__ = ["CachedAttention"]


@dataclass(frozen=True, slots=True)
class CachedAttention:
    """lanes: of a block."""

    lanes: int
    name: str = "cached_attention"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when it has no such attention."""
        found = list(find_attention(graph))
        while found:
            rewriting = _Rewriting(graph, self.lanes, found)
            try:
                return rewriting.run()
            except NoLanesError:
                # The one that was not suitable stays; so this ends.
                found.remove(rewriting.current)
        return graph


@dataclass(frozen=True, slots=True)
class _Group:
    """Heads whose keys lie side by side: the number of the first, how many; elements of a head in
    the order in which they are channels, of which ``parts`` runs each have all heads.
    """

    first: int
    heads: int
    order: tuple[int, ...]
    parts: int

    @property
    def channels(self) -> list[tuple[int, int]]:
        """Head, counted from the first, and element of each channel."""
        size = len(self.order) // self.parts
        runs = [self.order[start : start + size] for start in range(0, len(self.order), size)]
        return [(head, each) for run in runs for head in range(self.heads) for each in run]


class _Rewriting:
    """current: the attention that is being rewritten."""

    def __init__(self, graph: Graph, block: int, found: Sequence[Attention]) -> None:
        types = {name: graph.types[name] for name in (*graph.inputs, *graph.constants)}
        self.graph, self.block, self.current = graph, block, found[0]
        self.builder = GraphBuilder(list(graph.inputs), [], dict(graph.constants), types)
        self.names = {name: name for name in types}
        self.lanes = Lanes(graph, self.builder, self.read, block)
        self.dense = {each.dense.output: each for each in found}
        self.rows: dict[str, tuple[Attention, str]] = {}
        self.copies: dict[str, str] = {}
        for each in found:
            self.current = each
            self._keep_rows(each)
        self.wanted = frozenset(self._behind_rows())

    def run(self) -> Graph:
        """Raises NoLanesError."""
        for node in self.graph.nodes:
            for name in node.outputs:
                self.read(name)
        outputs = [self.names[name] for name in self.graph.outputs]
        self.builder.export(outputs, self.graph.outputs)
        return EliminateDead().run(self.builder.build(self.graph.outputs))

    def read(self, name: str) -> str:
        """The tensor ``name`` in the new graph, and what it is made of before it."""
        if name in self.names:
            return self.names[name]
        node = self.graph.producer(name)
        assert node is not None
        if name in self.dense:
            self.current = self.dense[name]
            self.names[name] = self.attention(self.current)
        elif name in self.wanted and (moved := self.moved(name)):
            self.names[name] = moved
        else:
            inputs = tuple(self.read(each) for each in node.inputs)
            made = self.builder.node_outputs(node.operator, inputs, node.output, node.origin)
            self.names.update(zip(node.outputs, made, strict=True))
        return self.names[name]

    def groups(self, each: Attention) -> list[_Group]:
        """As few heads together as fill blocks.

        Raises NoLanesError.
        """
        heads, _, size = each.shape
        query, key = (
            self.lanes.elements(name).reshape(-1, size)[0]
            for name in (each.scores.inputs[0], each.keys.new)
        )
        signs = [(self.lanes.signature(query[e]), self.lanes.signature(key[e])) for e in range(size)]
        kinds = list(dict.fromkeys(signs))
        order = tuple(sorted(range(size), key=lambda e: kinds.index(signs[e])))
        sizes = {signs.count(kind) for kind in kinds}
        together = [
            n for n in range(1, heads + 1) if heads % n == 0 and n * min(sizes) % self.block == 0
        ]
        if len(sizes) > 1 or not together or each.past % self.block:
            raise NoLanesError("heads or positions that fill no blocks")
        return [
            _Group(first, together[0], order, len(kinds))
            for first in range(0, heads, together[0])
        ]

    def _keep_rows(self, each: Attention) -> None:
        """Let whatever else reads keys or values read what the attention computes."""
        for tensor in (each.keys.new, each.values.new):
            for base in {name for name, _ in self.lanes.elements(tensor).reshape(-1)}:
                self.rows[base] = each, tensor

    def _behind_rows(self) -> Iterator[str]:
        """Keys and values, and what is moved of them, as far as it is not joined with others."""
        found = set(self.rows)
        for node in self.graph.nodes:
            if isinstance(node.operator, MOVES) and found.issuperset(node.inputs):
                found.update(node.outputs)
        yield from found

    def rows_of(self, each: Attention, tensor: str, group: _Group) -> tuple[str, list[Element]]:
        """The new row of keys or values of a group of heads, [1, 1, 1, C], and what its channels
        are.
        """
        size = each.shape[2]
        of_head = self.lanes.elements(tensor).reshape(-1, size)
        channels = group.channels if tensor == each.keys.new else plain_channels(group)
        elements = [of_head[group.first + head, place] for head, place in channels]
        self.lanes.prepare(elements)
        return self.lanes.image(elements).name, elements

    def moved(self, name: str) -> str | None:
        """A tensor whose elements are those of new rows; None for another one."""
        elements = self.lanes.elements(name)
        found = {self.rows.get(base) for base, _ in elements.reshape(-1)}
        if len(found) > 1 or None in found:
            return None
        ((self.current, tensor),) = (each for each in found if each is not None)
        each, parts, order = self.current, list[str](), list[Element]()
        for group in self.groups(each):
            row, channels = self.rows_of(each, tensor, group)
            if row not in self.copies:
                copy = self.builder.node(COPY, (row,), f"{tensor}/copy", tensor)
                flat = Reshape((len(channels),))
                self.copies[row] = self.builder.node(flat, (copy,), f"{tensor}/flat", tensor)
            parts.append(self.copies[row])
            order += channels
        builder, places = self.builder, {channel: n for n, channel in enumerate(order)}
        if any(element not in places for element in elements.reshape(-1)):
            raise NoLanesError("a tensor that is more than keys or values")
        flat = parts[0]
        if len(parts) > 1:
            flat = builder.node(Concatenate(0), tuple(parts), f"{name}/parts", name)
        index = np.array([places[element] for element in elements.reshape(-1)])
        if not np.array_equal(index, np.arange(len(order))):
            constant = builder.constant(f"{name}/order", index)
            flat = builder.node(Gather(0), (flat, constant), f"{name}/ordered", name)
        return builder.node(Reshape(elements.shape), (flat,), name, name)

    def attention(self, each: Attention) -> str:
        """What the dense layer behind it makes."""
        heads, rows, size = each.shape
        mixes = tuple(self.mixed(each, group) for group in self.groups(each))
        builder, origin, dense = self.builder, each.dense.origin, each.dense
        mix = mixes[0]
        if len(mixes) > 1:
            mix = builder.node(Concatenate(3), mixes, f"{each.result.output}/heads", origin)
        weights = self.graph.constants[dense.inputs[1]]
        kernel = np.empty((len(weights), 1, rows, heads * size), np.int8)
        for place, (name, element) in enumerate(self.lanes.elements(dense.inputs[0]).reshape(-1)):
            if name != each.result.output:
                raise NoLanesError("a dense layer of more than an attention")
            head, row, channel = np.unravel_index(element, each.shape)
            kernel[:, 0, row, head * size + channel] = weights[:, place]
        assert isinstance(dense.operator, Dense)
        zero_points = dense.operator.zero_point, dense.operator.weight_zero_point
        constant = builder.constant(f"{dense.output}/kernel", kernel)
        conv = Conv2d((1, 1), (0, 0, 0, 0), 1, *zero_points)
        inputs = (mix, constant, self.read(dense.inputs[2]))
        name = builder.node(conv, inputs, f"{dense.output}/sum", origin)
        shape = Reshape(self.graph.types[dense.output].shape)
        return builder.node(shape, (name,), dense.output, origin)

    def mixed(self, each: Attention, group: _Group) -> str:
        """The results of a group of heads: [1, 1, rows, heads * size]."""
        builder, origin, stem = self.builder, each.mix.origin, each.mix.output
        operator = each.mix.operator
        assert isinstance(operator, RowProducts)
        finish, constants = each.result.operator, self.graph.constants
        assert isinstance(finish, Requantize)
        values = self.values(each, group, operator.y_zero_point)
        share = self.shares(each, group)
        name = builder.node(operator, (share, values), f"{stem}/heads", origin)
        count = group.heads * each.shape[2]
        scale = constants[each.result.inputs[1]]
        inputs = (name, builder.constant(f"{stem}/scale", np.full(count, scale[0])))
        name = builder.node(finish, inputs, f"{stem}/mixed", each.result.origin)
        if group.heads == 1:
            return name
        own = np.zeros((count, 1, group.heads, 1), np.int8)
        for channel, (head, _) in enumerate(plain_channels(group)):
            own[channel, 0, head] = 1
        conv = Conv2d((1, group.heads), (0, 0, 0, 0), count, finish.zero_point)
        inputs = (
            name,
            builder.constant(f"{stem}/own", own),
            builder.constant(f"{stem}/bias", np.zeros(count, np.int32)),
        )
        name = builder.node(conv, inputs, f"{stem}/own", origin)
        ones = builder.constant(f"{stem}/ones", np.ones(count, np.float32))
        same = Requantize(finish.zero_point, -128, 127)
        return builder.node(same, (name, ones), f"{stem}/picked", origin)

    def shares(self, each: Attention, group: _Group) -> str:
        """What softmax makes of the scores: [1, 1, rows * heads, positions]."""
        builder, constants, origin = self.builder, self.graph.constants, each.scores.origin
        query, keys = self.queries(each, group), self.keys(each, group)
        name = builder.node(each.scores.operator, (query, keys), each.scores.output, origin)
        count = each.past + 1
        scale = np.full(count, constants[each.finish.inputs[1]][0])
        inputs = (name, builder.constant(f"{each.finish.output}/scale", scale))
        name = builder.node(each.finish.operator, inputs, each.finish.output, each.finish.origin)
        for table in each.tables:
            inputs = (name, self.read(table.inputs[1]))
            name = builder.node(table.operator, inputs, table.output, table.origin)
        if each.mask is not None:
            node, side = each.mask
            pair = [name, name]
            pair[side] = self.mask(each, node.inputs[side], each.shape[1] * group.heads)
            name = builder.node(node.operator, tuple(pair), node.output, node.origin)
        softmax = each.softmax
        return builder.node(softmax.operator, (name,), softmax.output, softmax.origin)

    def mask(self, each: Attention, name: str, rows: int) -> str:
        """A mask of positions, for each row: [1, 1, rows, positions].

        Raises NoLanesError where rows have masks of their own.
        """
        elements = self.lanes.elements(name).reshape(-1, each.past + 1)
        row = list(elements[0])
        if any(list(other) != row for other in elements):
            raise NoLanesError("a mask for each row")
        whole = self.lanes.given(row, np.ones((1, len(row)), bool), 0)
        if rows == 1:
            return whole
        return self.builder.node(Upsample2d((1, rows)), (whole,), f"{name}/rows", each.mix.origin)

    def queries(self, each: Attention, group: _Group) -> str:
        """Rows of one head's query each: [1, 1, rows * heads, channels]."""
        _, rows, size = each.shape
        elements = self.lanes.elements(each.scores.inputs[0]).reshape(-1, rows, size)
        channels = group.channels
        own = np.array([[head == n for head, _ in channels] for n in range(group.heads)])
        runs = len(channels) // group.parts
        self.lanes.prepare(
            *(
                [elements[group.first + h, row, e] for h, e in channels]
                for row in range(rows)
                for group in self.groups(each)
            )
        )
        parts: list[str] = []
        for start in range(0, len(channels), runs):
            images = []
            for row in range(rows):
                run = [elements[group.first + h, row, e] for h, e in channels[start:][:runs]]
                image = self.lanes.image(run, own[:, start : start + runs])
                if group.heads > 1 and image.blank != each.scores.operator.x_zero_point:
                    raise NoLanesError("queries whose zero is not their zero point")
                images.append(image.name)
            name = images[0]
            if rows > 1:
                starts = tuple((0, row * group.heads) for row in range(rows))
                whole = Assemble((1, rows * group.heads), starts, (1, 1))
                name = self.builder.node(whole, tuple(images), f"{name}/rows", each.scores.origin)
            parts.append(name)
        if len(parts) == 1:
            return parts[0]
        stem = f"{each.scores.inputs[0]}/heads"
        return self.builder.node(Concatenate(3), tuple(parts), stem, each.scores.origin)

    def keys(self, each: Attention, group: _Group) -> str:
        """Rows of the cache, and the new one: [1, 1, positions, channels]."""
        heads, _, size = each.shape
        builder, origin, past = self.builder, each.scores.origin, each.keys.past
        stem = f"{past}/rows"
        name = self.heads_of(each, past, group)
        if group.order != tuple(range(size)):
            order = builder.constant(f"{stem}/order", np.array(group.order))
            name = builder.node(Gather(2), (name, order), stem, origin)
        apart = (group.heads, each.past, group.parts, size // group.parts)
        name = builder.node(Reshape(apart), (name,), stem, origin)
        name = builder.node(Transpose((1, 2, 0, 3)), (name,), stem, origin)
        count = group.heads * size
        name = builder.node(Reshape((each.past, count)), (name,), stem, origin)
        name = self.with_room(name, 0, stem, origin)
        room = builder.types[name].shape[0]
        name = builder.node(Reshape((1, 1, room, count)), (name,), stem, origin)
        new, _ = self.rows_of(each, each.keys.new, group)
        return builder.node(Append(2, each.past), (name, new), f"{past}/joined", origin)

    def values(self, each: Attention, group: _Group, zero_point: int) -> str:
        """Columns of the cache, and the new one: [1, 1, channels, positions]."""
        _, _, size = each.shape
        builder, origin, past = self.builder, each.mix.origin, each.values.past
        stem, count = f"{past}/columns", group.heads * size
        name = self.heads_of(each, past, group)
        name = builder.node(Transpose((0, 2, 1)), (name,), stem, origin)
        name = builder.node(Reshape((count, each.past)), (name,), stem, origin)
        name = self.with_room(name, 1, stem, origin)
        room = builder.types[name].shape[1]
        name = builder.node(Reshape((1, 1, count, room)), (name,), stem, origin)
        new, _ = self.rows_of(each, each.values.new, group)
        unit = builder.constant(f"{stem}/unit", np.eye(count, dtype=np.int8)[None, None])
        new = builder.node(RowProducts(0, zero_point), (unit, new), f"{stem}/new", origin)
        one = builder.constant(f"{stem}/scale", np.ones(1, np.float32))
        same = Requantize(zero_point, -128, 127)
        new = builder.node(same, (new, one), f"{stem}/new", origin)
        return builder.node(Append(3, each.past), (name, new), f"{past}/joined", origin)

    def heads_of(self, each: Attention, past: str, group: _Group) -> str:
        """The heads of a group: [heads, positions, size]."""
        heads, _, size = each.shape
        stem, builder = f"{past}/heads", self.builder
        name = self.read(past)
        whole = (heads, each.past, size)
        if builder.types[name].shape != whole:
            name = builder.node(Reshape(whole), (name,), stem, past)
        if group.heads == heads:
            return name
        cut = Slice((group.first, 0, 0), (1, 1, 1), (group.heads, each.past, size))
        return builder.node(cut, (name,), stem, past)

    def with_room(self, name: str, axis: int, stem: str, origin: str) -> str:
        """Positions of a cache, and so many behind them that the next one begins a block."""
        shape = list(self.builder.types[name].shape)
        shape[axis] = self.block
        more = self.builder.constant(f"{stem}/room", np.zeros(shape, np.int8))
        return self.builder.node(Concatenate(axis), (name, more), stem, origin)


def plain_channels(group: _Group) -> list[tuple[int, int]]:
    """Head and element of each channel, head by head."""
    return [(head, place) for head in range(group.heads) for place in range(len(group.order))]
