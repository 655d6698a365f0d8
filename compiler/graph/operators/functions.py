"""Functions of one and of two elements, and what they compute.

Loop programs have the same functions, but leave some results open that are given here: see
``loops/expressions.py``.
"""

from collections.abc import Callable
from enum import StrEnum
from math import erf
from typing import Any

import numpy as np

from ...dtypes import DType
from .protocol import Array

__all__ = [
    "BITWISE",
    "COMPARISONS",
    "OF_INTEGERS",
    "SHIFTS",
    "TESTS",
    "UNARY",
    "BinaryFunction",
    "UnaryFunction",
    "evaluate_binary",
    "evaluate_unary",
]


class UnaryFunction(StrEnum):
    """Functions of one operand; the tests give bool, the others the operand's dtype."""

    NEG = "neg"
    ABS = "abs"
    NOT = "not"
    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SINH = "sinh"
    COSH = "cosh"
    TANH = "tanh"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    ERF = "erf"
    FLOOR = "floor"
    CEIL = "ceil"
    TRUNC = "trunc"
    RINT = "rint"
    """To the nearest integer, half to even."""
    ISNAN = "isnan"
    ISINF = "isinf"


class BinaryFunction(StrEnum):
    """Functions of two operands of one dtype; comparisons give bool, the others that dtype."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    """Integers are rounded towards zero; they and their remainders are 0 where the divisor is 0."""
    FLOORDIV = "floordiv"
    """The quotient rounded down."""
    MOD = "mod"
    """The sign of the divisor, as in Python."""
    REM = "rem"
    """The sign of the dividend, as C's fmod."""
    POW = "pow"
    MIN = "min"
    MAX = "max"
    """NaN when a float operand is NaN."""
    AND = "and"
    OR = "or"
    XOR = "xor"
    SHL = "shl"
    SHR = "shr"
    """Arithmetic for signed dtypes, logical for unsigned."""
    LT = "lt"
    LE = "le"
    EQ = "eq"
    NE = "ne"


TESTS = frozenset({UnaryFunction.ISNAN, UnaryFunction.ISINF})
COMPARISONS = frozenset(
    {BinaryFunction.LT, BinaryFunction.LE, BinaryFunction.EQ, BinaryFunction.NE}
)
OF_INTEGERS = frozenset({UnaryFunction.NEG, UnaryFunction.ABS, UnaryFunction.NOT})
BITWISE = frozenset({BinaryFunction.AND, BinaryFunction.OR, BinaryFunction.XOR})
SHIFTS = frozenset({BinaryFunction.SHL, BinaryFunction.SHR})

UNARY: dict[UnaryFunction, Callable[..., Any]] = {
    UnaryFunction.NEG: np.negative,
    UnaryFunction.ABS: np.abs,
    UnaryFunction.NOT: np.invert,
    UnaryFunction.EXP: np.exp,
    UnaryFunction.LOG: np.log,
    UnaryFunction.SQRT: np.sqrt,
    UnaryFunction.SIN: np.sin,
    UnaryFunction.COS: np.cos,
    UnaryFunction.TAN: np.tan,
    UnaryFunction.ASIN: np.arcsin,
    UnaryFunction.ACOS: np.arccos,
    UnaryFunction.ATAN: np.arctan,
    UnaryFunction.SINH: np.sinh,
    UnaryFunction.COSH: np.cosh,
    UnaryFunction.TANH: np.tanh,
    UnaryFunction.ASINH: np.arcsinh,
    UnaryFunction.ACOSH: np.arccosh,
    UnaryFunction.ATANH: np.arctanh,
    UnaryFunction.ERF: np.vectorize(erf, otypes=[np.float64]),
    UnaryFunction.FLOOR: np.floor,
    UnaryFunction.CEIL: np.ceil,
    UnaryFunction.TRUNC: np.trunc,
    UnaryFunction.RINT: np.rint,
    UnaryFunction.ISNAN: np.isnan,
    UnaryFunction.ISINF: np.isinf,
}
"""NumPy's function of each."""

