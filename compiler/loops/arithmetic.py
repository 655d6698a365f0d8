"""Exact results of the functions of expressions, on single values.

Values are Python bools for bool, Python ints for integers, NumPy scalars of their dtype for floats.
"""

import math
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..dtypes import DType
from ..graph.operators.functions import UNARY
from .expressions import COMPARISONS, BinaryFunction, UnaryFunction

__all__ = ["binary", "bitcast", "cast", "constant", "integer_limits", "unary", "wrap"]

Value = Any
"""A bool, an int or a NumPy scalar."""


@cache
def integer_limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype, or of bool."""
    if dtype is DType.BOOL:
        return 0, 1
    bits = 8 * dtype.bytes
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed else (0, (1 << bits) - 1)


def wrap(value: int, dtype: DType) -> int:
    """``value`` modulo 2**bits, in the integer dtype's range."""
    low, high = integer_limits(dtype)
    return value if low <= value <= high else (value - low) % (high - low + 1) + low


def constant(value: int | float | bool, dtype: DType) -> Value:
    """``value`` as the interpreter holds it."""
    if dtype is DType.BOOL:
        return bool(value)
    if dtype.is_float:
        return dtype.numpy.type(value)
    return wrap(int(value), dtype)


ROUNDINGS = frozenset(
    {UnaryFunction.FLOOR, UnaryFunction.CEIL, UnaryFunction.TRUNC, UnaryFunction.RINT}
)


def unary(function: UnaryFunction, dtype: DType) -> Callable[[Value], Value]:
    """``function`` on an operand of ``dtype``.

    Functions of analysis are those of float64, rounded to ``dtype``, or truncated to an integer.
    """
    match function:
        case UnaryFunction.ISNAN | UnaryFunction.ISINF if not dtype.is_float:
            return lambda value: False
        case UnaryFunction.ISNAN:
            return lambda value: bool(np.isnan(value))
        case UnaryFunction.ISINF:
            return lambda value: bool(np.isinf(value))
        case UnaryFunction.NOT if dtype is DType.BOOL:
            return operator.not_
        case UnaryFunction.NOT:
            return lambda value: wrap(~value, dtype)
        case UnaryFunction.NEG if dtype.is_float:
            return operator.neg
        case UnaryFunction.NEG:
            return lambda value: wrap(-value, dtype)
        case UnaryFunction.ABS if dtype.is_float:
            return abs
        case UnaryFunction.ABS:
            return lambda value: wrap(abs(value), dtype)
        case _ if function in ROUNDINGS and not dtype.is_float:
            return lambda value: value
    compute, back = UNARY[function], cast(DType.FLOAT64, dtype)
    return lambda value: back(np.float64(compute(np.float64(value))))


def binary(function: BinaryFunction, dtype: DType) -> Callable[[Value, Value], Value]:
    """``function`` on operands of ``dtype``.

    Raises ArithmeticError, when called, for an integer division by zero and for a shift by less
    than 0 or by all bits.
    """
    if function in COMPARISONS:
        compare = COMPARE[function]
        return lambda a, b: bool(compare(a, b))
    if dtype.is_float:
        return _float_binary(function, dtype)
    compute = INTEGER[function]
    if dtype is DType.BOOL:
        return lambda a, b: bool(wrap(compute(int(a), int(b)), dtype))
    if function in (BinaryFunction.SHL, BinaryFunction.SHR):
        bits = 8 * dtype.bytes

        def shift(value: int, by: int) -> int:
            if not 0 <= by < bits:
                raise ArithmeticError(f"required a shift of 0 to {bits - 1}")
            return wrap(compute(value, by), dtype)

        return shift
    return lambda a, b: wrap(compute(a, b), dtype)


COMPARE: dict[BinaryFunction, Callable[[Value, Value], Any]] = {
    BinaryFunction.LT: operator.lt,
    BinaryFunction.LE: operator.le,
    BinaryFunction.EQ: operator.eq,
    BinaryFunction.NE: operator.ne,
}


def _truncating(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _power(base: int, exponent: int) -> int:
    """``base ** exponent``; toward zero of the fraction that a negative exponent gives."""
    if exponent >= 0:
        return pow(base, exponent, 1 << 64)
    if base == 0:
        raise ZeroDivisionError("a negative power of zero")
    return {1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(base, 0)


INTEGER: dict[BinaryFunction, Callable[[int, int], int]] = {
    BinaryFunction.ADD: operator.add,
    BinaryFunction.SUB: operator.sub,
    BinaryFunction.MUL: operator.mul,
    BinaryFunction.DIV: _truncating,
    BinaryFunction.FLOORDIV: operator.floordiv,
    BinaryFunction.MOD: operator.mod,
    BinaryFunction.REM: lambda a, b: a - _truncating(a, b) * b,
    BinaryFunction.POW: _power,
    BinaryFunction.MIN: min,
    BinaryFunction.MAX: max,
    BinaryFunction.AND: operator.and_,
    BinaryFunction.OR: operator.or_,
    BinaryFunction.XOR: operator.xor,
    BinaryFunction.SHL: operator.lshift,
    BinaryFunction.SHR: operator.rshift,
}


def _float_binary(function: BinaryFunction, dtype: DType) -> Callable[[Value, Value], Value]:
    kind = dtype.numpy.type
    match function:
        case BinaryFunction.ADD:
            return operator.add
        case BinaryFunction.SUB:
            return operator.sub
        case BinaryFunction.MUL:
            return operator.mul
        case BinaryFunction.DIV:
            return operator.truediv
        case BinaryFunction.FLOORDIV:
            return lambda a, b: kind(np.floor(a / b))
        case BinaryFunction.MIN:
            return lambda a, b: a if np.isnan(a) or a < b else b
        case BinaryFunction.MAX:
            return lambda a, b: a if np.isnan(a) or a > b else b
        case BinaryFunction.MOD:
            return lambda a, b: kind(np.mod(np.float64(a), np.float64(b)))
        case BinaryFunction.REM:
            return lambda a, b: kind(np.fmod(np.float64(a), np.float64(b)))
        case BinaryFunction.POW:
            return lambda a, b: kind(np.power(np.float64(a), np.float64(b)))
    raise TypeError(f"{function} of {dtype} has no meaning")


def cast(source: DType, target: DType) -> Callable[[Value], Value]:
    """Conversion from ``source`` to ``target``."""
    if target is DType.BOOL:
        return bool
    if target.is_float:
        given, kind = source.numpy.type, target.numpy
        return (
            (lambda value: value) if source is target else lambda value: given(value).astype(kind)
        )
    if not source.is_float:
        return lambda value: wrap(int(value), target)
    low, high = integer_limits(target)
    numpy = target.numpy

    def truncate(value: Value) -> int:
        if math.isfinite(value) and low <= int(value) <= high:
            return int(value)
        return int(np.float64(value).astype(numpy))

    return truncate


def bitcast(source: DType, target: DType) -> Callable[[Value], Value]:
    """The bits of ``source`` as ``target``."""
    if source.bytes != target.bytes:
        raise TypeError(f"a bitcast of {source} to {target}, of another size, has no meaning")

    def reinterpret(value: Value) -> Value:
        bits = np.array(value, dtype=source.numpy).view(target.numpy)
        return bits[()] if target.is_float else bits.item()

    return reinterpret
