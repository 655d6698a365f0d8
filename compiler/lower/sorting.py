"""Loops of sorting, and of positions of what holds."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators import sorting
from ..loops import expressions
from ..loops.expressions import Binary, BinaryFunction, Buffer, Expr, Select, Variable
from ..loops.ir import Allocate, If, Let, Stmt, Store, block, loops
from .operand import Anchor, Operand, Result, Scope, index, zero
from .reductions import nest, variables

__all__ = ["SORTING"]


def positions(
    operator: sorting.Positions,
    operands: Sequence[Operand],
    results: Sequence[Result],
    scope: Scope,
) -> Stmt:
    """A counter of those found so far."""
    (x,), (result,) = operands, results
    count = Buffer(scope.fresh("count"), (), DType.INT64, expressions.Scope.LOCAL)
    assert result.buffer is not None
    each, clear = Variable(scope.fresh("i")), Variable(scope.fresh("i"))
    found = x[(each,)] & (count[()] < operator.count)
    keep = If(
        found,
        block(Store(result.buffer, (count[()],), each), Store(count, (), count[()] + 1)),
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
    """Merge sort, bottom up: runs of width w are merged into runs of width 2 w."""
    (x,) = operands
    size = x.type.shape[-1]
    rows = variables(scope, x.type.shape[:-1])
    keys = [_local(scope, "key", (max(1, size),), x.type.dtype) for _ in range(2)]
    places = [_local(scope, "place", (max(1, size),), DType.INT64) for _ in range(2)]
    each = Variable(scope.fresh("i"))
    fill = block(Store(keys[0], (each,), x[(*rows, each)]), Store(places[0], (each,), each))
    statements: list[Stmt] = [loops(((each.name, size),), fill)]
    width, source = 1, 0
    while width < size:
        statements.append(
            _merge(
                scope,
                operator,
                size,
                width,
                keys[source],
                places[source],
                keys[1 - source],
                places[1 - source],
            )
        )
        width, source = width * 2, 1 - source
    out = Variable(scope.fresh("i"))
    copy = block(
        results[0].store((*rows, out), keys[source][(out,)]),
        results[1].store((*rows, out), places[source][(out,)]),
    )
    statements.append(loops(((out.name, operator.count),), copy))
    body = block(*statements)
    for buffer in (*keys, *places):
        body = Allocate(buffer, body)
    return nest(rows, x.type.shape[:-1], body)


def _merge(
    scope: Scope,
    operator: sorting.Sort,
    size: int,
    width: int,
    keys: Buffer,
    places: Buffer,
    to_keys: Buffer,
    to_places: Buffer,
) -> Stmt:
    """Every pair of neighbouring runs."""
    run = Variable(scope.fresh("run"))
    left, right = (_local(scope, stem, (), DType.INT64) for stem in ("left", "right"))
    start = Variable(scope.fresh("start"))
    middle, end = Variable(scope.fresh("middle")), Variable(scope.fresh("end"))
    step = Variable(scope.fresh("i"))
    last = index(size - 1)
    a = keys[(_least(left[()], last),)]
    b = keys[(_least(right[()], last),)]
    before = Binary(BinaryFunction.LE, b, a) if operator.descending else a <= b
    chosen = Variable(scope.fresh("chosen"), DType.BOOL)
    in_left = left[()] < middle
    in_right = right[()] < end
    take_left = Select(in_left, Select(in_right, before, _true()), _false())
    source = Select(chosen, left[()], right[()])
    place = Variable(scope.fresh("place"))
    move = block(
        Store(to_keys, (start + step,), keys[(place,)]),
        Store(to_places, (start + step,), places[(place,)]),
        If(chosen, Store(left, (), left[()] + 1), Store(right, (), right[()] + 1)),
    )
    count = _least(index(2 * width), index(size) - start)
    walk = loops(((step.name, count),), Let(chosen, take_left, Let(place, source, move)))
    body = block(Store(left, (), start), Store(right, (), middle), walk)
    body = Let(end, _least(middle + width, index(size)), body)
    body = Let(middle, _least(start + width, index(size)), body)
    body = Let(start, run * (2 * width), body)
    merged = loops(((run.name, -(-size // (2 * width))),), body)
    return Allocate(left, Allocate(right, merged))


def _local(scope: Scope, stem: str, shape: tuple[int, ...], dtype: DType) -> Buffer:
    return Buffer(scope.fresh(stem), shape, dtype, expressions.Scope.LOCAL)


def _least(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryFunction.MIN, a, b)


def _true() -> Expr:
    return expressions.Constant(True, DType.BOOL)


def _false() -> Expr:
    return expressions.Constant(False, DType.BOOL)


SORTING: Mapping[type[Any], Anchor] = {
    sorting.Positions: positions,
    sorting.Sort: sort,
}
