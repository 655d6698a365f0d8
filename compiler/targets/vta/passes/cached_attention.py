"""Attention of new tokens over a cache of keys and values, the heads that fill blocks at once.

A head of 8 channels is half a block of 16 lanes.  So the keys of several heads are side by side, as
the rows ``K`` of one product; each row of ``Q`` has the channels of one head, and zero points in
those of all others.  Each row of ``P V`` then has more than its head's channels; a depthwise layer
leaves the others out.

    q, k = one row for each head       ->  Q[1, 1, G * heads, C], k[1, 1, 1, C], in one order of C
    Concatenate(past, k)               ->  K = Append(past[1, 1, T, C], k)
    Concatenate(past, v), transposed   ->  V = Append(past[1, 1, C, T], 1 v), 1 unit vectors
    RowProducts(q, K), f, RowSoftmax, RowProducts(p, V)
                                       ->  the same of one matrix, and the depthwise layer
    Dense(Reshape(...))                ->  Conv2d over the G rows that are left

Rows of several tokens, T, come token by token: the dense layer then takes each head's channels out
of its row by zeros among its weights, and no depthwise layer does.

Behind the rows of a cache the host leaves room, where the program puts the new one.  Rows of ``Q``
get their zero points from the host: rotary positions multiply by its cosines and sines, which are
zero in other heads' channels.  Attention that this does not suit stays as it is.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, GraphBuilder
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.products import Conv2d, Dense
from ....graph.operators.movement import Concatenate, Reshape
from ....graph.passes.eliminate_dead import EliminateDead
from ....graph.passes.merge_common import MergeCommon
from .find_attention import Attention, find_attention
from .head_groups import HeadGroups
from .lane_elements import MOVES, Element, NoLanesError
from .lanes import Lanes

__all__ = ["CachedAttention"]


@frozen
class CachedAttention:
    """lanes: of a block."""

    lanes: int
    name: str = "cached_attention"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when it has no such attention."""
        found = list(find_attention(graph))
        found = [each for each in found if each.tokens == found[0].tokens]
        while found:
            rewriting = _Rewriting(graph, self.lanes, found)
            try:
                return rewriting.run()
            except NoLanesError:
                # The one that was not suitable stays; so this ends.
                found.remove(rewriting.current)
        return graph


