"""Compute large tensors a block of rows at a time.

    s = contract(q, k); p = softmax(s + m); y = contract(p, v)
    ->  y[block] = contract(softmax(contract(q[block], k) + m), v) in a loop over the blocks

Between two contractions are only operators whose rows depend on the same rows of their operands.
The large tensor is then never in memory whole.  A leading dimension is cut first, then the next
one, in the body of the loop, until a block is small.  Every rewrite takes large tensors out of the
graph, so the pass ends.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.contractions import Contract
from ....graph.operators.elementwise import Binary, Cast, Unary, Where
from ....graph.operators.movement import Reshape, Transpose
from ....graph.operators.repetition import Repeat
from ....graph.operators.rows import SoftmaxRows
from ....graph.rebuild import Rebuilding
from ....graph.types import TensorType

__all__ = ["BlockRows"]

LEAST_ROWS = 8
"""Rows of a block at least: what is the same for all rows is read again for each block."""

Use = tuple[str, int | None]
"""A tensor, and the dimension along which a loop takes slices of it; None: it is read whole."""


@frozen
class BlockRows:
    """largest: bytes of a tensor that stays whole.  block: bytes of a block, at most.

    near: bytes that all blocks read, at most, so that they stay in the cache between blocks.
    """

    largest: int = 1 << 20
    block: int = 1 << 18
    near: int = 1 << 19
    name: str = "block_rows"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when there is nothing to cut."""
        regions: dict[int, list[Node]] = {}
        """By the last node of each."""
        for node in graph.nodes:
            if isinstance(node.operator, Contract) and _bytes(graph, node.output) > self.largest:
                region = _region(graph, node)
                if region and self._saves(_part(graph, region)):
                    regions[id(region[-1])] = region
        if not regions:
            return graph
        left_out = {id(node) for region in regions.values() for node in region[:-1]}
        rebuilding = Rebuilding(graph)
        for node in graph.nodes:
            if id(node) in regions:
                part = self._blocked(_part(graph, regions[id(node)]))
                rebuilding.replace(node, _inlined(rebuilding, part))
            elif id(node) not in left_out:
                rebuilding.copy(node)
        return rebuilding.build()

    def _saves(self, part: Graph) -> bool:
        """True if it can be cut, and what every block reads again is less than the large tensor,
        written and read.
        """
        cut = self._cut(part)
        if cut is None:
            return False
        first, last = part.nodes[0].output, part.outputs[0]
        again = sum(_bytes(part, name) for name, axis in cut.uses if axis is None)
        count = part.types[last].shape[cut.output] // cut.kept
        return again <= self.near or (count - 1) * again <= 2 * _bytes(part, first)

    def _cut(self, part: Graph) -> "_Cut | None":
        """The next dimension to cut; None when the blocks are small, or cannot be cut."""
        first = part.nodes[0].output
        shape, size = part.types[first].shape, _bytes(part, first)
        for axis in range(len(shape) - 1):
            if shape[axis] == 1 or size <= self.block:
                continue
            row = size // shape[axis]
            most = max(self.block // row, 1)
            kept = max(n for n in range(1, min(most, shape[axis]) + 1) if shape[axis] % n == 0)
            last = axis == len(shape) - 2
            if kept == shape[axis] or (last and kept < min(LEAST_ROWS, most)):
                return None
            return _cut_along(part, axis, kept)
        return None

    def _blocked(self, part: Graph) -> Graph:
        """``part`` as a loop over blocks, with a body that may be one again."""
        cut = self._cut(part)
        if cut is None:
            return part
        builder = GraphBuilder()
        for name in part.inputs:
            builder.input(name, part.types[name])
        body = self._blocked(cut.body)
        inputs = ("iteration", *body.inputs)
        types = {**body.types, "iteration": TensorType((), "int64")}
        body = replace(body, inputs=inputs, types=MappingProxyType(types))
        origin = part.nodes[-1].origin
        sliced = [use for use in cut.uses if use[1] is not None]
        operands = [
            _cut_input(builder, name, axis, cut.kept, origin)
            for name, axis in sliced
            if axis is not None
        ]
        operands += [name for name, axis in cut.uses if axis is None]
        (output,) = part.outputs
        count = part.types[output].shape[cut.output] // cut.kept
        operator = Repeat(body, count, 0, (False,) * len(sliced), (False,))
        collected = builder.node(operator, tuple(operands), output, origin)
        shape = part.types[output].shape
        order = _to_place(cut.output, len(shape) + 1)
        if any(size > 1 for size in shape[: cut.output]):
            collected = builder.node(Transpose(order), (collected,), output, origin)
        return builder.build((builder.node(Reshape(shape), (collected,), output, origin),))


@frozen
class _Cut:
    """body: the part for one block; its inputs are ``uses`` in order, those with slices first.

    kept: of the dimension, in a block.  output: the dimension of the result.
    """

    body: Graph
    uses: tuple[Use, ...]
    kept: int
    output: int


def _region(graph: Graph, first: Node) -> list[Node] | None:
    """The nodes from one contraction to the next; None where rows do not stay apart."""
    shape = graph.types[first.output].shape
    nodes, inside, closed = [first], {first.output}, False
    for node in graph.nodes[graph.nodes.index(first) + 1 :]:
        read = inside.intersection(node.inputs)
        if not read:
            continue
        if closed:
            return None
        nodes.append(node)
        by_rows = isinstance(node.operator, Binary | Cast | SoftmaxRows | Unary | Where)
        if by_rows and graph.types[node.output].shape == shape:
            inside.add(node.output)
        elif isinstance(node.operator, Contract) and len(read) == 1:
            closed = True
        else:
            return None
    return nodes if closed and not inside.intersection(graph.outputs) else None


def _part(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """The nodes as a graph of their own."""
    computed = {node.output for node in nodes}
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name not in computed)
    types = {name: graph.types[name] for name in (*read, *computed)}
    return Graph(tuple(read), (nodes[-1].output,), tuple(nodes), {}, types)


def _cut_along(part: Graph, axis: int, kept: int) -> _Cut | None:
    """``part`` for ``kept`` of the first node's result along ``axis``; None if rows depend."""
    builder = GraphBuilder()
    rank = part.types[part.nodes[0].output].rank
    names: dict[Use, str] = {}
    inside: dict[str, str] = {}
    uses: dict[Use, None] = {}
    plans: list[tuple[Node, list[Use], Contract | None]] = []
    output = axis
    for node in part.nodes:
        operator = None
        if isinstance(node.operator, Contract):
            found = _cut_contract(node, node.operator, axis, kept, inside)
            if found is None:
                return None
            operator, axes, output = found
        else:
            axes = [_broadcast_axis(part.types[name], axis, rank) for name in node.inputs]
        own = list(zip(node.inputs, axes, strict=True))
        uses.update((use, None) for use in own if use[0] not in inside)
        plans.append((node, own, operator))
        inside[node.output] = node.output
    ordered = tuple(sorted(uses, key=lambda use: use[1] is None))
    for number, (name, along) in enumerate(ordered):
        kind = part.types[name]
        if along is not None:
            shape = (*kind.shape[:along], kept, *kind.shape[along + 1 :])
            kind = TensorType(shape, kind.dtype)
        names[name, along] = builder.input(f"operand{number}", kind)
    for node, own, operator in plans:
        inputs = tuple(inside.get(use[0]) or names[use] for use in own)
        inside[node.output] = builder.node(
            operator or node.operator, inputs, node.output, node.origin
        )
    return _Cut(builder.build((inside[part.outputs[0]],)), ordered, kept, output)


def _cut_contract(
    node: Node, operator: Contract, axis: int, kept: int, inside: dict[str, str]
) -> tuple[Contract, list[int | None], int] | None:
    """The contraction of a block, along which dimension operands are cut, and the result."""
    place = next((n for n, name in enumerate(node.inputs) if name in inside), None)
    cut = operator.output[axis] if place is None else operator.operands[place][axis]
    if len(cut) != 1 or cut[0][1] != 1:
        return None
    label = cut[0][0]
    axes: list[int | None] = []
    for dimensions in (*operator.operands, operator.output):
        found = [n for n, each in enumerate(dimensions) if any(x == label for x, _ in each)]
        if len(found) > 1 or (found and dimensions[found[0]] != ((label, 1),)):
            return None
        axes.append(found[0] if found else None)
    output = axes.pop()
    if output is None:
        return None
    sizes = tuple(kept if x == label else size for x, size in enumerate(operator.sizes))
    return replace(operator, sizes=sizes), axes, output


def _broadcast_axis(kind: TensorType, axis: int, rank: int) -> int | None:
    """The dimension of an operand that belongs to ``axis`` of the result; None if it is one."""
    own = axis - (rank - kind.rank)
    return own if own >= 0 and kind.shape[own] > 1 else None


def _cut_input(builder: GraphBuilder, name: str, axis: int, kept: int, origin: str) -> str:
    """A tensor with the number of the block as its first dimension."""
    shape = builder.types[name].shape
    split = (*shape[:axis], shape[axis] // kept, kept, *shape[axis + 1 :])
    order = (axis, *(n for n in range(len(split)) if n != axis))
    if all(size == 1 for size in shape[:axis]):
        moved = tuple(split[n] for n in order)
        return builder.node(Reshape(moved), (name,), f"{name}.blocks", origin)
    parts = builder.node(Reshape(split), (name,), f"{name}.blocks", origin)
    return builder.node(Transpose(order), (parts,), f"{name}.blocks", origin)


def _to_place(axis: int, rank: int) -> tuple[int, ...]:
    """The permutation that moves the first dimension to ``axis``."""
    rest = list(range(1, rank))
    return (*rest[:axis], 0, *rest[axis:])


def _inlined(rebuilding: Rebuilding, part: Graph) -> tuple[str, ...]:
    """The nodes of ``part`` in the graph that is built."""
    names = {name: rebuilding.tensor(name) for name in part.inputs}
    for node in part.nodes:
        inputs = tuple(names[name] for name in node.inputs)
        results = rebuilding.builder.node_outputs(node.operator, inputs, node.output, node.origin)
        names.update(zip(node.outputs, results, strict=True))
    return tuple(names[name] for name in part.outputs)


def _bytes(graph: Graph, name: str) -> int:
    kind = graph.types[name]
    return prod(kind.shape) * kind.dtype.bytes
