"""Convolutions, dense layers and products of rows of raised bytes."""

from math import inf

import numpy as np

from ....dtypes import DType
from ...bounds import accumulator_bound
from ...ir import Array, Graph
from ...operators.contractions import Convolution, contract
from ...operators.elementwise import BinaryFunction
from ...operators.integer.products import Conv2d, Dense, RowProducts
from ...operators.movement import PadTensor
from .raised_bytes import RAISE, RaisedBytes

__all__ = ["conv2d", "dense", "largest_sum", "row_products"]

EXACT_IN_FLOAT32 = 1 << 24
FEWEST_CHANNELS = 8
"""For dot products of bytes, which fill up to 16 channels."""
DOT_LANES = 16
"""Results of a dot product of bytes."""
NEIGHBOURS = 4
"""Products that a dot product of bytes sums."""
PIXEL_CHANNELS = 4
"""An image's, at most, that dot products of bytes sum for a pixel at a time."""


def conv2d(new: RaisedBytes, x: str, operator: Conv2d, weights: Array, bias: Array) -> str:
    """In NCHW, OIHW; padding is 0 once the zero point is subtracted."""
    outputs, inputs = weights.shape[0], weights.shape[3]
    fill = inputs <= PIXEL_CHANNELS or inputs >= FEWEST_CHANNELS
    dense = operator.groups == 1 and fill
    depthwise = inputs == 1 and operator.groups == outputs and operator.dilations[1] == 1
    if (dense or depthwise) and outputs >= FEWEST_CHANNELS and not operator.weight_zero_point:
        return _bytes_conv2d(new, x, operator, weights, bias)
    weights = weights.astype(np.int32) - operator.weight_zero_point
    dtype = _exact(weights, bias, operator.zero_point)
    top, left, bottom, right = operator.pads
    convolution = Convolution(
        operator.strides,
        operator.dilations,
        ((top, bottom), (left, right)),
        (1, 1),
        operator.groups,
        dtype,
    )
    x = new.centred(x, operator.zero_point, dtype)
    w = new.constant(weights.transpose(0, 3, 1, 2).astype(dtype.numpy))
    b = new.constant(bias.reshape(-1, 1, 1).astype(dtype.numpy))
    return new.binary(BinaryFunction.ADD, new.emit(convolution, x, w), b)


def largest_sum(graph: Graph, name: str) -> float:
    """A bound of the absolute values of a convolution's or dense layer's sums."""
    node = graph.producer(name)
    if node is None or not isinstance(node.operator, Conv2d | Dense):
        return inf
    weights, bias = (graph.constants[each] for each in node.inputs[1:])
    weights = weights.astype(np.int32) - node.operator.weight_zero_point
    return accumulator_bound(weights, bias, node.operator.zero_point)


def _bytes_conv2d(new: RaisedBytes, x: str, operator: Conv2d, weights: Array, bias: Array) -> str:
    """Products of unsigned bytes u = x + 128 and signed ones, less those of the offset.

    Kernels of single channels get columns of zeros: as many neighbours as are summed at a time.
    """
    zero_point, groups = operator.zero_point + RAISE, operator.groups
    top, left, bottom, right = operator.pads
    more = -weights.shape[2] % NEIGHBOURS if groups > 1 else 0
    weights, right = np.pad(weights, ((0, 0), (0, 0), (0, more), (0, 0))), right + more
    if any((top, left, bottom, right)):
        fill = new.constant(np.asarray(zero_point, np.uint8))
        x = new.emit(PadTensor((0, 0, top, left), (0, 0, bottom, right)), x, fill)
    convolution = Convolution(
        operator.strides, operator.dilations, ((0, 0), (0, 0)), (1, 1), groups, DType.INT32
    )
    w = new.constant(weights.transpose(0, 3, 1, 2))
    offset = bias - zero_point * weights.astype(np.int64).sum(axis=(1, 2, 3))
    b = new.constant(offset.astype(np.int32).reshape(-1, 1, 1))
    return new.binary(BinaryFunction.ADD, new.emit(convolution, x, w), b)


def dense(new: RaisedBytes, x: str, operator: Dense, weights: Array, bias: Array) -> str:
    """A product with the transposed weights."""
    outputs, inputs = weights.shape
    if operator.weight_zero_point == 0 and inputs % 4 == 0 and outputs >= FEWEST_CHANNELS:
        zero_point = operator.zero_point + RAISE
        offset = bias - zero_point * weights.astype(np.int64).sum(axis=1)
        more = -outputs % DOT_LANES
        total = new.product(x, np.pad(weights, ((0, more), (0, 0))), DType.INT32)
        offset = np.pad(offset.astype(np.int32), (0, more))
        total = new.binary(BinaryFunction.ADD, total, new.constant(offset))
        return new.leading(total, outputs) if more else total
    weights = weights.astype(np.int32) - operator.weight_zero_point
    dtype = _exact(weights, bias, operator.zero_point)
    x = new.centred(x, operator.zero_point, dtype)
    total = new.product(x, weights.astype(dtype.numpy), dtype)
    b = new.constant(bias.astype(dtype.numpy))
    return new.binary(BinaryFunction.ADD, total, b)


def row_products(new: RaisedBytes, x: str, y: str, operator: RowProducts) -> str:
    """Both tensors less their zero points, summed in the dtype that holds all sums."""
    kinds = new.builder.types
    *outer, _, size = kinds[x].shape
    exact = size * 255**2 < EXACT_IN_FLOAT32
    dtype = DType.FLOAT32 if exact else DType.INT32
    left = new.centred(x, operator.x_zero_point, dtype)
    right = new.centred(y, operator.y_zero_point, dtype)
    batch, rank = tuple(range(len(outer))), len(outer) + 3
    rows, columns, summed = (len(outer) + k for k in range(3))
    # What is 1 in the second one has a label of its own.
    own = [n if kinds[y].shape[n] == size else n + rank for n, size in enumerate(outer)]
    labels = ((*batch, rows, summed), (*own, columns, summed))
    product = contract((kinds[left], kinds[right]), labels, (*batch, rows, columns), dtype)
    return new.emit(product, left, right)


def _exact(weights: Array, bias: Array, zero_point: int) -> DType:
    """The dtype that sums of products are exact in."""
    bound = accumulator_bound(weights, bias, zero_point)
    return DType.FLOAT32 if bound < EXACT_IN_FLOAT32 else DType.INT32
