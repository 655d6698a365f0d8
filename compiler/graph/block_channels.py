"""Keep activations of convolutions in blocks of channels, so that neighbours fill a vector.

    [N, C, *spatial]  ->  [N, C / B, *spatial, B]

A convolution with constant weights computes blocked activations, from blocked or, when it has few
input channels, from plain ones; its weights are packed here, or transformed for Winograd's
tiles.  What follows stays blocked as long as it works element by element, over spatial windows,
or joins whole blocks; other operators get plain tensors.  Each tensor is converted at most once
each way.

Channels are filled up with lanes that hold one value, tracked through the graph: weights for them
are 0, so any finite value will do; an operator that would make them infinite or NaN gets plain
tensors.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtypes import DType
from . import blocked_products
from .expand_convolutions import Pads, padded
from .groups import is_border
from .ir import Graph, Node
from .keys import convolution_key
from .operators.contractions import Convolution
from .operators.elementwise import Binary, Bitcast, Cast, MultiplyAdd, Unary, Where
from .operators.indexing import Gather
from .operators.integer_winograd import IntegerWinograd
from .operators.movement import Concatenate, PadMode, PadTensor, Reshape, Slice, Transpose
from .operators.reductions import Reduce
from .operators.windows import WindowFunction, WindowReduce
from .operators.winograd import Winograd
from .rebuild import Rebuilding
from .winograd import (
    choose_tile,
    choose_whole_tile,
    may_tile,
    transformed_weights,
    whole_weights,
)

__all__ = ["BlockChannels"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class BlockChannels:
    """See the module's docstring.  Every node is visited once, so the pass ends."""

    block: int = 16
    waste: float = 2.0
    """Channels after filling up, over channels before: a convolution with more stays plain."""
    winograd: bool = True
    """Whether float convolutions may be computed by Winograd's tiles, where that is faster."""
    tiles: Mapping[str, int] = field(default_factory=dict)
    """Of convolutions by their keys: the tile that measurements chose, 0 for direct products."""

    name: str = "block_channels"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when no convolution is blocked."""
        if not any(isinstance(node.operator, Convolution) for node in graph.nodes):
            return graph
        blocking = _Blocking(
            graph, self.block, self.waste, self.winograd, self.tiles, Rebuilding(graph)
        )
        for node in graph.nodes:
            blocking.visit(node)
        return blocking.build()


@dataclass(frozen=True, slots=True)
class _Blocked:
    """A tensor's blocked form, and what the lanes beyond its channels hold."""

    name: str
    filler: float


