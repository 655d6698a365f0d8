"""Elements of element-wise operators."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators import elementwise
from ..graph.operators.functions import SHIFTS
from ..loops.expressions import (
    Binary,
    BinaryFunction,
    Bitcast,
    Cast,
    Constant,
    Expr,
    MultiplyAdd,
    Select,
    Unary,
)
from .operand import Element, Indices, Operand

__all__ = ["ELEMENTWISE"]

DIVISIONS = frozenset(
    {BinaryFunction.DIV, BinaryFunction.FLOORDIV, BinaryFunction.MOD, BinaryFunction.REM}
)


def unary(operator: elementwise.Unary, operands: Sequence[Operand], indices: Indices) -> Expr:
    """One function of the same name."""
    return Unary(operator.function, operands[0][indices])


def binary(operator: elementwise.Binary, operands: Sequence[Operand], indices: Indices) -> Expr:
    """One function of the same name; what the loop program leaves open is spelled out."""
    a, b = (each.broadcast(indices) for each in operands)
    function, dtype = operator.function, a.dtype
    if not dtype.is_float and dtype != DType.BOOL:
        if function in DIVISIONS:
            return _divide(function, a, b)
        if function in SHIFTS:
            return _shift(function, a, b)
    return Binary(function, a, b)


def where(operator: elementwise.Where, operands: Sequence[Operand], indices: Indices) -> Expr:
    """A selection between two values, both computed."""
    condition, a, b = (each.broadcast(indices) for each in operands)
    return Select(condition, a, b)


def multiply_add(
    operator: elementwise.MultiplyAdd, operands: Sequence[Operand], indices: Indices
) -> Expr:
    """The expression of the same name."""
    return MultiplyAdd(*(each.broadcast(indices) for each in operands))


def cast(operator: elementwise.Cast, operands: Sequence[Operand], indices: Indices) -> Expr:
    """To bool by comparison with 0."""
    x = operands[0][indices]
    if operator.dtype == x.dtype:
        return x
    if operator.dtype == DType.BOOL:
        return Binary(BinaryFunction.NE, x, Constant(0, x.dtype))
    return Cast(operator.dtype, x)


def bitcast(operator: elementwise.Bitcast, operands: Sequence[Operand], indices: Indices) -> Expr:
    """The same bits."""
    return Bitcast(operator.dtype, operands[0][indices])


def _divide(function: BinaryFunction, a: Expr, b: Expr) -> Expr:
    """0 where the divisor is 0, as no machine agrees on another answer."""
    if isinstance(b, Constant) and b.value:
        return Binary(function, a, b)
    nought = Constant(0, a.dtype)
    by_zero = Binary(BinaryFunction.EQ, b, nought)
    divisor = Select(by_zero, Constant(1, a.dtype), b)
    return Select(by_zero, nought, Binary(function, a, divisor))


def _shift(function: BinaryFunction, a: Expr, b: Expr) -> Expr:
    """By the dtype's width or more: 0, or the sign."""
    width, nought = a.dtype.bytes * 8, Constant(0, a.dtype)
    inside = Binary(BinaryFunction.LT, b, Constant(width, a.dtype))
    if a.dtype.is_signed:
        inside = Binary(BinaryFunction.AND, inside, Binary(BinaryFunction.LE, nought, b))
    amount = Select(inside, b, nought)
    beyond: Expr = nought
    if function is BinaryFunction.SHR and a.dtype.is_signed:
        beyond = Binary(BinaryFunction.SHR, a, Constant(width - 1, a.dtype))
    return Select(inside, Binary(function, a, amount), beyond)


ELEMENTWISE: Mapping[type[Any], Element] = {
    elementwise.Unary: unary,
    elementwise.Binary: binary,
    elementwise.Where: where,
    elementwise.MultiplyAdd: multiply_add,
    elementwise.Cast: cast,
    elementwise.Bitcast: bitcast,
}
