"""Elements and loops of operators that read and write where integer tensors say."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators.indexing import (
    Gather,
    GatherElements,
    GatherNd,
    ScatterElements,
    ScatterFunction,
    ScatterNd,
)
from ..loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Load,
    Select,
    Variable,
)
from ..loops.ir import Let, Stmt, Store, Update, block, loops
from .operand import Anchor, Element, Indices, Operand, Result, Scope, converted, index, over, zero

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
    operator: ScatterElements, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
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
    change = _change(operator.function, result.buffer, target, updates[at])
    value = inside(places[at], x.type.shape[operator.axis])
    return block(copy, loops(inner, Let(place, value, change)))


def gather_nd(operator: GatherNd, operands: Sequence[Operand], indices: Indices) -> Expr:
    """Several indices from the other operand."""
    x, places = operands
    rank, batch = places.type.rank - 1, operator.batch
    width = places.type.shape[-1]
    own = [
        inside(places[(*indices[:rank], index(n))], x.type.shape[batch + n]) for n in range(width)
    ]
    return x[(*indices[:batch], *own, *indices[rank:])]


def scatter_nd(
    operator: ScatterNd, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """A copy, then the updates in order."""
    x, places, updates = operands
    inner, at = over(updates.type.shape, "o", scope)
    rank, width = places.type.rank - 1, places.type.shape[-1]
    own = [inside(places[(*at[:rank], index(n))], x.type.shape[n]) for n in range(width)]
    (result,) = results
    assert result.buffer is not None, "nothing is fused with an opaque operator"
    outer, where = over(x.type.shape, "o", scope)
    copy = loops(outer, Store(result.buffer, where, x[where]))
    change = _change(operator.function, result.buffer, (*own, *at[rank:]), updates[at])
    return block(copy, loops(inner, change))


def _change(function: ScatterFunction, buffer: Buffer, target: Indices, value: Expr) -> Stmt:
    functions = {
        ScatterFunction.ADD: BinaryFunction.ADD,
        ScatterFunction.MULTIPLY: BinaryFunction.MUL,
        ScatterFunction.MIN: BinaryFunction.MIN,
        ScatterFunction.MAX: BinaryFunction.MAX,
    }
    if function == ScatterFunction.REPLACE:
        return Store(buffer, target, value)
    if buffer.dtype == DType.BOOL:
        some = function in (ScatterFunction.MAX, ScatterFunction.ADD)
        combined = BinaryFunction.OR if some else BinaryFunction.AND
        return Store(buffer, target, Binary(combined, Load(buffer, target), value))
    return Update(buffer, target, functions[function], value)


INDEXING: Mapping[type[Any], Element] = {
    Gather: gather,
    GatherElements: gather_elements,
    GatherNd: gather_nd,
}
INDEXING_ANCHORS: Mapping[type[Any], Anchor] = {
    ScatterElements: scatter_elements,
    ScatterNd: scatter_nd,
}
