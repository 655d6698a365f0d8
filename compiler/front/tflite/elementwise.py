"""Converters of functions of two tensors or more, element by element."""

from collections.abc import Callable

import numpy as np

from ...dtypes import DType
from ...graph.fixed_point import scaled
from ...graph.formulas import Term
from ...graph.operators.elementwise import BinaryFunction, UnaryFunction
from ...graph.operators.integer.fixed_point import AddFixed, MultiplyFixed
from .division import convert_division
from .node import Converter, Node
from .products import is_bytes
from .quantized import (
    activated,
    activation_limits,
    limits_of,
    quantize_multiplier,
    signed_limits,
    signed_zero,
)

__all__ = ["ELEMENTWISE"]

LEFT_SHIFT = 20
Factors = tuple[int, int]


def _aligned(node: Node, a: Term, b: Term) -> tuple[Term, Term, bool]:
    """Operands of one rank, the first of the result's shape, and whether they changed places."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    rank = len(shape)
    a, b = (x.reshape(*(1,) * (rank - x.rank), *x.shape) for x in (a, b))
    if a.shape != shape and b.shape == shape:
        return b, a, True
    return a.expand(*shape), b, False


def _halves(node: Node) -> tuple[float, list[Factors]]:
    """Twice the larger of two scales, and both as parts of it."""
    scales = [node.scale(place).scale for place in range(2)]
    twice = 2.0 * max(scales)
    return twice, [quantize_multiplier(scale / twice) for scale in scales]


def _sum_of_bytes(node: Node, sign: int) -> Term:
    dtype = node.result().dtype
    twice, factors = _halves(node)
    zeros = [signed_zero(node.scale(place), dtype) for place in range(2)]
    factors[1] = (sign * factors[1][0], factors[1][1])
    result = node.result_scale()
    output = quantize_multiplier(twice / float(np.float32((1 << LEFT_SHIFT) * result.scale)))
    a, b, swapped = _aligned(node, *(node.signed(node.term(place)) for place in range(2)))
    if swapped:
        zeros, factors = zeros[::-1], factors[::-1]
    operator = AddFixed(
        *(zeros[0], *factors[0], zeros[1], *factors[1], *output),
        signed_zero(result, dtype),
        *signed_limits(node),
    )
    return node.stored(node.emit(operator, a, b), dtype)


def _sum_of_int16(node: Node, sign: int) -> Term:
    """Sums of 16 bits, shifted left by 15."""
    if node.attribute("pot_scale_int16", 1) and _powers_of_two(node):
        raise node.unsupported("int16 with scales that are powers of two")
    twice, factors = _halves(node)
    result, shift = node.result_scale(), 15
    a, b = (
        scaled((node.term(p).cast(DType.INT32) - node.scale(p).zero_point) << shift, *factors[p])
        for p in range(2)
    )
    output = quantize_multiplier(twice / float(np.float32((1 << shift) * result.scale)))
    total = scaled(a + b if sign > 0 else a - b, *output) + result.zero_point
    return total.clip(*activation_limits(node)).cast(DType.INT16)


def _powers_of_two(node: Node) -> bool:
    scales = [node.scale(0).scale, node.scale(1).scale, node.result_scale().scale]
    return all(np.frexp(scale)[0] == 0.5 for scale in scales)


def _added(node: Node, sign: int) -> Term:
    a, b = node.term(0), node.term(1)
    if is_bytes(node):
        return _sum_of_bytes(node, sign)
    if a.dtype == DType.INT16 and node.info(0).quantization is not None:
        return _sum_of_int16(node, sign)
    return activated(node, a + b if sign > 0 else a - b)


def convert_mul(node: Node) -> Term:
    """``a * b``."""
    scales = [node.info(place).quantization for place in range(2)]
    if scales[0] is None or node.term(0).dtype.is_float or node.term(0).dtype == DType.INT32:
        return activated(node, node.term(0) * node.term(1))
    given, result = [node.scale(0), node.scale(1)], node.result_scale()
    dtype = node.result().dtype
    product = float(np.float32(given[0].scale) * np.float32(given[1].scale))
    factors = quantize_multiplier(product / result.scale)
    if dtype == DType.INT16:
        a, b = (node.term(p).cast(DType.INT32) - given[p].zero_point for p in range(2))
        total = scaled(a * b, *factors) + result.zero_point
        return total.clip(*activation_limits(node)).cast(dtype)
    zeros = [signed_zero(scale, dtype) for scale in given]
    a, b, swapped = _aligned(node, *(node.signed(node.term(place)) for place in range(2)))
    first, second = zeros[::-1] if swapped else zeros
    low, high = signed_limits(node)
    operator = MultiplyFixed(first, second, *factors, signed_zero(result, dtype), low, high)
    return node.stored(node.emit(operator, a, b), dtype)


def convert_squared_difference(node: Node) -> Term:
    """``(a - b) ** 2``."""
    a, b = node.term(0), node.term(1)
    if not is_bytes(node):
        return (a - b) * (a - b)
    shift, result = 7, node.result_scale()
    twice, factors = _halves(node)
    a, b = (
        scaled((x.cast(DType.INT32) - node.scale(place).zero_point) << shift, *factors[place])
        for place, x in enumerate((a, b))
    )
    real = twice * twice / float(np.float32((1 << (2 * shift)) * result.scale))
    total = scaled((a - b) * (a - b), *quantize_multiplier(real)) + result.zero_point
    return total.clip(*limits_of(DType.INT8)).cast(DType.INT8)


def _floor_div(a: Term, b: Term) -> Term:
    if a.dtype.is_float:
        return (a / b).floor()
    return a.binary(BinaryFunction.FLOORDIV, b)


def _comparison(compare: Callable[[Term, Term], Term]) -> Converter:
    def convert(node: Node) -> Term:
        a, b = node.term(0), node.term(1)
        quantised = node.info(0).quantization is not None and a.dtype not in (
            DType.INT32,
            DType.INT64,
        )
        if a.dtype.is_float or not quantised:
            return compare(a, b)
        a, b = (
            scaled(
                (x.cast(DType.INT32) - node.scale(place).zero_point) << 8,
                *quantize_multiplier(node.scale(place).scale),
            )
            for place, x in enumerate((a, b))
        )
        return compare(a, b)

    return convert


def _of_two(function: Callable[[Term, Term], Term]) -> Converter:
    return lambda node: function(node.term(0), node.term(1))


def _not_equal(a: Term, b: Term) -> Term:
    return a.binary(BinaryFunction.NE, b)


def convert_atan2(node: Node) -> Term:
    """The angle of ``(x, y)``, by the arctangent of the smaller over the larger."""
    y, x = node.term(0), node.term(1)
    small, large = y.abs().minimum(x.abs()), y.abs().maximum(x.abs())
    ratio = small / large.equal(0.0).where(1.0, large, x.dtype)
    angle = ratio.unary(UnaryFunction.ATAN)
    angle = (y.abs() > x.abs()).where(np.pi / 2 - angle, angle, x.dtype)
    angle = (x < 0.0).where(np.pi - angle, angle, x.dtype)
    return (y < 0.0).where(-angle, angle, x.dtype)


def convert_add_n(node: Node) -> Term:
    """The sum of all operands."""
    total, *rest = node.terms()
    for each in rest:
        total = total + each
    return total


def convert_select(node: Node) -> Term:
    """Elements of the second or third operand; of rows, where the condition is a vector."""
    condition, a, b = node.term(0), node.term(1), node.term(2)
    if node.kind == "SELECT" and condition.rank == 1 and a.rank > 1:
        condition = condition.reshape(*condition.shape, *(1,) * (a.rank - 1))
    return condition.where(a, b, a.dtype)


ELEMENTWISE: dict[str, Converter] = {
    "ADD": lambda node: _added(node, 1),
    "ADD_N": convert_add_n,
    "ATAN2": convert_atan2,
    "BITWISE_XOR": _of_two(lambda a, b: a.binary(BinaryFunction.XOR, b)),
    "DIV": convert_division,
    "EQUAL": _comparison(lambda a, b: a.equal(b)),
    "FLOOR_DIV": _of_two(_floor_div),
    "FLOOR_MOD": _of_two(lambda a, b: a % b),
    "GREATER": _comparison(lambda a, b: a > b),
    "GREATER_EQUAL": _comparison(lambda a, b: a >= b),
    "LESS": _comparison(lambda a, b: a < b),
    "LESS_EQUAL": _comparison(lambda a, b: a <= b),
    "LOGICAL_AND": _of_two(lambda a, b: a & b),
    "LOGICAL_OR": _of_two(lambda a, b: a | b),
    "MAXIMUM": _of_two(lambda a, b: a.maximum(b)),
    "MINIMUM": _of_two(lambda a, b: a.minimum(b)),
    "MUL": convert_mul,
    "NOT_EQUAL": _comparison(_not_equal),
    "POW": _of_two(lambda a, b: a.power(b)),
    "RIGHT_SHIFT": _of_two(lambda a, b: a >> b),
    "SELECT": convert_select,
    "SELECT_V2": convert_select,
    "SQUARED_DIFFERENCE": convert_squared_difference,
    "SUB": lambda node: _added(node, -1),
}