class _Rewriting:
    """current: the attention that is being rewritten."""

    def __init__(self, graph: Graph, block: int, found: Sequence[Attention]) -> None:
        types = {name: graph.types[name] for name in (*graph.inputs, *graph.constants)}
        self.graph, self.current = graph, found[0]
        self.builder = GraphBuilder(list(graph.inputs), [], dict(graph.constants), types)
        self.names = {name: name for name in types}
        self.lanes = Lanes(graph, self.builder, self.read, block, found[0].tokens)
        self.heads = HeadGroups(graph, self.builder, self.lanes, self.read, block)
        self.dense = {each.dense.output: each for each in found}
        self.rows: dict[str, list[tuple[Attention, str]]] = {}
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
        # What layers have in common, as the heads' places, comes to the chip once.
        return MergeCommon().run(EliminateDead().run(self.builder.build(self.graph.outputs)))

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

    def _keep_rows(self, each: Attention) -> None:
        """Let whatever else reads keys or values read what the attention computes."""
        for tensor in (each.keys.new, each.values.new):
            for base in {name for name, _ in self.lanes.elements.of(tensor).reshape(-1)}:
                self.rows.setdefault(base, []).append((each, tensor))

    def _behind_rows(self) -> Iterator[str]:
        """Keys and values, and what is moved of them, as far as it is not joined with others."""
        found = set(self.rows)
        for node in self.graph.nodes:
            if isinstance(node.operator, MOVES) and found.issuperset(node.inputs):
                found.update(node.outputs)
        yield from found

    def moved(self, name: str) -> str | None:
        """A tensor whose elements are those of new keys or values; None for another one."""
        elements = self.lanes.elements.of(name)
        bases = {base for base, _ in elements.reshape(-1)}
        for each, tensor in self.rows.get(min(bases), ()):
            inside = self.lanes.elements.of(tensor).reshape(-1)
            if set(elements.reshape(-1)) <= set(inside):
                self.current = each
                return self._picked(name, elements, tensor)
        return None

    def _picked(self, name: str, elements: NDArray[np.object_], tensor: str) -> str:
        """Tensor ``name``, whose elements are some of new keys or values."""
        each, parts, order = self.current, list[str](), list[Element]()
        for group in self.heads.groups(each):
            row, channels = self.heads.rows_of(each, tensor, group)
            if row not in self.copies:
                # Of all tokens.
                vector = Reshape((len(channels),))
                self.copies[row] = self.builder.node(vector, (row,), f"{tensor}/flat", tensor)
            parts.append(self.copies[row])
            order += channels
        builder, places = self.builder, {channel: n for n, channel in enumerate(order)}
        flat = parts[0]
        if len(parts) > 1:
            flat = builder.node(Concatenate(0), tuple(parts), f"{name}/parts", name)
        index = np.array([places[element] for element in elements.reshape(-1)])
        if not np.array_equal(index, np.arange(len(order))):
            constant = builder.constant(f"{name}/order", index)
            flat = builder.node(Gather(0), (flat, constant), f"{name}/ordered", name)
        return builder.node(Reshape(elements.shape), (flat,), name, name)

    def attention(self, each: Attention) -> str:
        """The result of the dense layer behind it."""
        heads = each.shape[0]
        mixes = tuple(self.heads.mixed(each, group) for group in self.heads.groups(each))
        builder, origin, dense = self.builder, each.dense.origin, each.dense
        mix = mixes[0]
        if len(mixes) > 1:
            mix = builder.node(Concatenate(3), mixes, f"{each.result.output}/heads", origin)
        kernel = self.kernel(each, heads // len(mixes))
        assert isinstance(dense.operator, Dense)
        zero_points = dense.operator.zero_point, dense.operator.weight_zero_point
        constant = builder.constant(f"{dense.output}/kernel", kernel)
        conv = Conv2d((1, kernel.shape[2]), (0, 0, 0, 0), 1, *zero_points)
        if each.tokens == 1:
            conv = Conv2d((1, 1), (0, 0, 0, 0), 1, *zero_points)
        inputs = (mix, constant, self.read(dense.inputs[2]))
        name = builder.node(conv, inputs, f"{dense.output}/sum", origin)
        shape = Reshape(self.graph.types[dense.output].shape)
        return builder.node(shape, (name,), dense.output, origin)

    def kernel(self, each: Attention, together: int) -> NDArray[np.int8]:
        """Weights of the dense layer behind it, for the rows of a token: [out, 1, rows, channels].

        together: heads of a group.
        """
        heads, rows, size = each.shape
        dense = each.dense
        weights = self.graph.constants[dense.inputs[1]]
        assert isinstance(dense.operator, Dense)
        apart = 1 if each.tokens == 1 else together
        shape = (len(weights), 1, rows * apart, heads * size)
        kernel = np.full(shape, dense.operator.weight_zero_point, np.int8)
        elements = self.lanes.elements.of(dense.inputs[0]).reshape(each.tokens, -1)
        places = each.rows(np.arange(heads * each.tokens * rows * size), size)
        whole = np.argsort(places, axis=None)
        for token, of_token in enumerate(elements):
            for place, (name, element) in enumerate(of_token):
                head, own, row, channel = np.unravel_index(whole[element], places.shape)
                if name != each.result.output or own != token:
                    raise NoLanesError("a dense layer of more than an attention")
                at = row * apart + head % apart
                kernel[:, 0, at, head * size + channel] = weights[:, place]
        return kernel
