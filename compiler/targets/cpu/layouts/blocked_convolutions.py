"""Convolutions with constant weights on activations in blocks of channels.

The activations are blocked or, where they have few channels, plain; the result is blocked.  The
weights are packed here, or transformed for Winograd's tiles.
"""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....graph.groups import is_border
from ....graph.ir import GraphBuilder, Node
from ....graph.keys import convolution_key
from ....graph.operators.contractions import Convolution
from ....graph.operators.integer_winograd import IntegerWinograd
from ....graph.operators.movement import PadTensor, Reshape, Transpose
from ....graph.operators.winograd import Winograd
from ....graph.winograd import (
    choose_tile,
    choose_whole_tile,
    may_tile,
    transformed_weights,
    whole_weights,
)
from . import blocked_products
from .blocked_products import SUMMED, Product, blocked_array, blocked_weights
from .blocked_tensors import Blocked, BlockedTensors
from .expand_convolutions import Pads, padded

__all__ = ["ConvolutionChoices", "block_convolution"]

Array = NDArray[Any]
Shape = tuple[int, ...]


@frozen
class ConvolutionChoices:
    """Choice of blocked convolutions, and of how they are computed.

    waste: channels after filling up, over channels before: a convolution with more stays plain.
    winograd: whether float convolutions may be computed by Winograd's tiles.
    tiles: of convolutions by their keys, the tile that measurements chose, 0 for direct products.
    """

    waste: float
    winograd: bool
    tiles: Mapping[str, int]


def block_convolution(
    tensors: BlockedTensors, node: Node, operator: Convolution, choices: ConvolutionChoices
) -> Blocked | None:
    """The convolution ``node`` in the new graph; None where blocks do not pay."""
    weights = tensors.graph.constants.get(node.inputs[1])
    x, outputs = tensors.shape(node.inputs[0]), tensors.shape(node.output)[1]
    if weights is None or operator.dtype.bytes != 4 or set(operator.expansions) != {1}:
        return None

    def worth(channels: int) -> bool:
        return tensors.blocks(channels) * tensors.block <= choices.waste * channels

    if 0 in x or 0 in weights.shape or not worth(outputs):
        return None
    convolution = _Convolution(tensors, node, operator, weights, choices)
    if operator.groups == x[1] == outputs:
        return convolution.depthwise()
    if operator.groups != 1:
        return None
    if worth(x[1]) or tensors.is_blocked(node.inputs[0]):
        return convolution.dense()
    return convolution.first()


