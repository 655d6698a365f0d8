"""Products of two tensors' rows as layers of images, one for each matrix of a batch.

    RowProducts(x[1, H, M, K], y[1, H, N, K])
        ->  Concatenate of RowProducts(x[1, 1, M, K], y[1, 1, N, K]), one for each head
    Add(Concatenate(x, ...), Upsample2d(mask))
        ->  Concatenate(Add(x, mask), ...), where the mask is repeated for all matrices
    f(Concatenate(x, ...))                ->  Concatenate(f(x), ...): Requantize, Lookup, Softmax
    RowSoftmax(Concatenate(x, ...))       ->  the same of several small matrices as rows of one
    RowProducts(x[..., M, 20], y[..., N, 20])
        ->  the same of 32 channels each, where blocks have 16 and no product of two tensors made y
    Reshape(Concatenate(x, ...))          ->  Concatenate(x, ...), where it counts matrices again
    RowProducts(Lookup(x[N, H, ...]), y)  ->  the same of each matrix of x
    Reshape(Transpose(Concatenate(x, ...)))
        ->  Concatenate along channels, where the heads become channels again, each of these
            Concatenate along rows, where there are several batch entries

The rows of ``y`` are weights of the matrix core as they are in DRAM.  Where they are columns of
what a layer made, as the values of an attention are, that is transposed by a product with unit
vectors: ``Requantize(RowProducts(1, y))``.

Each node is visited once, so the pass ends.
"""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from dovetail.isa.frozen import frozen, replace

from ....dtypes import DType
from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.assembly import Append
from ....graph.operators.integer.products import RowProducts
from ....graph.operators.integer.softmax import RowSoftmax
from ....graph.operators.integer.values import Add, Lookup, Requantize, Softmax
from ....graph.operators.integer.windows import Upsample2d
from ....graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from ....graph.passes.eliminate_dead import EliminateDead
from ..layers.fixed_point_add import is_exact
from .shared_heads import picked
from .spread import spread
from .turned_products import turn_products

__all__ = ["SplitProducts"]

MOVES = (Reshape, Slice, Transpose)
MOST_WORDS = 2048
"""Words of a block that one softmax of several matrices has, at most."""
HEADS_LAST = Transpose((0, 2, 1, 3))
"""From [1, heads, rows, channels] to [1, rows, heads, channels]."""


