"""Loops of reductions."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators.contractions import Contract
from ..graph.operators.reductions import ArgReduce, Cumulative, Reduce, ReduceFunction, neutral
from ..loops import expressions
from ..loops.expressions import Binary, BinaryFunction, Buffer, Cast, Constant, Expr, Variable
from ..loops.ir import Allocate, If, Let, Stmt, Store, block, loops
from .contractions import combine
from .operand import Anchor, Indices, Operand, Result, Scope, index, zero

__all__ = ["ORDERED", "REDUCTIONS", "nest", "variables"]

FUNCTIONS = {
    ReduceFunction.SUM: BinaryFunction.ADD,
    ReduceFunction.PRODUCT: BinaryFunction.MUL,
    ReduceFunction.MIN: BinaryFunction.MIN,
    ReduceFunction.MAX: BinaryFunction.MAX,
}


def variables(scope: Scope, shape: Sequence[int]) -> Indices:
    """A fresh loop variable for each dimension; 0 for those of size 1."""
    return tuple(zero() if size == 1 else Variable(scope.fresh("i")) for size in shape)


def nest(indices: Indices, shape: Sequence[int], body: Stmt) -> Stmt:
    """Loops over ``shape`` by the variables among ``indices``."""
    used = [
        (each.name, size)
        for each, size in zip(indices, shape, strict=True)
        if isinstance(each, Variable)
    ]
    return loops(tuple(used), body)


def reduce(
    operator: Reduce, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """Narrow floats are combined in float32; bool as bits."""
    (x,), (result,) = operands, results
    kept = tuple(axis for axis in range(x.type.rank) if axis not in operator.axes)
    dtype = x.type.dtype
    computing = DType.FLOAT32 if dtype in (DType.FLOAT16, DType.BFLOAT16) else dtype
    function = FUNCTIONS[operator.function]
    if dtype == DType.BOOL:
        bits = {BinaryFunction.MIN: BinaryFunction.AND, BinaryFunction.MAX: BinaryFunction.OR}
        function = bits[function]
    labels = tuple(((axis, 1),) for axis in range(x.type.rank))
    contraction = Contract(x.type.shape, (labels,), tuple(((axis, 1),) for axis in kept), computing)

    def store(indices: tuple[Expr, ...], value: Expr) -> Stmt:
        places = indices
        if operator.keep:
            rest = iter(indices)
            places = tuple(
                zero() if axis in operator.axes else next(rest) for axis in range(x.type.rank)
            )
        return result.store(places, value if computing == dtype else Cast(dtype, value))

    first = neutral(operator.function, computing.numpy)
    return combine(contraction, operands, Result(result.type, store), scope, function, first)


def arg_reduce(
    operator: ArgReduce, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """The best element so far and where it was."""
    (x,), (result,) = operands, results
    best = Buffer(scope.fresh("best"), (), x.type.dtype, expressions.Scope.LOCAL)
    place = Buffer(scope.fresh("place"), (), DType.INT64, expressions.Scope.LOCAL)
    kept = variables(scope, result.type.shape)
    along = Variable(scope.fresh("i"))
    first = (*kept[: operator.axis], zero(), *kept[operator.axis :])
    each = (*kept[: operator.axis], along, *kept[operator.axis :])
    value = Variable(scope.fresh("v"), x.type.dtype)
    sides = (best[()], value) if operator.function is ReduceFunction.MAX else (value, best[()])
    better = Binary(BinaryFunction.LE if operator.last else BinaryFunction.LT, *sides)
    replace = If(better, block(Store(best, (), value), Store(place, (), along)))
    body = block(
        Store(best, (), x[first]),
        Store(place, (), zero()),
        loops(((along.name, x.type.shape[operator.axis]),), Let(value, x[each], replace)),
        result.store(kept, place[()]),
    )
    return nest(kept, result.type.shape, Allocate(best, Allocate(place, body)))


def cumulative(
    operator: Cumulative, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """A running total along the axis, in order."""
    (x,), (result,) = operands, results
    dtype, shape, axis = x.type.dtype, x.type.shape, operator.axis
    total = Buffer(scope.fresh("total"), (), dtype, expressions.Scope.LOCAL)
    indices = variables(scope, (*shape[:axis], *shape[axis + 1 :]))
    step = Variable(scope.fresh("i"))
    along: Expr = index(shape[axis] - 1) - step if operator.reverse else step
    own = (*indices[:axis], along, *indices[axis:])
    value = x[own]
    add = Store(total, (), Binary(FUNCTIONS[operator.function], total[()], value))
    store = result.store(own, total[()])
    body = block(
        Store(total, (), Constant(neutral(operator.function, dtype.numpy), dtype)),
        loops(
            ((step.name, shape[axis]),),
            block(store, add) if operator.exclusive else block(add, store),
        ),
    )
    return nest(indices, (*shape[:axis], *shape[axis + 1 :]), Allocate(total, body))


REDUCTIONS: Mapping[type[Any], Anchor] = {Reduce: reduce}
"""Contractions of one operand."""

ORDERED: Mapping[type[Any], Anchor] = {ArgReduce: arg_reduce, Cumulative: cumulative}
"""Along an axis in order."""
