"""The meaning of a graph's operators on symbols, written from their formulas."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from dovetail.isa.instructions import Rounding
from dovetail.isa.requantize import fixed_parameters
from dovetail.runtime.accelerator.host_steps import Halves

from ..dtypes import DType
from ..errors import TranslationError
from ..graph.ir import Graph, Node
from ..graph.operators.assembly import Append, Assemble
from ..graph.operators.indexing import Gather, GatherElements
from ..graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from ..graph.operators.integer.fixed_point import AddFixed, MultiplyFixed, RequantizeFixed
from ..graph.operators.integer.norm import RowNorm
from ..graph.operators.integer.products import Conv2d, ConvTranspose2d, Dense, RowProducts
from ..graph.operators.integer.residual import RequantizeAdd
from ..graph.operators.integer.scaled_sum import ScaledSum, ScalesOfWords
from ..graph.operators.integer.softmax import RowSoftmax
from ..graph.operators.integer.tensor_norm import TensorNorm
from ..graph.operators.integer.values import Add, Lookup, Multiply, Requantize, Softmax, WeightedAdd
from ..graph.operators.integer.windows import AveragePool2d, MaxPool2d, Pad, Upsample2d
from ..graph.operators.movement import Concatenate, Expand, Reshape, Slice, Transpose
from .rows import NONE, requantized_with, row_norm, row_softmax, scaled_sum, tensor_norm
from .symbol_sums import largest, linear, multiplied, requantized
from .symbols import (
    BYTES,
    NOT_A_BYTE,
    Array,
    Parameters,
    Symbols,
    apply_table,
    balanced,
    constants,
    digest,
    fresh,
    function,
    integers,
    is_constant,
    of_pairs,
    words_of,
)

Rule = Callable[[Array, Array], Array]

__all__ = ["evaluate", "in_halves", "softmax", "unary"]

MOVES = (
    *(Append, Assemble, Concatenate, Expand, Gather, GatherElements),
    *(Reshape, Slice, Transpose),
)
"""Operators that only move elements."""

FIELDS = ("values", "roots", "tables")
"""The arrays of symbols."""


def evaluate(graph: Graph, inputs: Mapping[str, Symbols]) -> dict[str, Symbols]:
    """All tensors of a graph of integer layers, but constants that no layer takes as a tensor.

    Raises TranslationError for an operator without a rule.
    """
    found = dict(inputs)
    for node in graph.nodes:
        outputs = _results(graph, node, found)
        found.update(zip(node.outputs, outputs, strict=True))
    return found


def _results(graph: Graph, node: Node, known: Mapping[str, Symbols]) -> tuple[Symbols, ...]:
    def tensor(name: str) -> Symbols:
        if name in known:
            return known[name]
        array = graph.constants[name]
        return constants(array) if array.dtype == np.int8 else integers(array)

    def constant(place: int) -> Array:
        name = node.inputs[place]
        if name not in graph.constants:
            raise TranslationError(f"node {node.origin!r}: {name!r} is not constant")
        return graph.constants[name]

    operator: Any = node.operator
    x = tensor(node.inputs[0])
    match operator:
        case Conv2d() | ConvTranspose2d() | Dense():
            weights = constant(1).astype(np.int64) - operator.weight_zero_point
            return (_contracted(operator, x, weights, constant(2)),)
        case RowProducts():
            return (_products_of_rows(operator, x, tensor(node.inputs[1])),)
        case Requantize():
            limits = operator.zero_point, operator.low, operator.high
            return (requantized(x, Parameters(NONE, constant(1)), *limits),)
        case RequantizeAdd():
            return (requantized_with(operator, x, constant(1), tensor(node.inputs[2])),)
        case RequantizeFixed():
            limits = operator.zero_point, operator.low, operator.high
            packed = fixed_parameters(np.zeros_like(constant(1)), constant(1), constant(2))
            return (requantized(x, Parameters(*packed, Rounding.FIXED), *limits),)
        case Add() | Multiply() | AddFixed() | MultiplyFixed() | WeightedAdd():
            (table,) = operator.evaluate(
                tuple(each.astype(np.int8) for each in np.meshgrid(BYTES, BYTES, indexing="ij"))
            )
            second = tensor(node.inputs[1])
            spread = second.moved(lambda y: np.broadcast_to(y, x.values.shape))
            return (of_pairs(table, x, spread),)
        case Lookup():
            return (apply_table(x, constant(1)),)
        case MaxPool2d() | AveragePool2d():
            return (_pool(operator, x),)
        case Upsample2d():
            down, across = operator.factors
            return (x.moved(lambda each: each.repeat(down, axis=1).repeat(across, axis=2)),)
        case Pad():
            return (_padded(x, operator.pads, operator.value),)
        case Quantize() | Dequantize() | Shift128():
            return (unary(operator, x),)
        case Softmax():
            return (softmax(operator, x),)
        case RowSoftmax():
            return (row_softmax(operator, x),)
        case RowNorm():
            given = (constant(number) for number in range(1, len(node.inputs)))
            return (row_norm(operator, x, *given),)
        case TensorNorm():
            return (tensor_norm(operator, x),)
        case ScalesOfWords():
            words = words_of(x.moved(lambda each: each.reshape(-1, 8 * operator.lanes)))
            apart = words[:, operator.lanes :].reshape(-1, operator.pixels, operator.lanes)
            scales = apart.swapaxes(0, 1).reshape(1, 1, operator.pixels, -1)
            return (Symbols(scales, scales, np.full(scales.shape, NOT_A_BYTE)),)
        case ScaledSum():
            factors = tensor(node.inputs[1]).values.astype(np.int32).view(np.float32)
            return (scaled_sum(operator, x, factors),)
    if not isinstance(operator, MOVES):
        raise TranslationError(f"node {node.origin!r}: no rule for {type(operator).__name__}")
    moved = [
        operator.evaluate(
            tuple(
                graph.constants[name]
                if name in graph.constants and graph.types[name].dtype != DType.INT8
                else getattr(tensor(name), field)
                for name in node.inputs
            )
        )
        for field in FIELDS
    ]
    return tuple(Symbols(*each) for each in zip(*moved, strict=True))


def unary(step: Any, x: Symbols) -> Symbols:
    """A step between a model's user and its bytes: Quantize, Dequantize, Shift128."""
    if hasattr(step, "to"):
        return x
    bits = int(np.float32(step.scale).view(np.int32))
    return fresh(function(digest(type(step).__name__, bits, step.zero_point), x.values))


