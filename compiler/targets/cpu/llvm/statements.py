"""Code of statements."""

import math
from typing import assert_never

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import Binary, Buffer, Expr
from ....loops.expressions import BinaryFunction as B
from ....loops.ir import Allocate, Block, For, If, Invoke, Let, LoopKind, Stmt, Store, Update, While
from ...llvm.values import Linear, Operand, Value, constant
from .allocation import allocated
from .context import Context, Place
from .expressions import evaluate, evaluate_scalar
from .intrinsics import prepare
from .memory import load, locate, store
from .parallel import parallel
from .reductions import accumulate, add_product, reduce_lanes, update_scattered
from .vectorize import chunks, vectorizable

__all__ = ["emit"]

_MOST_UNROLLED = 8192
"""Iterations of all unrolled loops around a statement: beyond it a loop runs serially."""


def emit(context: Context, stmt: Stmt) -> None:
    """Append the code of ``stmt``.  Raises GraphError for a statement that CPUs cannot run."""
    context.memo = [{}]
    match stmt:
        case Block():
            for inner in stmt.statements:
                emit(context, inner)
        case For():
            _for(context, stmt)
        case While():
            _while(context, stmt)
        case If():
            _if(context, stmt)
        case Allocate():
            _allocate(context, stmt)
        case Let():
            with context.bound(stmt.variable.name, evaluate(context, stmt.value)):
                emit(context, stmt.body)
        case Store():
            place = _place(context, stmt.buffer)
            value = evaluate(context, stmt.value)
            indices = [evaluate(context, index) for index in stmt.indices]
            store(context, place, locate(context, place, indices), value)
        case Update():
            _update(context, stmt)
        case Invoke():
            _invoke(context, stmt)
        case _:
            assert_never(stmt)


def _place(context: Context, buffer: Buffer) -> Place:
    place = context.places.get(buffer.name)
    if place is None:
        raise GraphError(f"{context.function}: {buffer.name} is written, but is not in scope")
    return place


def _for(context: Context, stmt: For) -> None:
    extent = evaluate_scalar(context, stmt.extent)
    known = None if extent.constant is None else int(extent.constant)
    match stmt.kind:
        case LoopKind.VECTOR if known is not None and context.lanes == 1 and vectorizable(stmt):
            _vector(context, stmt, known)
        case LoopKind.UNROLLED if known is not None and known * context.unrolled <= _MOST_UNROLLED:
            context.unrolled *= max(known, 1)
            for iteration in range(known):
                with context.bound(stmt.variable, constant(iteration, DType.INT64)):
                    emit(context, stmt.body)
            context.unrolled //= max(known, 1)
        case LoopKind.BLOCK | LoopKind.THREAD | LoopKind.HARDWARE:
            raise GraphError(
                f"{context.function}: loop {stmt.variable} is of kind {stmt.kind}; a CPU runs "
                "serial, parallel, vector and unrolled loops"
            )
        case LoopKind.PARALLEL if _worth_threads(context, known):
            parallel(context, stmt, extent, serial)
        case _:
            serial(context, stmt.variable, constant(0, DType.INT64), extent, stmt.body)


def _worth_threads(context: Context, extent: int | None) -> bool:
    return context.threads > 1 and not context.parallel and context.lanes == 1 and extent != 1


def serial(context: Context, variable: str, start: Value, end: Value, body: Stmt) -> None:
    """A loop that tests at its end; behind a test that there is an iteration, if need be."""
    known = start.constant is not None and end.constant is not None
    if known and int(end.constant or 0) <= int(start.constant or 0):
        return
    e = context.e
    before, head, done = e.block, e.label("loop"), e.label("done")
    if known:
        e.jump(head)
    else:
        e.branch(e.compare("slt", start, end), head, done)
    last = None if end.high is None else end.high - 1
    counter = Value(e.name("i"), DType.INT64, 1, None, start.low, last)
    _repeat(context, variable, counter, counter, 1, (start, end), (before, head, done), body)


def _vector(context: Context, stmt: For, extent: int) -> None:
    """The loop in pieces: as many lanes each as registers hold, then narrower ones."""
    for start, lanes, count in chunks(stmt, extent, context.e.module.target.vector_bytes):
        if lanes == 1:
            for number in range(start, start + count):
                with context.bound(stmt.variable, constant(number, DType.INT64)):
                    emit(context, stmt.body)
            continue
        context.lanes = lanes
        context.statistics.vectors += 1
        if count <= 4:
            for number in range(count):
                base = constant(start + number * lanes, DType.INT64)
                with context.bound(stmt.variable, Linear(base, 1, lanes)):
                    emit(context, stmt.body)
        else:
            _vector_loop(context, stmt, start, lanes, count)
        context.lanes = 1