@frozen
class SplitProducts:
    """lanes: of a block."""

    lanes: int
    name: str = "split_products"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when it has no products of two tensors."""
        if not any(isinstance(node.operator, RowProducts) for node in graph.nodes):
            return graph
        graph = turn_products(graph)
        splitting = _Splitting(graph, self.lanes)
        for node in graph.nodes:
            splitting.visit(node)
        for name in graph.outputs:
            splitting.join(name)
        return EliminateDead().run(splitting.builder.build(graph.outputs))


@dataclass(slots=True)
class _Splitting:
    graph: Graph
    lanes: int
    builder: GraphBuilder = field(init=False)
    parts: dict[str, list[str]] = field(default_factory=dict)
    """Images that a tensor consists of, one for each matrix."""
    joined: set[str] = field(default_factory=set)
    """Tensors with parts that are there as wholes too."""
    turned: dict[str, str] = field(default_factory=dict)
    """Tensors that are such a tensor with its heads last."""

    def __post_init__(self) -> None:
        self.builder = GraphBuilder.over(self.graph)

    def visit(self, node: Node) -> None:
        """Add a node, or what stands for it."""
        operator, x = node.operator, node.inputs[0] if node.inputs else ""
        if isinstance(operator, RowProducts) and not self.is_split(node):
            zero_points = operator.x_zero_point, operator.y_zero_point
            pairs = zip(node.inputs, zero_points, strict=True)
            left, right = (self.rows(name, zero, node) for name, zero in pairs)
            if not self.is_filled(node):
                left, right = (
                    [self.widened(part, zero, node) for part in parts]
                    for parts, zero in zip((left, right), zero_points, strict=True)
                )
            if self.graph.types[node.output].shape[:-2] == (1, 1):
                self.builder.nodes.append(replace(node, inputs=(*left, *right)))
                return
            self.parts[node.output] = [
                self.builder.node(operator, pair, node.output, node.origin)
                for pair in zip(left, right, strict=True)
            ]
        elif x in self.parts and self.keeps_matrices(node):
            self.parts[node.output] = self.parts[x]
        elif x in self.parts and isinstance(operator, RowSoftmax):
            self.parts[node.output] = self.softmaxed(node)
        elif x in self.parts and self.is_by_rows(node):
            self.parts[node.output] = [
                self.builder.node(operator, (part, *node.inputs[1:]), node.output, node.origin)
                for part in self.parts[x]
            ]
        elif isinstance(operator, Add) and (operands := self.masked(operator, node)):
            self.parts[node.output] = [
                self.builder.node(operator, pair, node.output, node.origin) for pair in operands
            ]
        elif x in self.parts and operator == HEADS_LAST and len(self.parts[x]) > 1:
            self.turned[node.output] = x
            self.add(node)
        elif x in self.turned and self.flattens_heads(node):
            parts, heads = self.parts[self.turned[x]], self.graph.types[x].shape[2]
            each = [self.concatenated(2, parts[head::heads], node) for head in range(heads)]
            self.builder.nodes.append(replace(node, inputs=(self.concatenated(3, each, node),)))
        else:
            self.add(node)

    def softmaxed(self, node: Node) -> list[str]:
        """A softmax of each matrix; of small ones together, as rows of one image, if each has only
        some pixels of the image: rows that are all of them are read where they lie.
        """
        parts = self.parts[node.inputs[0]]
        *windows, _, rows, columns = self.graph.types[node.output].shape
        most = MOST_WORDS if prod(windows) > 1 else 0
        together = max(1, most // (rows * -(-columns // self.lanes)))
        found = list[str]()
        for first in range(0, len(parts), together):
            some = parts[first : first + together]
            whole = self.concatenated(2, some, node)
            whole = self.builder.node(node.operator, (whole,), node.output, node.origin)
            if len(some) == 1:
                found.append(whole)
                continue
            for row in range(0, rows * len(some), rows):
                cut = Slice((0, 0, row, 0), (1, 1, 1, 1), (1, 1, rows, columns))
                found.append(self.builder.node(cut, (whole,), node.output, node.origin))
        return found

    def is_split(self, node: Node) -> bool:
        """True if all pixels of an image are multiplied with one matrix already."""
        x, y = (self.graph.types[name].shape[:-2] for name in node.inputs)
        return x != y

    def add(self, node: Node) -> None:
        """Add a node as it is."""
        for name in node.inputs:
            self.join(name)
        self.builder.nodes.append(node)

    def concatenated(self, axis: int, parts: list[str], node: Node) -> str:
        """One image of several, along an axis."""
        if len(parts) == 1:
            return parts[0]
        return self.builder.node(Concatenate(axis), tuple(parts), node.output, node.origin)

    def join(self, name: str) -> None:
        """Put the parts of a tensor together, if it has some."""
        if name not in self.parts or name in self.joined:
            return
        self.joined.add(name)
        parts, origin = self.parts[name], name
        whole = parts[0]
        if len(parts) > 1:
            whole = self.builder.node(Concatenate(1), tuple(parts), name, origin)
        reshape = Reshape(self.graph.types[name].shape)
        self.builder.nodes.append(Node(reshape, (whole,), name, origin))

    def is_filled(self, node: Node) -> bool:
        """True if lanes beyond the last channel of a second operand add nothing to a product.

        Where a product of two tensors makes them it is their zero point; the host's is put right.
        A cache stays as it is, in DRAM.
        """
        x, y = node.inputs
        if self.graph.types[y].shape[-1] % self.lanes == 0 or self.are_columns(y):
            return True
        maker = self.graph.producer(y)
        if maker is None:
            return self.graph.producer(x) is None
        if isinstance(maker.operator, Append):
            return True
        total = self.graph.producer(maker.inputs[0])
        return total is not None and isinstance(total.operator, RowProducts)

    def keeps_matrices(self, node: Node) -> bool:
        """True if it only counts a tensor's matrices in another way."""
        before, after = (self.graph.types[name].shape for name in (node.inputs[0], node.output))
        return isinstance(node.operator, Reshape) and before[-2:] == after[-2:]

    def is_by_rows(self, node: Node) -> bool:
        """True if it makes each row of a row alone, in the same way for all."""
        if isinstance(node.operator, Lookup):
            return self.graph.types[node.inputs[1]].rank == 1
        return isinstance(node.operator, Requantize | Softmax)

    def masked(self, operator: Add, node: Node) -> list[tuple[str, ...]]:
        """The operands of a sum for each matrix, where the other one is a mask of them all.

        None for a sum that has no exact form: the same pair of bytes may come in every row.
        """
        own = [name in self.parts for name in node.inputs]
        if sum(own) != 1 or not is_exact(operator):
            return []
        parts, mask = self.parts[node.inputs[not own[0]]], node.inputs[own[0]]
        made, given = self.graph.producer(mask), self.graph.constants.get(mask)
        if made is not None and made.operator == Upsample2d((len(parts), 1)):
            masks = [made.inputs[0]] * len(parts)
        elif given is not None and given.shape == self.graph.types[node.output].shape:
            each = given.reshape(len(parts), 1, 1, *given.shape[-2:])
            masks = [self.builder.constant(f"{mask}/{n}", one) for n, one in enumerate(each)]
        else:
            return []
        return [pair if own[0] else pair[::-1] for pair in zip(parts, masks, strict=True)]

    def flattens_heads(self, node: Node) -> bool:
        """True if the channels of all heads become those of one tensor."""
        before, after = (self.graph.types[name].shape for name in (node.inputs[0], node.output))
        return isinstance(node.operator, Reshape) and after[-1] == before[-1] * before[-2]

    def rows(self, name: str, zero_point: int, node: Node) -> list[str]:
        """The matrices of a tensor as images [1, 1, rows, channels]."""
        if name in self.parts:
            return self.parts[name]
        *outer, rows, channels = self.graph.types[name].shape
        count = prod(outer)
        if count > 1 and (made := self.looked_up(name)):
            x, table = made.inputs
            return [
                self.builder.node(made.operator, (part, table), name, made.origin)
                for part in self.rows(x, 0, node)
            ]
        if count > 1 and (gather := picked(self.graph, name)):
            parts = self.rows(gather.inputs[0], zero_point, node)
            return [parts[place] for place in self.graph.constants[gather.inputs[1]]]
        columns = self.are_columns(name)
        whole = self.shaped(name, (1, count, rows, channels), node)
        found = []
        for place in range(count):
            part = whole
            if count > 1:
                cut = Slice((0, place, 0, 0), (1, 1, 1, 1), (1, 1, rows, channels))
                part = self.builder.node(cut, (part,), f"{name}/head", node.origin)
            if columns:
                part = self.transposed(part, zero_point, node)
            found.append(part)
        return found

    def looked_up(self, name: str) -> Node | None:
        """The node that looks a tensor up, element by element, in one table for all."""
        node = self.graph.producer(name)
        by_rows = node and isinstance(node.operator, Lookup) and self.is_by_rows(node)
        return node if by_rows else None

    def shaped(self, name: str, shape: tuple[int, ...], node: Node) -> str:
        """A tensor in another shape."""
        if self.graph.types[name].shape == shape:
            return name
        return self.builder.node(Reshape(shape), (name,), f"{name}/rows", node.origin)

    def are_columns(self, name: str) -> bool:
        """True if the rows of a tensor are columns of what movements make it of."""
        moves, source = [], name
        while (node := self.graph.producer(source)) and isinstance(node.operator, MOVES):
            moves.append(node.operator)
            source = node.inputs[0]
        shape = self.graph.types[source].shape
        numbers = np.arange(prod(shape)).reshape(shape)
        for move in reversed(moves):
            (numbers,) = move.evaluate([numbers])
        matrix = numbers.reshape(-1, *numbers.shape[-2:])[0]
        return bool(min(matrix.shape) > 1 and matrix[0, 1] != matrix[0, 0] + 1)

    def transposed(self, part: str, zero_point: int, node: Node) -> str:
        """An image [1, 1, N, K] made by the matrix core of what has its columns as rows.

        zero_point: of both.
        """
        builder = self.builder
        origin, channels = node.origin, builder.types[part].shape[2]
        back = builder.node(Transpose((0, 1, 3, 2)), (part,), f"{part}/rows", origin)
        back = self.widened(back, zero_point, node)
        ones = np.eye(channels, builder.types[back].shape[3], dtype=np.int8)[None, None]
        unit = builder.constant(f"{part}/unit", ones)
        products = RowProducts(0, zero_point)
        total = builder.node(products, (unit, back), f"{part}/sum", origin)
        count = builder.types[total].shape[-1]
        scale = builder.constant(f"{part}/scale", np.ones(count, np.float32))
        same = Requantize(zero_point, -128, 127)
        assert builder.types[part].dtype is DType.INT8
        return builder.node(same, (total, scale), f"{part}/columns", origin)

    def widened(self, part: str, zero_point: int, node: Node) -> str:
        """An image [1, 1, N, K] with its zero point in more channels, so that they fill blocks."""
        channels = self.builder.types[part].shape[3]
        count = -(-channels // self.lanes) * self.lanes
        return spread(self.builder, part, count, zero_point, node.origin)