def in_halves(step: Halves, x: Symbols) -> Symbols:
    """Rows of an image from above beside those from below, and ``fill`` where it has none."""
    places = np.arange(1, x.values.size + 1).reshape(x.values.shape)
    found = replace(step, fill=0).run(places)
    border = constants(np.full(1, step.fill, np.int8))
    both = (np.append(getattr(border, field), getattr(x, field)) for field in FIELDS)
    return Symbols(*(each[found] for each in both))


def softmax(step: Any, x: Symbols) -> Symbols:
    """A function of each element and, in their order, of all in its row."""
    row: Array = np.zeros(x.values.shape[:-1], np.int64)
    for place in range(x.values.shape[-1]):
        row = function(place, row, x.values[..., place])
    scales = step.x_scale, step.x_zero_point, step.scale, step.zero_point
    return fresh(function(digest("softmax", *map(float, scales)), row[..., None], x.values))


def _padded(x: Symbols, pads: tuple[int, ...], value: int) -> Symbols:
    top, left, bottom, right = pads
    _, height, width, channels = x.values.shape
    whole = constants(
        np.full((1, top + height + bottom, left + width + right, channels), value, np.int8)
    )
    inside = (slice(None), slice(top, top + height), slice(left, left + width))
    for field in FIELDS:
        getattr(whole, field)[inside] = getattr(x, field)
    return whole


def _taps(
    size: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
) -> "list[tuple[tuple[int, int], tuple[slice, slice, slice]]]":
    """Each tap of a window, and the pixels that the windows have at it."""
    (sy, sx), (dy, dx) = strides, dilations
    return [
        (
            (ky, kx),
            (
                slice(None),
                slice(ky * dy, ky * dy + (size[0] - 1) * sy + 1, sy),
                slice(kx * dx, kx * dx + (size[1] - 1) * sx + 1, sx),
            ),
        )
        for ky in range(kernel[0])
        for kx in range(kernel[1])
    ]


def _grouped(x: Array, weights: Array, groups: int) -> Array:
    """``x`` [..., C] times ``weights`` [O, C / groups], group by group: [..., O]."""
    if groups == 1:
        return multiplied(x, weights.T)
    outs, per = len(weights) // groups, weights.shape[1]
    if per == outs == 1:
        return balanced(x * weights[:, 0])
    parts = [
        multiplied(x[..., n * per : n * per + per], weights[n * outs : n * outs + outs].T)
        for n in range(groups)
    ]
    return np.concatenate(parts, axis=-1)