def _vector_loop(context: Context, stmt: For, start: int, lanes: int, count: int) -> None:
    """A serial loop over chunks of ``lanes``."""
    e = context.e
    before, head, done = e.block, e.label("chunk"), e.label("done")
    e.jump(head)
    limits = constant(start, DType.INT64), constant(start + count * lanes, DType.INT64)
    last = start + (count - 1) * lanes
    multiple = math.gcd(start, lanes)
    base = Value(e.name("i"), DType.INT64, 1, None, start, last, multiple)
    index = Linear(base, 1, lanes)
    _repeat(context, stmt.variable, index, base, lanes, limits, (before, head, done), stmt.body)


def _repeat(
    context: Context,
    variable: str,
    index: Operand,
    counter: Value,
    step: int,
    limits: tuple[Value, Value],
    labels: tuple[str, str, str],
    body: Stmt,
) -> None:
    """The blocks of a loop; labels: of the block before it, its first, the one after it."""
    e = context.e
    before, head, done = labels
    e.start(head)
    at = len(e.lines)
    e.lines.append("")
    with context.loop(), context.bound(variable, index):
        emit(context, body)
    following = e.binary("add nuw nsw", counter, constant(step, DType.INT64))
    phi = f"phi i64 [ {limits[0].ref}, %{before} ], [ {following.ref}, %{e.block} ]"
    e.lines[at] = f"  {counter.ref} = {phi}"
    e.branch(e.compare("slt", following, limits[1]), head, done)
    e.start(done)


def _while(context: Context, stmt: While) -> None:
    e = context.e
    head, body, done = e.label("while"), e.label("do"), e.label("done")
    e.jump(head)
    e.start(head)
    condition = evaluate_scalar(context, stmt.condition)
    e.branch(condition, body, done)
    e.start(body)
    with context.loop():
        emit(context, stmt.body)
    e.jump(head)
    e.start(done)


def _if(context: Context, stmt: If) -> None:
    condition = context.materialize(evaluate(context, stmt.condition))
    if condition.constant is not None:
        taken = stmt.then if condition.constant else stmt.otherwise
        if taken is not None:
            emit(context, taken)
        return
    if condition.lanes == 1:
        _if_scalar(context, condition, stmt.then, stmt.otherwise)
        return
    before = context.mask
    _under_mask(context, context.both(before, condition), stmt.then)
    if stmt.otherwise is not None:
        inverse = context.e.binary("xor", condition, constant(True, DType.BOOL, condition.lanes))
        _under_mask(context, context.both(before, inverse), stmt.otherwise)


def _if_scalar(context: Context, condition: Value, then: Stmt, otherwise: Stmt | None) -> None:
    e = context.e
    first, second, end = e.label("then"), e.label("else"), e.label("end")
    e.branch(condition, first, second if otherwise is not None else end)
    e.start(first)
    emit(context, then)
    e.jump(end)
    if otherwise is not None:
        e.start(second)
        emit(context, otherwise)
        e.jump(end)
    e.start(end)


def _under_mask(context: Context, mask: Value, body: Stmt) -> None:
    """``body`` for the active lanes, unless there are none."""
    e = context.e
    some, end = e.label("some"), e.label("end")
    e.branch(context.any_lane(mask), some, end)
    e.start(some)
    with context.masked(mask, True):
        emit(context, body)
    e.jump(end)
    e.start(end)


def _allocate(context: Context, stmt: Allocate) -> None:
    used = context.workspace_used
    name = stmt.buffer.name
    before = context.places.get(name)
    context.places[name] = allocated(context, stmt.buffer)
    emit(context, stmt.body)
    context.workspace_used = used
    if before is None:
        del context.places[name]
    else:
        context.places[name] = before


def _invoke(context: Context, stmt: Invoke) -> None:
    meaning = prepare(context, stmt)
    if meaning is None:
        return
    body, parameters = meaning
    before = context.places
    context.places = {**before, **parameters}
    emit(context, body)
    context.places = before


def _update(context: Context, stmt: Update) -> None:
    place = _place(context, stmt.buffer)
    indices = [evaluate(context, index) for index in stmt.indices]
    offset = locate(context, place, indices)
    if isinstance(offset, Value) and context.lanes > 1:
        value = context.materialize(evaluate(context, stmt.value), context.lanes)
        if offset.lanes > 1:
            update_scattered(context, place, offset, stmt.function, value)
            return
        total = reduce_lanes(context, stmt.function, value)
        old = load(context, place, offset)
        store(context, place, offset, accumulate(context, stmt.function, old, total))
        return
    product = _product(stmt)
    if product is not None:
        factors = [evaluate(context, factor) for factor in product]
        old = load(context, place, offset)
        store(context, place, offset, add_product(context, *context.common((old, *factors))))
        return
    term = evaluate(context, stmt.value)
    old = load(context, place, offset)
    new = accumulate(context, stmt.function, *context.common((old, term)))
    store(context, place, offset, new)


def _product(stmt: Update) -> tuple[Expr, Expr] | None:
    """The factors of a product that is added."""
    value = stmt.value
    if stmt.function is not B.ADD or value.dtype not in (DType.FLOAT32, DType.FLOAT64):
        return None
    if isinstance(value, Binary) and value.function is B.MUL:
        return value.left, value.right
    return None
