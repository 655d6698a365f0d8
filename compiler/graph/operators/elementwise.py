"""Operators that work element by element, with NumPy's broadcasting."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import erf
from typing import Any, ClassVar

import numpy as np

from ...dtypes import DType
from ..types import TensorType
from .protocol import Array, Fusion, require, require_inputs

__all__ = [
    "Binary",
    "BinaryFunction",
    "Bitcast",
    "Cast",
    "MultiplyAdd",
    "Unary",
    "UnaryFunction",
    "Where",
    "broadcast_shape",
    "multiply_add",
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
    """Of integers: towards zero; division by zero gives 0."""
    MOD = "mod"
    """The sign of the divisor."""
    REM = "rem"
    """The sign of the dividend."""
    POW = "pow"
    MIN = "min"
    MAX = "max"
    """Of floats: NaN when an operand is NaN."""
    AND = "and"
    OR = "or"
    XOR = "xor"
    SHL = "shl"
    SHR = "shr"
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


def broadcast_shape(operator: object, inputs: Sequence[TensorType]) -> tuple[int, ...]:
    """The common shape.  Raises GraphError when there is none."""
    try:
        return np.broadcast_shapes(*(each.shape for each in inputs))
    except ValueError:
        found = ", ".join(map(str, inputs))
        require(operator, False, found, "shapes that broadcast")
        raise


@dataclass(frozen=True, slots=True)
class Unary:
    """``function(x)`` of every element."""

    function: UnaryFunction

    fusion: ClassVar[Fusion] = Fusion.ELEMENTWISE

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", UnaryFunction(self.function))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Tests give bool."""
        require_inputs(self, inputs, 1)
        (x,) = inputs
        if self.function is UnaryFunction.NOT:
            require(self, not x.dtype.is_float, x, "bool or integers for not")
        elif self.function in OF_INTEGERS:
            require(self, x.dtype != DType.BOOL, x, f"numbers for {self.function}")
        else:
            require(self, x.dtype.is_float, x, f"floats for {self.function}")
        return (TensorType(x.shape, DType.BOOL if self.function in TESTS else x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's function; of 16-bit floats, that of float32, rounded."""
        (x,) = inputs
        wide = x.astype(np.float32) if x.dtype.itemsize == 2 and _is_float(x) else x
        with np.errstate(all="ignore"):
            found = np.asarray(UNARY[self.function](wide))
        return (found if self.function in TESTS else found.astype(x.dtype),)


@dataclass(frozen=True, slots=True)
class Binary:
    """``function(a, b)`` of every pair of elements, broadcast; integers wrap."""

    function: BinaryFunction

    fusion: ClassVar[Fusion] = Fusion.ELEMENTWISE

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", BinaryFunction(self.function))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Comparisons give bool."""
        require_inputs(self, inputs, 2)
        a, b = inputs
        require(self, a.dtype == b.dtype, f"{a} and {b}", "one dtype")
        if self.function in BITWISE:
            require(self, not a.dtype.is_float, a, "bool or integers")
        elif self.function in SHIFTS:
            require(self, not a.dtype.is_float and a.dtype != DType.BOOL, a, "integers")
        shape = broadcast_shape(self, inputs)
        return (TensorType(shape, DType.BOOL if self.function in COMPARISONS else a.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's function; of 16-bit floats, that of float32, rounded."""
        a, b = inputs
        wide = np.float32 if a.dtype.itemsize == 2 and _is_float(a) else a.dtype
        with np.errstate(all="ignore"):
            found = np.asarray(_binary(self.function, a.astype(wide), b.astype(wide)))
        return (found if self.function in COMPARISONS else found.astype(a.dtype),)


@dataclass(frozen=True, slots=True)
class Where:
    """``a if condition else b`` of every triple of elements, broadcast."""

    fusion: ClassVar[Fusion] = Fusion.ELEMENTWISE

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """condition: bool; a, b: of one dtype."""
        require_inputs(self, inputs, 3)
        condition, a, b = inputs
        require(self, condition.dtype == DType.BOOL, condition, "a condition of bool")
        require(self, a.dtype == b.dtype, f"{a} and {b}", "one dtype")
        return (TensorType(broadcast_shape(self, inputs), a.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``where``."""
        condition, a, b = inputs
        return (np.where(condition, a, b).astype(a.dtype),)


@dataclass(frozen=True, slots=True)
class MultiplyAdd:
    """``a * b + c`` of float32, broadcast, rounded once."""

    fusion: ClassVar[Fusion] = Fusion.ELEMENTWISE

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """float32, of the common shape."""
        require_inputs(self, inputs, 3)
        found = ", ".join(map(str, inputs))
        require(self, all(x.dtype == DType.FLOAT32 for x in inputs), found, "float32")
        return (TensorType(broadcast_shape(self, inputs), DType.FLOAT32),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By ``multiply_add``."""
        return (multiply_add(*inputs),)


@dataclass(frozen=True, slots=True)
class Cast:
    """``x`` as ``dtype``: to bool is ``x != 0``, float to integer truncates, integers wrap.

    What a float outside an integer dtype's range, or NaN, becomes is left open.
    """

    dtype: DType

    fusion: ClassVar[Fusion] = Fusion.ELEMENTWISE

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", DType(self.dtype))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Same shape."""
        require_inputs(self, inputs, 1)
        return (TensorType(inputs[0].shape, self.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``astype``."""
        with np.errstate(all="ignore"):
            return (np.asarray(inputs[0].astype(self.dtype.numpy)),)


@dataclass(frozen=True, slots=True)
class Bitcast:
    """The bits of ``x`` read as ``dtype``, of the same size."""

    dtype: DType

    fusion: ClassVar[Fusion] = Fusion.ELEMENTWISE

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", DType(self.dtype))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Same shape."""
        require_inputs(self, inputs, 1)
        (x,) = inputs
        require(self, x.dtype.bytes == self.dtype.bytes, x, f"{self.dtype.bytes} bytes an element")
        return (TensorType(x.shape, self.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``view``."""
        return (np.ascontiguousarray(inputs[0]).reshape(inputs[0].shape).view(self.dtype.numpy),)


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of float32, rounded once.

    The product is exact in float64; the sum is rounded to the neighbour whose last bit is set, from
    which float32 rounds as from the exact sum.  Source: S. Boldo and G. Melquiond, "Emulation of a
    FMA and correctly rounded sums", 2008.
    """
    with np.errstate(all="ignore"):
        product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
        addend = np.asarray(c, np.float64)
        total = np.asarray(product + addend)
        part = total - product
        error = (product - (total - part)) + (addend - part)
        bits = total.view(np.int64)
        step = np.where(np.signbit(error) == np.signbit(total), 1, -1)
        inexact = (error != 0) & ~np.isnan(error) & (bits & 1 == 0)
        moved = np.where(inexact, bits + step, bits)
        return np.asarray(moved.view(np.float64).astype(np.float32))


def _is_float(x: Array) -> bool:
    return DType(str(x.dtype)).is_float


def _binary(function: BinaryFunction, a: Array, b: Array) -> Array:
    if function is BinaryFunction.DIV:
        return np.true_divide(a, b) if _is_float(a) else _divide_integers(a, b)
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
    result, base, exponent = np.ones_like(a), a.copy(), np.abs(b)
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
