"""Heads of an attention that are side by side: their queries, keys, values, scores and results."""

from collections.abc import Callable, Sequence
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, GraphBuilder
from ....graph.operators.assembly import Append, Assemble
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.products import Conv2d, RowProducts
from ....graph.operators.integer.values import Multiply, Requantize
from ....graph.operators.integer.windows import Upsample2d
from ....graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from .find_attention import Attention, Cache
from .group_channels import Group, plain_channels
from .lane_elements import Element, NoLanesError
from .lanes import Lanes

__all__ = ["HeadGroups"]


@frozen
class HeadGroups:
    """graph: that has the attention.  builder: of the new graph; read: the name there of a tensor.
    block: channels of a block.
    """

    graph: Graph
    builder: GraphBuilder
    lanes: Lanes
    read: Callable[[str], str]
    block: int

    def groups(self, each: Attention) -> list[Group]:
        """As few heads together as fill blocks; all of them several times where no number does.

        Raises NoLanesError.
        """
        heads, _, size = each.shape
        query, key = self.queries_of(each)[0, 0], self.new_of(each, each.keys.new)[0]
        signs = [
            (self.lanes.signature(query[e]), self.lanes.signature(key[e])) for e in range(size)
        ]
        kinds = list(dict.fromkeys(signs))
        order = tuple(sorted(range(size), key=lambda e: kinds.index(signs[e])))
        sizes = tuple(signs.count(kind) for kind in kinds)
        least = self.block // gcd(*sizes, self.block)
        together = next((n for n in range(1, heads) if heads % n == 0 == n % least), heads)
        times = lcm(together, least) // together
        return [Group(first, together, order, sizes, times) for first in range(0, heads, together)]

    def queries_of(self, each: Attention) -> NDArray[np.object_]:
        """Elements of the first token's queries: [heads, rows, size].  Raises NoLanesError."""
        elements = self.lanes.elements.of(each.scores.inputs[0])
        return self.lanes.of_token(each.rows(elements, each.shape[2]), 1)

    def new_of(self, each: Attention, tensor: str) -> NDArray[np.object_]:
        """Elements of the first token's keys or values: [heads, size].  Raises NoLanesError."""
        heads, _, size = each.shape
        cache = each.keys if tensor == each.keys.new else each.values
        elements = self.lanes.elements.of(tensor).transpose(cache.order)
        elements = elements.reshape(heads, each.tokens, size)
        return self.lanes.of_token(elements, 1)

    def rows_of(self, each: Attention, tensor: str, group: Group) -> tuple[str, list[Element]]:
        """The new rows of keys or values of a group of heads, [1, 1, tokens, C], and what their
        channels are, those of the first token first.
        """
        of_head = self.new_of(each, tensor)
        channels = group.channels if tensor == each.keys.new else plain_channels(group)
        elements = [of_head[group.first + head, place] for head, place in channels]
        self.lanes.prepare(elements)
        every = self.lanes.every_token(elements)
        return self.lanes.image(elements).name, [element for token in every for element in token]

    def mixed(self, each: Attention, group: Group) -> str:
        """The results of a group of heads: [1, 1, rows, heads * size].

        Of several tokens: [1, 1, tokens * rows * heads, heads * size], where each row has one head.
        """
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
        if group.heads == 1 or each.tokens > 1:
            return name
        own = np.zeros((count, 1, group.heads, 1), np.int8)
        for channel, (head, _) in enumerate(plain_channels(group)):
            own[channel, 0, head] = 1
        conv = Conv2d((1, group.heads), (0, 0, 0, 0), count, finish.zero_point)
        weights = builder.constant(f"{stem}/own", own)
        bias = builder.constant(f"{stem}/bias", np.zeros(count, np.int32))
        name = builder.node(conv, (name, weights, bias), f"{stem}/own", origin)
        ones = builder.constant(f"{stem}/ones", np.ones(count, np.float32))
        same = Requantize(finish.zero_point, -128, 127)
        return builder.node(same, (name, ones), f"{stem}/picked", origin)

    def shares(self, each: Attention, group: Group) -> str:
        """The softmax of the scores: [1, 1, rows * heads, positions]."""
        builder, constants, origin = self.builder, self.graph.constants, each.scores.origin
        query, keys = self.queries(each, group), self.keys(each, group)
        name = builder.node(each.scores.operator, (query, keys), each.scores.output, origin)
        count = each.past + each.tokens
        scale = np.full(count, constants[each.finish.inputs[1]][0])
        inputs = (name, builder.constant(f"{each.finish.output}/scale", scale))
        name = builder.node(each.finish.operator, inputs, each.finish.output, each.finish.origin)
        for step in each.steps:
            node, pair = step.node, [name, name]
            given = 1 if step.given is None else step.given
            pair[given] = (
                self.read(node.inputs[1])
                if step.given is None
                else self.bias(each, group, node.inputs[given], self.graph.types[node.output].shape)
            )
            name = builder.node(node.operator, tuple(pair), node.output, node.origin)
        softmax = each.softmax
        return builder.node(softmax.operator, (name,), softmax.output, softmax.origin)

    def bias(self, each: Attention, group: Group, name: str, shape: tuple[int, ...]) -> str:
        """A bias of the scores of a group of heads, such as a mask: [1, 1, rows * heads,
        positions], those of the first token first.  The host gives rows that follow each other
        and are the same only once.

        shape: of all scores.  Raises NoLanesError.
        """
        size = each.past + each.tokens
        elements = np.broadcast_to(self.lanes.elements.of(name), shape)
        own = each.rows(elements, size)[group.first : group.first + group.heads]
        rows = own.transpose(1, 2, 0, 3).reshape(-1, size).tolist()
        for same in (each.shape[1] * group.heads, group.heads, 1):
            if all(row == rows[n - n % same] for n, row in enumerate(rows)):
                break
        whole = self.lanes.given_rows(rows[::same])
        if same == 1:
            return whole
        return self.builder.node(Upsample2d((1, same)), (whole,), f"{name}/rows", each.mix.origin)

    def queries(self, each: Attention, group: Group) -> str:
        """Rows of one head's query each: [1, 1, tokens * rows * heads, channels]."""
        rows = each.shape[1]
        operator = each.scores.operator
        assert isinstance(operator, RowProducts)
        elements = self.queries_of(each)
        channels, own = group.channels, group.own
        self.lanes.prepare(
            *(
                [elements[group.first + h, row, e] for h, e in channels]
                for row in range(rows)
                for group in self.groups(each)
            )
        )
        parts, end = list[str](), 0
        for size in group.sizes:
            start, end = end, end + size * group.heads * group.times
            images = []
            for row in range(rows):
                run = [elements[group.first + h, row, e] for h, e in channels[start:end]]
                within = own[:, start:end] if each.tokens == 1 else None
                image = self.lanes.image(run, within)
                if not own.all() and image.blank != operator.x_zero_point:
                    raise NoLanesError("queries whose zero is not their zero point")
                images.append(image.name)
            name = images[0]
            if each.tokens > 1:
                name = self.queries_of_tokens(each, images, own[:, start:end])
            elif rows > 1:
                starts = tuple((0, row * group.heads) for row in range(rows))
                whole = Assemble((1, rows * group.heads), starts, (1, 1))
                name = self.builder.node(whole, tuple(images), f"{name}/rows", each.scores.origin)
            parts.append(name)
        if len(parts) == 1:
            return parts[0]
        stem = f"{each.scores.inputs[0]}/heads"
        return self.builder.node(Concatenate(3), tuple(parts), stem, each.scores.origin)

    def queries_of_tokens(
        self, each: Attention, images: Sequence[str], own: NDArray[np.bool_]
    ) -> str:
        """Each row of each token once for each head, with zero points in others' channels.

        images: of a row of queries each, [1, 1, tokens, channels].  own: channels of each head.
        """
        builder, operator, origin = self.builder, each.scores.operator, each.scores.origin
        assert isinstance(operator, RowProducts)
        name, stem, rows = images[0], f"{images[0]}/tokens", len(images)
        if rows > 1:
            starts = tuple((0, row) for row in range(rows))
            whole = Assemble((1, rows * each.tokens), starts, (1, rows))
            name = builder.node(whole, tuple(images), stem, origin)
        if own.all():
            return name
        if len(own) > 1:
            name = builder.node(Upsample2d((1, len(own))), (name,), stem, origin)
        mask = np.tile(own.astype(np.int8), (rows * each.tokens, 1))[None, None]
        blank = operator.x_zero_point
        same = Multiply(1.0, 0, blank, blank, -128, 127)
        return builder.node(same, (builder.constant(f"{stem}/own", mask), name), stem, origin)

    def keys(self, each: Attention, group: Group) -> str:
        """Rows of the cache, and the new ones: [1, 1, positions, channels]."""
        size, past = each.shape[2], each.keys.past
        builder, origin, stem = self.builder, self.origin(past), f"{past}/rows"
        name = self.past_rows(each, each.keys, group)
        order = [head * size + place for head, place in group.channels]
        if order != list(range(group.heads * size)):
            places = builder.constant(f"{stem}/order", np.array(order))
            name = builder.node(Gather(1), (name, places), stem, origin)
        new, _ = self.rows_of(each, each.keys.new, group)
        new = self.with_last(each, name, new, stem)
        return self.joined(each, name, new, 0, stem)

    def values(self, each: Attention, group: Group, zero_point: int) -> str:
        """Columns of the cache, and the new ones: [1, 1, channels, positions]."""
        past, count = each.values.past, group.heads * each.shape[2]
        builder, stem = self.builder, f"{past}/columns"
        name = self.past_rows(each, each.values, group)
        new, _ = self.rows_of(each, each.values.new, group)
        new = self.with_last(each, name, new, stem)
        name = builder.node(Transpose((1, 0)), (name,), stem, self.origin(past))
        origin = each.mix.origin
        unit = builder.constant(f"{stem}/unit", np.eye(count, dtype=np.int8)[None, None])
        new = builder.node(RowProducts(0, zero_point), (unit, new), f"{stem}/new", origin)
        one = builder.constant(f"{stem}/scale", np.ones(builder.types[new].shape[-1], np.float32))
        same = Requantize(zero_point, -128, 127)
        new = builder.node(same, (new, one), f"{stem}/new", origin)
        return self.joined(each, name, new, 1, stem)

    def past_rows(self, each: Attention, cache: Cache, group: Group) -> str:
        """Positions of the cache of some heads, side by side: [positions, heads * size]."""
        builder, origin, stem = self.builder, self.origin(cache.past), f"{cache.past}/rows"
        name = self.heads_of(each, cache, group)
        name = builder.node(Transpose((1, 0, 2)), (name,), stem, origin)
        shape = each.past, group.heads * each.shape[2]
        return builder.node(Reshape(shape), (name,), stem, origin)

    def with_last(self, each: Attention, rows: str, new: str, stem: str) -> str:
        """New rows behind those of a cache that fill no block, [1, 1, n, channels]."""
        builder, left = self.builder, each.past % self.block
        if not left:
            return new
        width, origin = builder.types[rows].shape[1], each.scores.origin
        part = Slice((each.past - left, 0), (1, 1), (left, width))
        last = builder.node(part, (rows,), f"{stem}/last", origin)
        last = builder.node(Reshape((1, 1, left, width)), (last,), f"{stem}/last", origin)
        whole = Assemble((1, left + each.tokens), ((0, 0), (0, left)), (1, 1))
        return builder.node(whole, (last, new), f"{stem}/last", origin)

    def joined(self, each: Attention, name: str, new: str, axis: int, stem: str) -> str:
        """The whole blocks of a cache with room for what follows, and that behind them.

        axis: of the positions.
        """
        builder, origin = self.builder, each.scores.origin
        filled, shape = each.past // self.block * self.block, [*builder.types[name].shape]
        if filled < each.past:
            shape[axis] = filled
            cut = Slice((0, 0), (1, 1), tuple(shape))
            name = builder.node(cut, (name,), f"{stem}/filled", origin)
        shape[axis] = -(-builder.types[new].shape[axis + 2] // self.block) * self.block
        more = builder.constant(f"{stem}/room", np.zeros(shape, np.int8))
        name = builder.node(Concatenate(axis), (name, more), stem, origin)
        whole = (1, 1, *builder.types[name].shape)
        name = builder.node(Reshape(whole), (name,), stem, origin)
        return builder.node(Append(axis + 2, filled), (name, new), f"{stem}/joined", origin)

    def origin(self, name: str) -> str:
        """The model's node that a tensor comes from."""
        node = self.graph.producer(name)
        return name if node is None else node.origin

    def heads_of(self, each: Attention, cache: Cache, group: Group) -> str:
        """The heads of a group: [heads, positions, size]."""
        (heads, _, size), past = each.shape, cache.past
        stem, builder = f"{past}/heads", self.builder
        name = self.read(past)
        if cache.order != tuple(range(len(cache.order))):
            name = builder.node(Transpose(cache.order), (name,), stem, past)
        whole = (heads, each.past, size)
        if builder.types[name].shape != whole:
            name = builder.node(Reshape(whole), (name,), stem, past)
        if group.heads == heads:
            return name
        cut = Slice((group.first, 0, 0), (1, 1, 1), (group.heads, each.past, size))
        return builder.node(cut, (name,), stem, past)