@frozen
class _Convolution:
    """weights: [O, C / groups, *kernel]."""

    tensors: BlockedTensors
    node: Node
    operator: Convolution
    weights: Array
    choices: ConvolutionChoices

    @property
    def builder(self) -> GraphBuilder:
        """Builder of the new graph."""
        return self.tensors.builder

    @property
    def x_shape(self) -> Shape:
        """[N, C, *spatial]."""
        return self.tensors.shape(self.node.inputs[0])

    @property
    def positions(self) -> Shape:
        """Spatial dimensions of the result."""
        return self.tensors.shape(self.node.output)[2:]

    @property
    def sums_bytes(self) -> bool:
        """True if dot products of bytes do the work."""
        types = self.tensors.graph.types
        x, w = (types[name].dtype for name in self.node.inputs)
        whole = types[self.node.output].dtype == DType.INT32 and self.tensors.block == 16
        return whole and x in (DType.UINT8, DType.INT8) and w == DType.INT8

    def dense(self) -> Blocked:
        """From blocked activations."""
        operator, x_shape = self.operator, self.x_shape
        packed = blocked_weights(self.weights, self.tensors.block)
        if self.choices.winograd and operator.dtype == DType.FLOAT32:
            shape = self.weights.shape
            tile = self.choices.tiles.get(convolution_key(operator, x_shape, shape))
            if tile is None or not may_tile(operator, shape):
                tile = choose_tile(operator, x_shape, shape)
            if tile:
                return self.tiled(tile, packed)
        x_type = self.tensors.graph.types[self.node.inputs[0]]
        if self.sums_bytes and x_type.dtype == DType.UINT8:
            tile = choose_whole_tile(operator, x_shape, self.weights)
            if tile:
                return self.whole_tiled(tile, packed)
        kind = blocked_products.dense_bytes if self.sums_bytes else blocked_products.dense
        return self.product(kind, self.window_input(), packed)

    def tiled(self, tile: int, packed: Array) -> Blocked:
        """By Winograd's tiles; the input is filled up to whole ones."""
        rows, columns = self.positions
        winograd = Winograd(tile, rows, columns)
        pads = _to_whole_tiles(self.operator, winograd)
        own = self.tensors.to_blocked(self.node.inputs[0]).name
        x = padded(self.builder, self.node, own, pads)
        return self.emit(winograd, x, transformed_weights(packed, tile))

    def whole_tiled(self, tile: int, packed: Array) -> Blocked:
        """By tiles of whole numbers."""
        winograd = IntegerWinograd(tile, *self.positions)
        x = self.grown(_to_whole_tiles(self.operator, winograd))
        return self.emit(winograd, x, whole_weights(packed, tile))

    def grown(self, pads: Pads) -> str:
        """The blocked input with ``pads`` around it, in which anything may be.

        Where the input is a border around something, it becomes one larger border.
        """
        graph, name = self.tensors.graph, self.node.inputs[0]
        before = next((each for each in graph.nodes if name in each.outputs), None)
        if before is not None and is_border(graph, before):
            border = before.operator
            assert isinstance(border, PadTensor)
            if not any((*border.before[:2], *border.after[:2])):
                inner = zip(border.before[2:], border.after[2:], pads, strict=True)
                both = tuple((low + own[0], high + own[1]) for low, high, own in inner)
                x = self.tensors.to_blocked(before.inputs[0]).name
                fill = graph.constants[before.inputs[1]]
                return padded(self.builder, self.node, x, both, fill=fill)
        return padded(self.builder, self.node, self.tensors.to_blocked(name).name, pads)

    def first(self) -> Blocked:
        """From few plain channels."""
        builder, node, operator = self.builder, self.node, self.operator
        channels, *_, kernel = self.weights.shape[1:]
        x = padded(builder, node, self.tensors.plain(node.inputs[0]), operator.pads)
        packed = blocked_array(self.weights, 0, self.tensors.block)
        more = SUMMED - channels
        if more < 0 or not self.sums_bytes:
            return self.product(blocked_products.first, x, packed)
        rank = len(operator.strides)
        order = (0, *range(2, 2 + rank), 1)
        steps = -(-channels * kernel // SUMMED)
        if steps < kernel and operator.dilations[-1] == 1:
            return self.first_rows(x, packed, order)
        x = builder.node(Transpose(order), (x,), f"{x}.pixels", node.origin)
        x = padded(builder, node, x, ((0, more),), first=1 + rank)
        return self.product(blocked_products.first_bytes, x, packed)

    def first_rows(self, x: str, packed: Array, order: Shape) -> Blocked:
        """From rows of pixels, taken 4 bytes at a time; what is read behind a row is 0 times it."""
        builder, node, (_, channels, *_, kernel, _) = self.builder, self.node, packed.shape
        last = (self.positions[-1] - 1) * self.operator.strides[-1]
        length = -(-kernel * channels // SUMMED) * SUMMED
        columns = last + -(-length // channels)
        more = max(0, columns - builder.types[x].shape[-1])
        x = padded(builder, node, x, ((0, more),), first=len(order) - 1)
        x = builder.node(Transpose(order), (x,), f"{x}.pixels", node.origin)
        *rows, width, _ = builder.types[x].shape
        x = builder.node(Reshape((*rows, width * channels)), (x,), f"{x}.rows", node.origin)
        return self.product(blocked_products.first_rows, x, packed)

    def depthwise(self) -> Blocked:
        """Each channel separately."""
        x = self.window_input()
        packed = blocked_array(self.weights[:, 0], 0, self.tensors.block)
        near = self.weights.shape[-1] % SUMMED == 0 and self.operator.dilations[-1] == 1
        kind = blocked_products.depthwise
        if near and self.sums_bytes:
            kind = blocked_products.depthwise_bytes
        return self.product(kind, x, packed)

    def product(self, kind: Callable[..., Product], x: str, packed: Array) -> Blocked:
        """The contraction that ``kind`` makes of the convolution."""
        found = kind(self.operator, self.x_shape[0], self.positions, packed)
        return self.emit(found.contraction, x, found.weights)

    def emit(self, operator: Any, x: str, weights: Array) -> Blocked:
        """The node that computes the result."""
        w = self.builder.constant(self.node.inputs[1], weights)
        return Blocked(self.tensors.emit(operator, (x, w), self.node), 0.0)

    def window_input(self) -> str:
        """The blocked input with zeros around it."""
        x = self.tensors.to_blocked(self.node.inputs[0]).name
        return padded(self.builder, self.node, x, self.operator.pads)


def _to_whole_tiles(operator: Convolution, winograd: Winograd | IntegerWinograd) -> Pads:
    """The convolution's pads, and at the ends what the last tiles lack."""
    (top, bottom), (left, right) = operator.pads
    down, across = (winograd.tile * count for count in winograd.tiles)
    return ((top, bottom + down - winograd.rows), (left, right + across - winograd.columns))
