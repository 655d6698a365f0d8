"""Converters of activations."""

from collections.abc import Callable
from math import erfc, inf

import numpy as np

from ...dtypes import DType
from ...graph.fixed_point import scaled as scaled_term
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.elementwise import UnaryFunction
from ...graph.operators.integer.fixed_point import scaled
from .arithmetic import rounded_shift
from .node import BYTES, Converter, Node
from .quantized import limits_of, quantize_multiplier, quantized_value
from .tables import by_float, by_samples, tabled

__all__ = ["ACTIVATIONS"]

F32 = np.float32
RAISED = (
    *(4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40),
    *(41, 43, 44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255),
)
"""Samples of the sigmoid that LiteRT has one more of than the nearest integer, as measured."""


def _is_quantised(node: Node, types: tuple[DType, ...] = (*BYTES, DType.INT16)) -> bool:
    x = node.term(0)
    if x.dtype.is_float or node.info(0).quantization is None:
        return False
    if x.dtype not in types:
        raise node.unsupported(f"elements of {x.dtype}")
    return True


def _relu(low: float, high: float) -> Converter:
    """``min(max(x, low), high)``."""

    def convert(node: Node) -> Term:
        x = node.term(0)
        if not _is_quantised(node):
            x = x.maximum(low)
            return x if high == inf else x.minimum(high)
        given, wanted = node.scale(0), node.result_scale()
        factors = quantize_multiplier(float(F32(given.scale) / F32(wanted.scale)))
        first, last = limits_of(x.dtype)
        first = max(first, quantized_value(wanted, low))
        last = last if high == inf else min(last, quantized_value(wanted, high))

        def table(values: Array) -> Array:
            moved = scaled(values - given.zero_point, *factors) + wanted.zero_point
            return np.clip(moved, first, last)

        return tabled(node, x, table)

    return convert


def _by_table(
    real: Callable[[Term], Term], table: Callable[[Array], Array]
) -> Callable[[Node], Term]:
    """A function of floats; of bytes the table of it in float32."""

    def convert(node: Node) -> Term:
        x = node.term(0)
        return tabled(node, x, by_float(node, table)) if _is_quantised(node, BYTES) else real(x)

    return convert


def _by_sigmoid(bits: int, real: Callable[[Node], Term]) -> Converter:
    """Straight lines between 257 samples of the sigmoid, 1/24 apart, for int16.

    bits: of the way from one sample to the next.
    Source: TensorFlow Lite, ``integer_ops/logistic.h``, ``integer_ops/tanh.h``.
    """
    samples = np.rint(65536 / (1 + np.exp(-np.arange(257) / 24))).clip(0, 65535).astype(np.int64)
    samples[list(RAISED)] += 1

    def convert(node: Node) -> Term:
        x = node.term(0)
        if x.dtype != DType.INT16 or node.info(0).quantization is None:
            return real(node)
        factor, shift = node.scale(0).scale * 4096 * 3, 0
        node.require(factor < 1 << 31, "a scale below 2**17")
        while factor <= 32767 / 2 and shift <= 30:
            factor, shift = factor * 2, shift + 1

        def table(values: Array) -> Array:
            moved = (values * int(factor) + ((1 << shift) >> 1)) >> shift
            place, rest = np.abs(moved) >> bits, np.abs(moved) & ((1 << bits) - 1)
            first, second = (samples[np.minimum(each, 256)] for each in (place, place + 1))
            line = (first << bits) + rest * (second - first)
            if bits == 9:
                line = np.where(place >= 255, 0x7FFF << 10, line)
                return np.where(moved >= 0, line + 512, (1 << 25) - line + 511) >> 10
            line = np.where(place >= 255, 0xFFFF << 8, line)
            return np.where(moved >= 0, line - (1 << 23) + 128, (1 << 23) - line + 127) >> 8

        return tabled(node, x, table)

    return convert


def _elu(x: Term) -> Term:
    return (x < 0.0).where(x.minimum(0.0).exp() - 1.0, x, x.dtype)


def _logistic(x: Array) -> Array:
    return np.asarray(F32(1) / (F32(1) + np.exp(-x)))


def convert_leaky_relu(node: Node) -> Term:
    """``x``, or ``alpha * x`` below 0."""
    x, alpha = node.term(0), float(node.attribute("alpha", 0.0))
    if not _is_quantised(node):
        return (x < 0.0).where(x * alpha, x, x.dtype)
    given, wanted = node.scale(0), node.result_scale()
    whole = float(F32(given.scale) / F32(wanted.scale))
    part = float(F32(given.scale) * F32(alpha) / F32(wanted.scale))

    def table(values: Array) -> Array:
        centred = values - given.zero_point
        below = np.sign(part) * scaled(centred, *quantize_multiplier(abs(part)))
        above = scaled(centred, *quantize_multiplier(whole))
        return np.where(centred >= 0, above, below).astype(np.int64) + wanted.zero_point

    return tabled(node, x, table)