BINARY: dict[BinaryFunction, Callable[..., Any]] = {
    BinaryFunction.ADD: np.add,
    BinaryFunction.SUB: np.subtract,
    BinaryFunction.MUL: np.multiply,
    BinaryFunction.MOD: np.remainder,
    BinaryFunction.REM: np.fmod,
    BinaryFunction.MIN: np.minimum,
    BinaryFunction.MAX: np.maximum,
    BinaryFunction.AND: np.bitwise_and,
    BinaryFunction.OR: np.bitwise_or,
    BinaryFunction.XOR: np.bitwise_xor,
    BinaryFunction.LT: np.less,
    BinaryFunction.LE: np.less_equal,
    BinaryFunction.EQ: np.equal,
    BinaryFunction.NE: np.not_equal,
}


def evaluate_unary(function: UnaryFunction, x: Array) -> Array:
    """NumPy's function; of 16-bit floats, that of float32, rounded."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and _is_float(x) else x
    with np.errstate(all="ignore"):
        found = np.asarray(UNARY[function](wide))
        return found if function in TESTS else found.astype(x.dtype)


def evaluate_binary(function: BinaryFunction, a: Array, b: Array) -> Array:
    """NumPy's function; of 16-bit floats, that of float32, rounded."""
    wide = np.float32 if a.dtype.itemsize == 2 and _is_float(a) else a.dtype
    with np.errstate(all="ignore"):
        found = np.asarray(_binary(function, a.astype(wide), b.astype(wide)))
        return found if function in COMPARISONS else found.astype(a.dtype)


def _is_float(x: Array) -> bool:
    return DType(str(x.dtype)).is_float


def _binary(function: BinaryFunction, a: Array, b: Array) -> Array:
    if function is BinaryFunction.DIV:
        return np.true_divide(a, b) if _is_float(a) else _divide_integers(a, b)
    if function is BinaryFunction.FLOORDIV:
        return np.floor(np.true_divide(a, b)) if _is_float(a) else np.floor_divide(a, b)
    if function is BinaryFunction.POW:
        return np.power(a, b) if _is_float(a) else _power_integers(a, b)
    if function in SHIFTS:
        return _shift(function, a, b)
    return np.asarray(BINARY[function](a, b))


def _divide_integers(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    inexact = (b != 0) & (quotient * b != a) & ((a < 0) != (b < 0))
    return np.where(inexact, quotient + 1, quotient).astype(a.dtype)


def _power_integers(a: Array, b: Array) -> Array:
    """By repeated squaring, wrapped; a negative exponent gives 1 / a ** -b, truncated."""
    a, b = np.broadcast_arrays(a, b)
    # The least number has its absolute value among those without a sign only.
    result, base, exponent = np.ones_like(a), a.copy(), np.abs(b).view(f"u{b.itemsize}")
    while exponent.any():
        result = np.where(exponent & 1, result * base, result)
        base, exponent = base * base, exponent >> 1
    if not np.issubdtype(a.dtype, np.signedinteger):
        return result.astype(a.dtype)
    inverse = np.where(np.abs(a) == 1, result, 0)
    return np.where(b < 0, inverse, result).astype(a.dtype)


def _shift(function: BinaryFunction, a: Array, b: Array) -> Array:
    """A shift by the dtype's width or more gives 0, or -1 for a negative number to the right."""
    width = a.dtype.itemsize * 8
    beyond = (b < 0) | (b >= width) if a.dtype.kind == "i" else b >= width
    amount = np.where(beyond, 0, b).astype(a.dtype)
    if function is BinaryFunction.SHL:
        return np.where(beyond, 0, np.left_shift(a, amount)).astype(a.dtype)
    last = np.where(a < 0, -1, 0) if a.dtype.kind == "i" else 0
    return np.where(beyond, last, np.right_shift(a, amount)).astype(a.dtype)
