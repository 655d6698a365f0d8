"""Loops of reductions over sliding windows."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators.windows import WindowArgMax, WindowFunction, WindowReduce, lowest
from ..loops.expressions import (
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Load,
    Unary,
    UnaryFunction,
    Variable,
)
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, If, Stmt, Store, Update, block, loops
from .operand import Anchor, Indices, Operand, Result, Scope, index, over, zero

__all__ = ["WINDOWS"]

Nest = tuple[tuple[str, int], ...]


def window_reduce(
    operator: WindowReduce, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """One window after the other; what is outside of the tensor changes no result."""
    (x,), (result,) = operands, results
    shape, dtype = result.type.shape, x.type.dtype
    if 0 in shape:
        return block()
    maximum = operator.function == WindowFunction.MAX
    first = Constant(lowest(dtype.numpy) if maximum else 0, dtype)
    function = BinaryFunction.MAX if maximum else BinaryFunction.ADD
    if dtype == DType.BOOL:
        function = BinaryFunction.OR
    outer, place = over(shape, "o", scope)
    taps, where, inside = _window(operator, x, place, scope)
    value = x[where] if inside is None else x.where(inside, where, first)
    total = Buffer(scope.fresh("acc"), (), dtype, Memory.REGISTER)
    body = block(
        Store(total, (), first),
        loops(taps, Update(total, (), function, value)),
        result.store(place, Load(total, ())),
    )
    return loops(outer, Allocate(total, body))


def window_argmax(
    operator: WindowArgMax, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """The best value so far and its index; of floats, the first NaN is the best."""
    (x,), (result,) = operands, results
    shape, dtype = result.type.shape, x.type.dtype
    if 0 in shape:
        return block()
    outer, place = over(shape, "o", scope)
    taps, where, inside = _window(operator, x, place, scope)
    best = Buffer(scope.fresh("best"), (), dtype, Memory.REGISTER)
    found = Buffer(scope.fresh("found"), (), DType.INT64, Memory.REGISTER)
    flat: Expr = zero()
    for axis in operator.axes:
        flat = flat * x.type.shape[axis] + where[axis]
    value = x[where] if inside is None else x.guarded(where)
    old = Load(best, ())
    better = (Load(found, ()) < 0) | (old < value)
    if dtype.is_float:
        better = better | (
            Unary(UnaryFunction.ISNAN, value)
            & Unary(UnaryFunction.NOT, Unary(UnaryFunction.ISNAN, old))
        )
    take: Stmt = If(better, block(Store(best, (), value), Store(found, (), flat)))
    body = block(
        Store(best, (), Constant(lowest(dtype.numpy), dtype)),
        Store(found, (), index(-1)),
        loops(taps, take if inside is None else If(inside, take)),
        result.store(place, Load(found, ())),
    )
    return loops(outer, Allocate(best, Allocate(found, body)))


def _window(
    operator: WindowReduce | WindowArgMax, x: Operand, place: Indices, scope: Scope
) -> tuple[Nest, Indices, Expr | None]:
    """The loops over the window at ``place``, where its elements are, and which of them are in the
    tensor; None: all of them, in every window.
    """
    taps, where = [], list(place)
    inside: Expr | None = None
    for axis, kernel, stride, dilation, pads in operator.each():
        size, reach = x.type.shape[axis], (kernel - 1) * dilation
        windows = (size + sum(pads) - reach - 1) // stride + 1
        name = scope.fresh("k")
        taps.append((name, kernel))
        at = place[axis] * stride + Variable(name) * dilation
        where[axis] = at - pads[0] if pads[0] else at
        tests = [where[axis] >= 0] if pads[0] > 0 else []
        if (windows - 1) * stride + reach - pads[0] >= size:
            tests.append(where[axis] < size)
        for test in tests:
            inside = test if inside is None else inside & test
    return tuple(taps), tuple(where), inside


WINDOWS: Mapping[type[Any], Anchor] = {WindowArgMax: window_argmax, WindowReduce: window_reduce}