def convert_prelu(node: Node) -> Term:
    """``x``, or ``alpha * x`` below 0, alpha a tensor."""
    x, alpha = node.term(0), node.term(1)
    if not _is_quantised(node, BYTES):
        return (x < 0.0).where(x * alpha, x.expand(*(x * alpha).shape), x.dtype)
    given, own, wanted = node.scale(0), node.scale(1), node.result_scale()
    first = float(F32(given.scale) / F32(wanted.scale))
    second = float(F32(given.scale) * F32(own.scale) / F32(wanted.scale))
    centred = x.cast(DType.INT32) - given.zero_point
    factor = alpha.cast(DType.INT32) - own.zero_point
    above = scaled_term(centred, *quantize_multiplier(first))
    below = scaled_term(centred * factor, *quantize_multiplier(second))
    chosen = (centred >= 0).where(above, below, DType.INT32) + wanted.zero_point
    return chosen.clip(*limits_of(x.dtype)).cast(x.dtype)


def convert_gelu(node: Node) -> Term:
    """``x`` times the normal distribution's share below it, or an approximation by tanh."""
    approximate = bool(node.attribute("approximate"))
    root, factor = float(np.sqrt(2 / np.pi)), 0.044715

    def real(x: Term) -> Term:
        if approximate:
            return x * 0.5 * (((x + x * x * x * factor) * root).tanh() + 1.0)
        return x * 0.5 * ((x * float(np.sqrt(0.5))).unary(UnaryFunction.ERF) + 1.0)

    def table(x: Array) -> Array:
        if approximate:
            inner = F32(root) * (x + F32(factor) * x * x * x)
            return np.asarray(F32(0.5) * x * (F32(1) + np.tanh(inner)))
        share = np.asarray([erfc(float(each)) for each in x * F32(-np.sqrt(0.5))], F32)
        return np.asarray(F32(0.5) * x * share)

    x = node.term(0)
    return tabled(node, x, by_samples(node, table)) if _is_quantised(node) else real(x)


def convert_hard_swish(node: Node) -> Term:
    """``x * min(max(x + 3, 0), 6) / 6``; of bytes in 16 bits."""
    x = node.term(0)
    if not _is_quantised(node, BYTES):
        return x * (x + 3.0).clip(0.0, 6.0) / 6.0
    given, wanted = node.scale(0), node.result_scale()
    fine = F32(1 / 128) * F32(given.scale)
    output, output_shift = quantize_multiplier(float(fine / F32(wanted.scale)))
    inner, inner_shift = quantize_multiplier(float(fine / (F32(3) / F32(32768))))
    node.require(output_shift <= 0, "a scale of the result of at least 1/128 of its input's")
    output, inner = _sixteen_bits(output), _sixteen_bits(inner)

    def table(values: Array) -> Array:
        high = (values - given.zero_point) << 7
        product = (high * output + (1 << 14)) >> 15
        share = high
        if inner_shift > 0:
            share = _saturated(share << (inner_shift - 1))
        share = (share * inner + (1 << 14)) >> 15
        if inner_shift > 0:
            share = _saturated(share << 1)
        if inner_shift < 0:
            share = rounded_shift(share, -inner_shift)
        share = (share + (1 << 15)) >> 1
        moved = np.trunc(share * product / (1 << 15)).astype(np.int64)
        return rounded_shift(moved, -output_shift) + wanted.zero_point

    return tabled(node, x, table)


def _sixteen_bits(multiplier: int) -> int:
    return 32767 if multiplier >= (1 << 31) - (1 << 15) else (multiplier + (1 << 15)) >> 16


def _saturated(x: Array) -> Array:
    return np.clip(x, -32768, 32767)


ACTIVATIONS: dict[str, Converter] = {
    "ELU": _by_table(_elu, lambda x: np.where(x < 0, np.expm1(x), x)),
    "GELU": convert_gelu,
    "HARD_SWISH": convert_hard_swish,
    "LEAKY_RELU": convert_leaky_relu,
    "LOGISTIC": _by_sigmoid(9, _by_table(Term.sigmoid, _logistic)),
    "PRELU": convert_prelu,
    "RELU": _relu(0.0, inf),
    "RELU6": _relu(0.0, 6.0),
    "RELU_0_TO_1": _relu(0.0, 1.0),
    "RELU_N1_TO_1": _relu(-1.0, 1.0),
    "TANH": _by_sigmoid(8, _by_table(Term.tanh, np.tanh)),
}
