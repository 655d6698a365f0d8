"""Code of expressions, for one element or for the lanes of a vector loop."""

from typing import assert_never

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import (
    COMPARISONS,
    Binary,
    Bitcast,
    Cast,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Select,
    Unary,
    Variable,
)
from ....loops.expressions import BinaryFunction as B
from ....loops.expressions import UnaryFunction as U
from ....loops.traverse import loads, operands
from ...llvm.integers import integer_binary, integer_compare
from ...llvm.values import Operand, Value, constant
from .context import Context
from .conversions import convert
from .floats import float_binary, float_compare, float_unary
from .fused import exact_multiply_add
from .indices import index_arithmetic
from .known import bounded
from .memory import load, locate

__all__ = ["evaluate", "evaluate_scalar", "has_load"]


def evaluate(context: Context, expr: Expr) -> Operand:
    """The value of ``expr``.  Shared operands are computed once; only selections recurse."""
    if isinstance(expr, Constant | Variable):
        return _evaluate(context, expr)
    stack = [expr]
    while stack:
        node = stack[-1]
        if context.known(node) is not None:
            stack.pop()
            continue
        strict = (node.condition,) if isinstance(node, Select) else operands(node)
        waiting = [
            each
            for each in strict
            if not isinstance(each, Constant | Variable) and context.known(each) is None
        ]
        if waiting:
            stack += reversed(waiting)
            continue
        stack.pop()
        context.memo[-1][id(node)] = _evaluate(context, node)
    found = context.known(expr)
    assert found is not None
    return found


def evaluate_scalar(context: Context, expr: Expr) -> Value:
    """The value of an expression that is the same in all lanes."""
    result = evaluate(context, expr)
    assert isinstance(result, Value)
    assert result.lanes == 1
    return result


def has_load(expr: Expr) -> bool:
    """True if evaluating it reads memory."""
    return next(loads(expr), None) is not None


def _evaluate(context: Context, expr: Expr) -> Operand:
    match expr:
        case Constant():
            return constant(expr.value, expr.dtype)
        case Variable():
            return _variable(context, expr)
        case Load():
            place = context.places.get(expr.buffer.name)
            if place is None:
                raise GraphError(
                    f"{context.function}: load of {expr.buffer.name}, which is not in scope"
                )
            indices = [evaluate(context, index) for index in expr.indices]
            return load(context, place, locate(context, place, indices))
        case Unary():
            return unary(
                context, expr.function, context.materialize(evaluate(context, expr.operand))
            )
        case Binary():
            left, right = evaluate(context, expr.left), evaluate(context, expr.right)
            return binary(context, expr.function, left, right)
        case Select():
            return _select(context, expr)
        case MultiplyAdd():
            below = (evaluate(context, each) for each in operands(expr))
            return exact_multiply_add(context.e, *context.common(tuple(below)))
        case Cast():
            operand = context.materialize(evaluate(context, expr.operand))
            return convert(context.e, operand, expr.dtype)
        case Bitcast():
            return _bitcast(context, expr)
        case _:
            assert_never(expr)


def _variable(context: Context, expr: Variable) -> Operand:
    found = context.variables.get(expr.name)
    if found is None:
        raise GraphError(f"{context.function}: variable {expr.name} is not in scope")
    return found


def _bitcast(context: Context, expr: Bitcast) -> Value:
    operand = context.materialize(evaluate(context, expr.operand))
    if operand.dtype.bytes != expr.dtype.bytes or DType.BOOL in (operand.dtype, expr.dtype):
        raise GraphError(f"bitcast of {operand.dtype} to {expr.dtype}; required dtypes of one size")
    return context.e.bitcast(Value(operand.ref, operand.dtype, operand.lanes), expr.dtype)


def unary(context: Context, function: U, a: Value) -> Value:
    """``function(a)``; of integers, the functions of analysis are computed in float64."""
    e = context.e
    if a.dtype.is_float:
        return float_unary(e, function, a)
    zero = constant(0, a.dtype, a.lanes)
    match function:
        case U.NOT:
            return e.binary(
                "xor", a, constant(True if a.dtype is DType.BOOL else -1, a.dtype, a.lanes)
            )
        case U.NEG:
            return e.binary("sub", zero, a)
        case U.ABS if a.dtype.is_signed:
            negative = e.compare("slt", a, zero)
            return e.select(negative, e.binary("sub", zero, a), a)
        case U.ABS | U.FLOOR | U.CEIL | U.TRUNC | U.RINT:
            return a
        case U.ISNAN | U.ISINF:
            return constant(False, DType.BOOL, a.lanes)
        case _:
            wide = float_unary(e, function, convert(e, a, DType.FLOAT64))
            return convert(e, wide, a.dtype)


def binary(context: Context, function: B, left: Operand, right: Operand) -> Operand:
    """``function(left, right)``; index arithmetic stays symbolic where it can."""
    if left.dtype is DType.INT64:
        known = index_arithmetic(context.e, function, left, right)
        if known is not None:
            return known
    a, b = context.common((left, right))
    if a.dtype.is_float:
        compute = float_compare if function in COMPARISONS else float_binary
        return compute(context.e, function, a, b)
    if function in COMPARISONS:
        return integer_compare(context.e, function, a, b)
    return bounded(function, a, b, integer_binary(context.e, function, a, b))


def _select(context: Context, expr: Select) -> Operand:
    condition = evaluate(context, expr.condition)
    assert isinstance(condition, Value)
    if condition.constant is not None:
        return evaluate(context, expr.chosen if condition.constant else expr.other)
    lazy = has_load(expr.chosen) or has_load(expr.other)
    if condition.lanes == 1 and lazy:
        return _branch(context, condition, expr)
    if condition.lanes == 1:
        a, b = context.common((evaluate(context, expr.chosen), evaluate(context, expr.other)))
        return context.e.select(condition, a, b)
    chosen = _arm(context, condition, expr.chosen)
    inverse = condition
    if has_load(expr.other):
        inverse = context.e.binary("xor", condition, constant(True, DType.BOOL, condition.lanes))
    other = _arm(context, inverse, expr.other)
    return context.e.select(condition, chosen, other)


def _arm(context: Context, condition: Value, expr: Expr) -> Value:
    """``expr`` in the lanes where ``condition`` holds."""
    if not has_load(expr):
        return context.materialize(evaluate(context, expr), condition.lanes)
    with context.masked(context.both(context.mask, condition), False), context.nested():
        return context.materialize(evaluate(context, expr), condition.lanes)


def _branch(context: Context, condition: Value, expr: Select) -> Value:
    e = context.e
    labels = e.label("then"), e.label("else")
    end = e.label("selected")
    e.branch(condition, *labels)
    incoming = []
    for label, arm in zip(labels, (expr.chosen, expr.other), strict=True):
        e.start(label)
        with context.nested():
            value = context.materialize(evaluate(context, arm), context.lanes)
        incoming.append((value, e.block))
        e.jump(end)
    e.start(end)
    return e.phi(incoming)