@dataclass(slots=True)
class _Blocking:
    graph: Graph
    block: int
    waste: float
    winograd: bool
    tiles: Mapping[str, int]
    new: Rebuilding
    blocked: dict[str, _Blocked] = field(default_factory=dict)

    def visit(self, node: Node) -> None:
        """Add the node's blocked form, or else itself on plain tensors."""
        result: _Blocked | None = None
        match node.operator:
            case Convolution():
                result = self.convolution(node, node.operator)
            case Unary() | Binary() | Where() | MultiplyAdd() | Cast() | Bitcast():
                result = self.elementwise(node)
            case WindowReduce() | Gather() | PadTensor() | Reduce():
                result = self.spatial(node)
            case Concatenate(axis=1):
                result = self.concatenate(node)
            case _:
                pass
        if result is not None:
            self.blocked[node.output] = result
            return
        for name in node.inputs:
            self.plain(name)
        self.new.copy(node)

    def build(self) -> Graph:
        """The new graph."""
        for name in self.graph.outputs:
            self.plain(name)
        return self.new.build()

    def emit(self, operator: Any, inputs: tuple[str, ...], node: Node) -> str:
        """Add a node that stands for ``node``."""
        return self.new.builder.node(operator, inputs, f"{node.output}.blocked", node.origin)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a tensor of the old graph."""
        return self.graph.types[name].shape

    def blocks(self, channels: int) -> int:
        """How many blocks hold ``channels``."""
        return -(-channels // self.block)

    def is_blocked(self, name: str) -> bool:
        """Whether the tensor is there in blocked form only."""
        return name in self.blocked and name not in self.new.names

    def plain(self, name: str) -> str:
        """The new graph's plain form of an old tensor."""
        if not self.is_blocked(name):
            return self.new.tensor(name)
        shape, own, builder = self.shape(name), self.blocked[name].name, self.new.builder
        batch, blocks, *spatial, block = builder.types[own].shape
        rank = len(spatial)
        if prod(spatial) != 1:
            order = (0, 1, 2 + rank, *range(2, 2 + rank))
            own = builder.node(Transpose(order), (own,), f"{name}.plain", name)
        own = builder.node(
            Reshape((batch, blocks * block, *spatial)), (own,), f"{name}.plain", name
        )
        if blocks * block != shape[1]:
            cut = Slice((0,) * len(shape), (1,) * len(shape), shape)
            own = builder.node(cut, (own,), f"{name}.plain", name)
        self.new.names[name] = own
        return own

    def to_blocked(self, name: str) -> _Blocked:
        """The new graph's blocked form of an old tensor, filled up with zeros."""
        if name in self.blocked:
            return self.blocked[name]
        if name in self.graph.constants:
            array = blocked_products.blocked_array(self.graph.constants[name], 1, self.block)
            own = self.new.builder.constant(f"{name}.blocked", array)
        else:
            own = self.convert(name)
        self.blocked[name] = _Blocked(own, 0.0)
        return self.blocked[name]

    def convert(self, name: str) -> str:
        """Nodes that block a plain tensor."""
        builder, own, shape = self.new.builder, self.plain(name), self.shape(name)
        batch, channels, *spatial = shape
        blocks = self.blocks(channels)
        if channels % self.block:
            zero = builder.constant("zero", np.zeros((), self.graph.types[name].dtype.numpy))
            after = (0, blocks * self.block - channels, *(0 for _ in spatial))
            pad = PadTensor((0,) * len(shape), after)
            own = builder.node(pad, (own, zero), f"{name}.filled", name)
        split = Reshape((batch, blocks, self.block, *spatial))
        own = builder.node(split, (own,), f"{name}.split", name)
        order = (0, 1, *range(3, 3 + len(spatial)), 2)
        return builder.node(Transpose(order), (own,), f"{name}.blocked", name)

    def worth(self, channels: int) -> bool:
        """Whether filling up adds little."""
        return self.blocks(channels) * self.block <= self.waste * channels

    def convolution(self, node: Node, operator: Convolution) -> _Blocked | None:
        """A contraction of blocked activations; None where that does not pay."""
        weights = self.graph.constants.get(node.inputs[1])
        x, outputs = self.shape(node.inputs[0]), self.shape(node.output)[1]
        if weights is None or operator.dtype.bytes != 4 or set(operator.expansions) != {1}:
            return None
        if 0 in x or 0 in weights.shape or not self.worth(outputs):
            return None
        if operator.groups == x[1] == outputs:
            return self.depthwise(node, operator, weights)
        if operator.groups != 1:
            return None
        if self.worth(x[1]) or self.is_blocked(node.inputs[0]):
            return self.dense(node, operator, weights)
        return self.first(node, operator, weights)

    def dense(self, node: Node, operator: Convolution, weights: Array) -> _Blocked:
        """From blocked activations."""
        packed = blocked_products.blocked_weights(weights, self.block)
        if self.winograd and operator.dtype == DType.FLOAT32:
            x_shape = self.shape(node.inputs[0])
            tile = self.tiles.get(convolution_key(operator, x_shape, weights.shape))
            if tile is None or not may_tile(operator, weights.shape):
                tile = choose_tile(operator, x_shape, weights.shape)
            if tile:
                return self.tiled(node, operator, tile, packed)
        of_bytes = self.bytes_to_sum(node)
        if of_bytes and self.graph.types[node.inputs[0]].dtype == DType.UINT8:
            tile = choose_whole_tile(operator, self.shape(node.inputs[0]), weights)
            if tile:
                return self.whole_tiled(node, operator, tile, packed)
        x = self.window_input(node, operator)
        kind = blocked_products.dense_bytes if of_bytes else blocked_products.dense
        return self.product(kind, node, operator, x, packed)

    def tiled(self, node: Node, operator: Convolution, tile: int, packed: Array) -> _Blocked:
        """By Winograd's tiles; the input is filled up to whole ones."""
        rows, columns = self.shape(node.output)[2:]
        winograd = Winograd(tile, rows, columns)
        pads = _to_whole_tiles(operator, winograd)
        x = padded(self.new.builder, node, self.to_blocked(node.inputs[0]).name, pads)
        u = self.new.builder.constant(node.inputs[1], transformed_weights(packed, tile))
        return _Blocked(self.emit(winograd, (x, u), node), 0.0)

    def whole_tiled(self, node: Node, operator: Convolution, tile: int, packed: Array) -> _Blocked:
        """By tiles of whole numbers."""
        winograd = IntegerWinograd(tile, *self.shape(node.output)[2:])
        x = self.grown(node, _to_whole_tiles(operator, winograd))
        u = self.new.builder.constant(node.inputs[1], whole_weights(packed, tile))
        return _Blocked(self.emit(winograd, (x, u), node), 0.0)

    def grown(self, node: Node, pads: Pads) -> str:
        """The blocked input with ``pads`` around it, in which anything may be.

        Where the input is a border around something, it becomes one larger border.
        """
        name = node.inputs[0]
        before = next((each for each in self.graph.nodes if name in each.outputs), None)
        if before is not None and is_border(self.graph, before):
            border = before.operator
            assert isinstance(border, PadTensor)
            if not any((*border.before[:2], *border.after[:2])):
                inner = zip(border.before[2:], border.after[2:], pads, strict=True)
                both = tuple((low + own[0], high + own[1]) for low, high, own in inner)
                x = self.to_blocked(before.inputs[0]).name
                fill = self.graph.constants[before.inputs[1]]
                return padded(self.new.builder, node, x, both, fill=fill)
        return padded(self.new.builder, node, self.to_blocked(name).name, pads)

    def bytes_to_sum(self, node: Node) -> bool:
        """Whether dot products of bytes do the work."""
        x, w = (self.graph.types[name].dtype for name in node.inputs)
        whole = self.graph.types[node.output].dtype == DType.INT32 and self.block == 16
        return whole and x in (DType.UINT8, DType.INT8) and w == DType.INT8

    def first(self, node: Node, operator: Convolution, weights: Array) -> _Blocked:
        """From few plain channels."""
        builder, rank = self.new.builder, len(operator.strides)
        x = padded(builder, node, self.plain(node.inputs[0]), operator.pads)
        packed = blocked_products.blocked_array(weights, 0, self.block)
        more = blocked_products.SUMMED - weights.shape[1]
        if more < 0 or not self.bytes_to_sum(node):
            return self.product(blocked_products.first, node, operator, x, packed)
        order = (0, *range(2, 2 + rank), 1)
        length = weights.shape[1] * weights.shape[-1]
        steps = -(-length // blocked_products.SUMMED)
        if steps < weights.shape[-1] and operator.dilations[-1] == 1:
            return self.first_rows(node, operator, x, packed, order)
        x = builder.node(Transpose(order), (x,), f"{x}.pixels", node.origin)
        x = padded(builder, node, x, ((0, more),), first=1 + rank)
        return self.product(blocked_products.first_bytes, node, operator, x, packed)

    def first_rows(
        self, node: Node, operator: Convolution, x: str, packed: Array, order: tuple[int, ...]
    ) -> _Blocked:
        """From rows of pixels, taken 4 bytes at a time; what is read behind a row is 0 times it."""
        builder, (_, channels, *_, kernel, _) = self.new.builder, packed.shape
        last = (self.shape(node.output)[-1] - 1) * operator.strides[-1]
        length = -(-kernel * channels // blocked_products.SUMMED) * blocked_products.SUMMED
        columns = last + -(-length // channels)
        more = max(0, columns - builder.types[x].shape[-1])
        x = padded(builder, node, x, ((0, more),), first=len(order) - 1)
        x = builder.node(Transpose(order), (x,), f"{x}.pixels", node.origin)
        *rows, width, _ = builder.types[x].shape
        x = builder.node(Reshape((*rows, width * channels)), (x,), f"{x}.rows", node.origin)
        return self.product(blocked_products.first_rows, node, operator, x, packed)

    def depthwise(self, node: Node, operator: Convolution, weights: Array) -> _Blocked:
        """Each channel by itself."""
        x = self.window_input(node, operator)
        packed = blocked_products.blocked_array(weights[:, 0], 0, self.block)
        near = weights.shape[-1] % blocked_products.SUMMED == 0 and operator.dilations[-1] == 1
        kind = blocked_products.depthwise
        if near and self.bytes_to_sum(node):
            kind = blocked_products.depthwise_bytes
        return self.product(kind, node, operator, x, packed)

    def product(
        self,
        kind: Callable[..., blocked_products.Product],
        node: Node,
        operator: Convolution,
        x: str,
        packed: Array,
    ) -> _Blocked:
        """The contraction that ``kind`` makes of the convolution."""
        batch, positions = self.shape(node.inputs[0])[0], self.shape(node.output)[2:]
        found = kind(operator, batch, positions, packed)
        w = self.new.builder.constant(node.inputs[1], found.weights)
        return _Blocked(self.emit(found.contraction, (x, w), node), 0.0)

    def window_input(self, node: Node, operator: Convolution) -> str:
        """The blocked input with zeros around it."""
        x = self.to_blocked(node.inputs[0]).name
        return padded(self.new.builder, node, x, operator.pads)

    def elementwise(self, node: Node) -> _Blocked | None:
        """On blocks, when an operand of the result's shape has only them."""
        shape = self.shape(node.output)
        if not any(self.is_blocked(n) and self.shape(n) == shape for n in node.inputs):
            return None
        filler = self.filler(node, shape)
        if filler is None:
            return None
        operands = []
        for name in node.inputs:
            own = (1,) * (len(shape) - len(self.shape(name))) + self.shape(name)
            if own[1] == shape[1] and name in self.graph.constants and own != self.shape(name):
                array = blocked_products.blocked_array(
                    self.graph.constants[name].reshape(own), 1, self.block
                )
                operands.append(self.new.builder.constant(f"{name}.blocked", array))
            elif own[1] == shape[1] and own == self.shape(name):
                operands.append(self.to_blocked(name).name)
            elif own[1] == 1:
                plain = self.plain(name)
                if prod(own) != 1:
                    plain = self.emit(Reshape((*own, 1)), (plain,), node)
                operands.append(plain)
            else:
                return None
        return _Blocked(self.emit(node.operator, tuple(operands), node), filler)

    def filler(self, node: Node, shape: tuple[int, ...]) -> float | None:
        """What the operator makes of the lanes beyond the channels; None when it is not finite."""
        values: list[Array] = []
        for name in node.inputs:
            kind, array = self.graph.types[name], self.graph.constants.get(name)
            if name in self.blocked:
                value: Any = self.blocked[name].filler
            elif array is not None and array.size == 1:
                value = array.reshape(()).item()
            elif len(kind.shape) < len(shape) - 1 or kind.shape[1 - len(shape)] == 1:
                return 0.0 if shape[1] % self.block == 0 else None
            else:
                value = 0
            values.append(np.asarray(value, kind.dtype.numpy))
        if shape[1] % self.block == 0:
            return 0.0
        result = node.operator.evaluate(values)[0].item()  # type: ignore[union-attr]
        return float(result) if isfinite(result) else None

    def spatial(self, node: Node) -> _Blocked | None:
        """Windows, indices, pads and reductions of spatial dimensions only."""
        name, operator = node.inputs[0], node.operator
        if not self.is_blocked(name):
            return None
        own = self.blocked[name]
        whole = self.shape(name)[1] % self.block == 0
        rest = tuple(self.plain(each) for each in node.inputs[1:])
        match operator:
            case WindowReduce(axes=axes, function=function):
                if min(axes) < 2 or (function != WindowFunction.MAX and own.filler != 0):
                    return None
            case Gather(axis=axis):
                if axis < 2 or len(self.shape(node.inputs[1])) != 1:
                    return None
            case PadTensor(before=before, after=after, mode=mode):
                value = self.graph.constants.get(node.inputs[1])
                same = whole or (value is not None and value == own.filler)
                if any((*before[:2], *after[:2])) or not (same or mode != PadMode.CONSTANT):
                    return None
                operator = PadTensor((*before, 0), (*after, 0), mode)
            case Reduce(axes=axes, keep=keep):
                if not keep or not axes or min(axes) < 2 or not (whole or own.filler == 0):
                    return None
            case _:
                return None
        return replace(own, name=self.emit(operator, (own.name, *rest), node))

    def concatenate(self, node: Node) -> _Blocked | None:
        """Of whole blocks, when one operand has only them."""
        whole = all(self.shape(name)[1] % self.block == 0 for name in node.inputs)
        if not whole or not any(self.is_blocked(name) for name in node.inputs):
            return None
        operands = tuple(self.to_blocked(name).name for name in node.inputs)
        return _Blocked(self.emit(node.operator, operands, node), 0.0)


def _to_whole_tiles(operator: Convolution, winograd: Winograd | IntegerWinograd) -> Pads:
    """The convolution's pads, and at the ends what the last tiles lack."""
    (top, bottom), (left, right) = operator.pads
    down, across = (winograd.tile * count for count in winograd.tiles)
    return ((top, bottom + down - winograd.rows), (left, right + across - winograd.columns))
