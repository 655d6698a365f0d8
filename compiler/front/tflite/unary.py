"""Converters of functions of one tensor, element by element."""

from collections.abc import Callable

import numpy as np

from ...dtypes import DType
from ...errors import ModelError
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.elementwise import Bitcast, UnaryFunction
from ...graph.operators.integer.fixed_point import scaled
from .arithmetic import inverse_root, scaled_by
from .node import Converter, Node
from .quantized import limits_of, quantize_multiplier
from .tables import by_samples, tabled

__all__ = ["UNARY"]

F32 = np.float32


def _function(
    real: Callable[[Term], Term], table: Callable[[Array], Array] | None = None
) -> Converter:
    """A function of numbers; of bytes and int16 the table of it in float32, if there is one."""

    def convert(node: Node) -> Term:
        x = node.term(0)
        if node.info(0).quantization is None or x.dtype.is_float or x.dtype == DType.INT32:
            return real(x)
        if table is None or not node.is_quantised:
            raise node.unsupported(f"{x.dtype} that is quantised")
        return tabled(node, x, by_samples(node, table))

    return convert


def convert_abs(node: Node) -> Term:
    """``|x|``."""
    x = node.term(0)
    if not node.is_quantised:
        return x.abs()
    given, wanted = node.scale(0), node.result_scale()
    factors = quantize_multiplier(float(F32(given.scale) / F32(wanted.scale)))

    def table(values: Array) -> Array:
        distance = np.abs(values - given.zero_point)
        same = given.scale == wanted.scale
        return (distance if same else scaled(distance, *factors)) + wanted.zero_point

    return tabled(node, x, table)


def convert_sqrt(node: Node) -> Term:
    """The root; quotients of integers are truncated."""
    x = node.term(0)
    if not node.is_quantised:
        return x.sqrt()
    given, wanted = node.scale(0), node.result_scale()

    def table(values: Array) -> Array:
        real = F32(given.scale) * np.maximum(values - given.zero_point, 0).astype(F32)
        return np.trunc(np.sqrt(real) / F32(wanted.scale)).astype(np.int64) + wanted.zero_point

    return tabled(node, x, table)


def convert_rsqrt(node: Node) -> Term:
    """``1 / sqrt(x)``; of bytes in fixed point, of int16 by samples; the largest of 0."""
    x = node.term(0)
    if not node.is_quantised:
        return 1.0 / x.sqrt()
    given, wanted = node.scale(0), node.result_scale()
    last = limits_of(x.dtype)[1]
    if x.dtype == DType.INT16:
        return tabled(node, x, by_samples(node, lambda x: _inverse_roots(x, F32(wanted.scale))))
    real = 1.0 / (float(np.sqrt(F32(given.scale))) * wanted.scale)
    factors = quantize_multiplier(real)

    def table(values: Array) -> Array:
        above = np.maximum(values - given.zero_point, 0)
        ones = np.ones_like(above)
        multiplier, shift = inverse_root(above, ones)
        fine = scaled_by(ones, multiplier, shift + 20)
        moved = scaled(fine, factors[0], factors[1] - 20) + wanted.zero_point
        return np.where(above == 0, last, moved)

    return tabled(node, x, table)


def _inverse_roots(x: Array, scale: np.float32) -> Array:
    return np.where(x > 0, F32(1) / np.sqrt(x), F32(32767) * scale)


def convert_log(node: Node) -> Term:
    """The natural logarithm; the least of what has none."""
    x = node.term(0)
    if not node.is_quantised:
        return x.log()
    wanted = node.result_scale()
    least = F32(limits_of(x.dtype)[0] - wanted.zero_point) * F32(wanted.scale)
    return tabled(node, x, by_samples(node, lambda x: np.where(x > 0, np.log(x), least)))


def convert_sign(node: Node) -> Term:
    """-1, 0 or 1."""
    x = node.term(0)
    zero = 0.0 if x.dtype.is_float else 0
    return (x > zero).cast(x.dtype) - (x < zero).cast(x.dtype)


def convert_cast(node: Node) -> Term:
    """Another element type."""
    x, dtype = node.term(0), node.result().dtype
    if x.dtype.is_float and not dtype.is_float and dtype.bytes < 4 and dtype != DType.BOOL:
        return x.cast(DType.INT32).cast(dtype)
    return x.cast(dtype)


def convert_zeros_like(node: Node) -> Term:
    """Zeros."""
    x = node.term(0)
    return node.constant(0, x.dtype).expand(*x.shape)


def convert_fake_quant(node: Node) -> Term:
    """Floats as some bits would hold them between two limits, zero among them."""
    low, high = F32(node.attribute("min", 0.0)), F32(node.attribute("max", 0.0))
    bits = node.attribute("num_bits", 8)
    if not low < high or not 2 <= bits <= 16:
        raise ModelError(f"{node}: limits {low} and {high}, {bits} bits; required two and 2 to 16")
    first = F32(1 if node.attribute("narrow_range") else 0)
    last = F32((1 << bits) - 1)
    scale = (high - low) / (last - first)
    zero = np.clip(np.floor(first - low / scale + F32(0.5)), first, last)
    bottom, top = float((first - zero) * scale), float((last - zero) * scale)
    steps = ((node.term(0).clip(bottom, top) - bottom) * float(F32(1) / scale) + 0.5).floor()
    return steps * float(scale) + bottom


UNARY: dict[str, Converter] = {
    "ABS": convert_abs,
    "BITCAST": lambda node: node.emit(Bitcast(node.result().dtype), node.term(0)),
    "CAST": convert_cast,
    "CEIL": _function(Term.ceil),
    "COS": _function(lambda x: x.unary(UnaryFunction.COS)),
    "EXP": _function(Term.exp, np.exp),
    "FAKE_QUANT": convert_fake_quant,
    "FILL": lambda node: node.term(1).reshape().expand(*node.integers(0)),
    "FLOOR": _function(Term.floor),
    "LOG": convert_log,
    "LOGICAL_NOT": lambda node: ~node.term(0),
    "NEG": lambda node: -node.term(0),
    "ROUND": lambda node: node.term(0).rint(),
    "RSQRT": convert_rsqrt,
    "SIGN": convert_sign,
    "SIN": _function(lambda x: x.unary(UnaryFunction.SIN)),
    "SQRT": convert_sqrt,
    "SQUARE": _function(lambda x: x * x),
    "ZEROS_LIKE": convert_zeros_like,
}
