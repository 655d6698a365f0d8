"""Elements and loops of operators that read and write where integer tensors say."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators.indexing import Gather, GatherElements, ScatterElements, ScatterFunction
from ..loops.expressions import Binary, BinaryFunction, Constant, Expr, Load, Select, Variable
from ..loops.ir import Let, Stmt, Store, Update, block, loops
from .contractions import converted
from .operand import Anchor, Element, Indices, Operand, Result, Scope, index, over, zero

__all__ = ["INDEXING", "INDEXING_ANCHORS", "inside"]


def inside(value: Expr, size: int) -> Expr:
    """An index from the front, never outside: negative ones count from the end."""
    if isinstance(value, Constant):
        number = int(value.value) + (size if value.value < 0 else 0)
        return index(min(max(number, 0), max(size - 1, 0)))
    wide = converted(value, DType.INT64)
    moved = Select(wide < 0, wide + size, wide)
    low = Binary(BinaryFunction.MAX, moved, zero())
    return Binary(BinaryFunction.MIN, low, index(max(size - 1, 0)))


def gather(operator: Gather, operands: Sequence[Operand], indices: Indices) -> Expr:
    """An element of ``x`` at an index that is read first."""
    x, places = operands
    axis, rank = operator.axis, places.type.rank
    where = inside(places[indices[axis : axis + rank]], x.type.shape[axis])
    return x[(*indices[:axis], where, *indices[axis + rank :])]


def gather_elements(
    operator: GatherElements, operands: Sequence[Operand], indices: Indices
) -> Expr:
    """As ``gather``, with an index for each element."""
    x, places = operands
    axis = operator.axis
    where = inside(places[indices], x.type.shape[axis])
    return x[(*indices[:axis], where, *indices[axis + 1 :])]


def scatter_elements(
    operator: ScatterElements,
    operands: Sequence[Operand],
    results: Sequence[Result],
    scope: Scope,
) -> Stmt:
    """A copy, then the updates in order."""
    x, places, updates = operands
    (result,) = results
    assert result.buffer is not None, "nothing is fused with an opaque operator"
    outer, where = over(x.type.shape, "o", scope)
    copy = loops(outer, Store(result.buffer, where, x[where]))
    inner, at = over(places.type.shape, "o", scope)
    place = Variable(scope.fresh("v"))
    target = (*at[: operator.axis], place, *at[operator.axis + 1 :])
    functions = {
        ScatterFunction.ADD: BinaryFunction.ADD,
        ScatterFunction.MULTIPLY: BinaryFunction.MUL,
        ScatterFunction.MIN: BinaryFunction.MIN,
        ScatterFunction.MAX: BinaryFunction.MAX,
    }
    if operator.function == ScatterFunction.REPLACE:
        change: Stmt = Store(result.buffer, target, updates[at])
    elif x.type.dtype == DType.BOOL:
        combined = (
            BinaryFunction.OR if operator.function == ScatterFunction.MAX else BinaryFunction.AND
        )
        change = Store(
            result.buffer, target, Binary(combined, Load(result.buffer, target), updates[at])
        )
    else:
        change = Update(result.buffer, target, functions[operator.function], updates[at])
    value = inside(places[at], x.type.shape[operator.axis])
    return block(copy, loops(inner, Let(place, value, change)))


INDEXING: Mapping[type[Any], Element] = {Gather: gather, GatherElements: gather_elements}
INDEXING_ANCHORS: Mapping[type[Any], Anchor] = {ScatterElements: scatter_elements}
