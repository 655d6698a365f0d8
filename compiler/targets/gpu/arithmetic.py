"""Parts of the functions of ``maths.py``: numbers, quotients, signs, polynomials."""

from collections.abc import Sequence

from ...dtypes import DType
from ...loops.expressions import Binary, Bitcast, Constant, Expr, MultiplyAdd, Unary
from ...loops.expressions import BinaryFunction as B
from ...loops.expressions import UnaryFunction as U

__all__ = [
    "BITS",
    "F32",
    "F64",
    "absolute",
    "divide",
    "fused",
    "number",
    "root",
    "series",
    "with_sign",
]

F32, F64 = DType.FLOAT32, DType.FLOAT64
BITS = {F32: DType.INT32, F64: DType.INT64}


def number(value: float, like: Expr) -> Constant:
    return Constant(value, like.dtype)


def absolute(x: Expr) -> Expr:
    return Unary(U.ABS, x)


def root(x: Expr) -> Expr:
    return Unary(U.SQRT, x)


def divide(a: Expr | float, b: Expr) -> Expr:
    return Binary(B.DIV, number(a, b) if isinstance(a, float) else a, b)


def with_sign(size: Expr, x: Expr) -> Expr:
    """``size`` with the sign of ``x``, also where that is -0."""
    bits = BITS[x.dtype]
    sign = Constant(-(1 << 8 * bits.bytes - 1), bits)
    return Bitcast(x.dtype, Bitcast(bits, size) | (Bitcast(bits, x) & sign))


def series(x: Expr, coefficients: Sequence[float]) -> Expr:
    """``c[0] + x * (c[1] + x * ...)``."""
    total: Expr = number(coefficients[-1], x)
    for each in reversed(coefficients[:-1]):
        total = fused(total, x, number(each, x))
    return total


def fused(a: Expr, b: Expr, c: Expr) -> Expr:
    """``a * b + c``, in float32 rounded once."""
    return MultiplyAdd(a, b, c) if a.dtype is F32 else a * b + c