def _contracted(operator: Any, x: Symbols, weights: Array, bias: Array) -> Symbols:
    """Sums of products with weights, less their zero point, and a bias for each channel."""
    zero = operator.zero_point
    if isinstance(operator, Dense):
        return _sums(x, weights, lambda each, by: multiplied(each, by.T), zero, bias)
    if isinstance(operator, ConvTranspose2d):
        return _sums(x, weights, partial(_conv_transposed, operator), zero, bias)
    x = _padded(x, operator.pads, zero)
    return _sums(x, weights, partial(_conv, operator), zero, bias)


def _products_of_rows(operator: RowProducts, x: Symbols, y: Symbols) -> Symbols:
    """Each row of ``x`` with each of ``y``; a known ``x``, such as unit vectors, moves ``y``."""
    known = x.values - operator.x_zero_point
    if not is_constant(x).all():
        return integers(_row_products(known, y.values - operator.y_zero_point))
    zeros = operator.y_zero_point * known.sum(axis=-1)[..., None]
    return linear(y, known, lambda each, by: _row_products(by, each), -zeros)


def _row_products(x: Array, y: Array) -> Array:
    """Each row of [..., M, K] with each row of [..., N, K]: [..., M, N]; 1 in ``y`` as many as in
    ``x``.
    """
    if x.ndim == 2:
        return multiplied(x, y.T)
    y = np.broadcast_to(y, (len(x), *y.shape[1:]))
    return np.stack([_row_products(*each) for each in zip(x, y, strict=True)])


def _sums(x: Symbols, weights: Array, rule: Rule, zero: int, bias: Array) -> Symbols:
    zeros = rule(np.full_like(x.values, zero), weights)
    return linear(x, weights, rule, bias - zeros)


def _conv(conv: Conv2d, x: Array, weights: Array) -> Array:
    """Sums over an image that has its padding already."""
    kernel = weights.shape[1], weights.shape[2]
    down, across = conv.span(kernel)
    size = (
        (x.shape[1] - down) // conv.strides[0] + 1,
        (x.shape[2] - across) // conv.strides[1] + 1,
    )
    total = np.zeros((1, *size, len(weights)), np.int64)
    for (ky, kx), pixels in _taps(size, kernel, conv.strides, conv.dilations):
        total = balanced(total + _grouped(x[pixels], weights[:, ky, kx], conv.groups))
    return total


def _conv_transposed(conv: ConvTranspose2d, x: Array, weights: Array) -> Array:
    """Every pixel adds its products ``strides`` apart; then what is cut off goes."""
    top, left, bottom, right = conv.pads
    (sy, sx), kernel = conv.strides, (weights.shape[1], weights.shape[2])
    _, height, width, _ = x.shape
    whole = (
        (height - 1) * sy + kernel[0] + conv.added[0],
        (width - 1) * sx + kernel[1] + conv.added[1],
    )
    total = np.zeros((1, *whole, len(weights)), np.int64)
    for (ky, kx), pixels in _taps((height, width), kernel, conv.strides):
        total[pixels] += _grouped(x, weights[:, ky, kx], conv.groups)
    return total[:, top : whole[0] - bottom, left : whole[1] - right]


def _pool(pool: Any, x: Symbols) -> Symbols:
    if isinstance(pool, MaxPool2d):
        x = _padded(x, pool.pads, -128)
        row, column = 0, 0
    else:
        row, column = pool.start
    (height, width), (sy, sx) = x.values.shape[1:3], pool.strides
    size = ((height - row - pool.kernel[0]) // sy + 1, (width - column - pool.kernel[1]) // sx + 1)
    if getattr(pool, "size", None):
        size = pool.size
    parts: list[Symbols] = []
    for _, (every, rows, columns) in _taps(size, pool.kernel, pool.strides):
        pixels = (
            every,
            slice(rows.start + row, rows.stop + row, sy),
            slice(columns.start + column, columns.stop + column, sx),
        )
        parts.append(x.moved(itemgetter(pixels)))
    if isinstance(pool, MaxPool2d):
        return largest(parts)
    stacked = Symbols(*(np.stack([getattr(p, f) for p in parts]) for f in FIELDS))
    ones = np.ones((len(parts), 1, 1, 1, 1), np.int64)
    total = linear(
        stacked, ones, lambda each, by: (each * by).sum(axis=0), -len(parts) * pool.x_zero_point
    )
    parameters = Parameters(NONE, np.array([pool.scale], np.float32))
    return requantized(total, parameters, pool.zero_point, -128, 127)
