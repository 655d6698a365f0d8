"""Loops of sorting, and of positions of what holds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators import sorting
from ..loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Unary,
    UnaryFunction,
    Variable,
)
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, If, Let, Stmt, Store, Update, block, loops
from .operand import Anchor, Operand, Result, Scope, index, zero
from .reductions import nest, variables
from .sorter import Sorter, key_type, sort_key

__all__ = ["SORTING"]

CHUNK = 64
SHORT_CHUNK = 16
SHORT_ROW = 2048
"""Elements that are looked at together for candidates, in rows and in shorter ones."""


def positions(
    operator: sorting.Positions,
    operands: Sequence[Operand],
    results: Sequence[Result],
    scope: Scope,
) -> Stmt:
    """A counter of those found so far."""
    (x,), (result,) = operands, results
    count = Buffer(scope.fresh("count"), (), DType.INT64, Memory.LOCAL)
    assert result.buffer is not None
    each, clear = Variable(scope.fresh("i")), Variable(scope.fresh("i"))
    found = x[(each,)] & (count[()] < operator.count)
    keep = If(
        found, block(Store(result.buffer, (count[()],), each), Store(count, (), count[()] + 1))
    )
    body = block(
        loops(((clear.name, operator.count),), Store(result.buffer, (clear,), zero())),
        Store(count, (), zero()),
        loops(((each.name, x.type.shape[0]),), keep),
    )
    return Allocate(count, body)


def sort(
    operator: sorting.Sort, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """All of a row sorted, or the few candidates for its first elements.

    A candidate is what comes before the last of those chosen so far; when there is no room for more
    of them, they are sorted, and the first ``count`` stay.
    """
    (x,) = operands
    size, count = x.type.shape[-1], operator.count
    rows = variables(scope, x.type.shape[:-1])
    chunk = SHORT_CHUNK if size < SHORT_ROW else CHUNK
    room = count + max(count, 2 * chunk)
    few = count > 0 and 2 * room <= size
    sorter = Sorter(room if few else size, key_type(x.type.dtype), scope)

    def key(at: Expr) -> Expr:
        return sort_key(x[(*rows, at)], operator.descending)

    each, out = Variable(scope.fresh("i")), Variable(scope.fresh("i"))
    if few:
        chosen = _choose(sorter, key, size, count, chunk, scope)
        source = 0
    else:
        fill = loops(((each.name, size),), sorter.put(each, key(each), each))
        statement, source = sorter.sort(index(size))
        chosen = block(fill, sorter.cleared(size), statement)
    place = Variable(scope.fresh("place"))
    give = block(
        results[0].store((*rows, out), x[(*rows, place)]), results[1].store((*rows, out), place)
    )
    give = Let(place, sorter.places[source][(out,)], give)
    body = sorter.allocated(block(chosen, loops(((out.name, count),), give)))
    return nest(rows, x.type.shape[:-1], body)


def _choose(
    sorter: Sorter, key: Callable[[Expr], Expr], size: int, count: int, chunk: int, scope: Scope
) -> Stmt:
    """The first ``count`` of a row, to the first of the sorter's buffers, chunk by chunk."""
    dtype = sorter.keys[0].dtype
    found = Buffer(scope.fresh("found"), (), DType.INT64, Memory.LOCAL)
    last = Buffer(scope.fresh("last"), (), dtype, Memory.LOCAL)
    full, hit = (Buffer(scope.fresh(s), (), DType.BOOL, Memory.LOCAL) for s in ("full", "hit"))
    head, chunks = size % chunk, size // chunk
    first, number, lane, each = (Variable(scope.fresh(s)) for s in ("i", "chunk", "l", "i"))
    start = number * chunk + head

    def candidate(value: Expr) -> Expr:
        return (value < last[()]) | Unary(UnaryFunction.NOT, full[()])

    statement, source = sorter.sort(found[()])
    full_now = block(Store(last, (), sorter.keys[0][index(count - 1)]), Store(full, (), _true()))
    cut = block(
        statement,
        Store(found, (), _least(found[()], index(count))),
        sorter.moved_to_first(source, found[()]),
        If(index(count) <= found[()], full_now),
    )
    value = Variable(scope.fresh("key"), dtype)
    take = block(sorter.put(found[()], value, start + each), Store(found, (), found[()] + 1))
    look = block(
        Store(hit, (), Unary(UnaryFunction.NOT, full[()])),
        loops(
            ((lane.name, chunk),), Update(hit, (), BinaryFunction.OR, key(start + lane) < last[()])
        ),
        If(
            hit[()],
            loops(((each.name, chunk),), Let(value, key(start + each), If(candidate(value), take))),
        ),
    )
    walk = block(
        If((index(sorter.room) < found[()] + chunk) | (index(chunks) <= number), cut),
        If(number < chunks, look),
    )
    body = block(
        sorter.cleared(head),
        loops(((first.name, head),), sorter.put(first, key(first), first)),
        Store(found, (), index(head)),
        Store(full, (), Constant(False, DType.BOOL)),
        Store(last, (), Constant(0, dtype)),
        loops(((number.name, chunks + 1),), walk),
    )
    for buffer in (found, last, full, hit):
        body = Allocate(buffer, body)
    return body


def _least(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryFunction.MIN, a, b)


def _true() -> Expr:
    return Constant(True, DType.BOOL)


SORTING: Mapping[type[Any], Anchor] = {sorting.Positions: positions, sorting.Sort: sort}
