"""Results of 32 bits that end as bytes: four vectors at a time, packed with saturation."""

from collections.abc import Mapping, Sequence

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.expressions import Binary, BinaryFunction, Buffer, Cast, Constant, Expr, Variable
from ...loops.expressions import Scope as Memory
from ...loops.expressions import as_index as index
from ...loops.intrinsic import Intrinsic
from ...loops.ir import (
    Allocate,
    For,
    Function,
    Invoke,
    Let,
    LoopKind,
    Region,
    Stmt,
    Store,
    block,
    loops,
)
from ...loops.legality import carried, describe
from ...loops.rewrite import substitute, substitute_expr
from ...loops.traverse import variables
from .site import buffer_names, find_loop, fresh, loop_names, rename_loops
from .tile import band

__all__ = ["LANES", "PACKED", "Bytes", "PackStores", "find_bytes", "is_packable", "pack"]

PACK = "pack_uint8_16"
"""The intrinsic."""
PACKED, LANES = 4, 16
"""Vectors that are packed together, and the elements of each."""
LIMITS = {BinaryFunction.MAX: 0, BinaryFunction.MIN: 255}


@frozen
class Bytes:
    """``body``, values by names around a store of bytes in ``target`` at ``place`` and a lane.

    value: int32, what is stored before it is a byte, and before it is limited to 0..255.
    """

    body: Stmt
    target: Buffer
    place: tuple[Expr, ...]
    value: Expr

    def moved(self, buffer: Buffer, lane: str) -> Stmt:
        """The same with the value stored in ``buffer``."""
        return _with_store(self.body, Store(buffer, (Variable(lane),), self.value))


def find_bytes(body: Stmt, lane: str) -> Bytes | None:
    """The bytes that ``body`` stores, if it makes one of an int32 in each of 16 lanes."""
    values: dict[str, Expr] = {}
    inner = body
    while isinstance(inner, Let):
        values[inner.variable.name] = inner.value
        inner = inner.body
    if not isinstance(inner, Store) or inner.buffer.dtype != DType.UINT8:
        return None
    if not inner.indices or inner.indices[-1] != Variable(lane):
        return None
    last = _resolved(inner.value, values)
    if not isinstance(last, Cast) or last.operand.dtype != DType.INT32:
        return None
    if any(lane in variables(each) for each in inner.indices[:-1]):
        return None
    value = last.operand
    while (within := _limited(_resolved(value, values))) is not None:
        value = within
    return Bytes(body, inner.buffer, inner.indices[:-1], value)


def pack(stores: Sequence[Bytes], registers: Sequence[Buffer], axis: int) -> Stmt:
    """The packing of what stores, the first of them first, have left in ``registers``; they differ
    along ``axis``.
    """
    first = stores[0]
    shape = tuple(PACKED if each == axis else 1 for each in range(len(first.place)))
    regions = [Region(each, (index(0),), (LANES,)) for each in registers]
    regions.append(Region(first.target, (*first.place, index(0)), (*shape, LANES)))
    return Invoke(PACK, tuple(regions))


@frozen
class PackStores:
    """Store bytes in whole registers of them.

        for i in 4 unrolled: for l in 16 vector: y[i, l] = uint8(max(v(i, l), 0))
        ->   alloc near0[16] ... near3[16]:
               for l in 16 vector: near0[l] = v(0, l);  the same for 1, 2, 3
               invoke pack_uint8_16(near0[...], ..., near3[...], y[0 : 4, 0 : 16])

    loop: the outermost of unrolled loops around one over 16 lanes, whose body ends in the only
    store: of an int32 as a byte, limits at 0 and 255 before it, which are left to the instruction.
    No two iterations meet in memory.
    One of the unrolled loops moves along one dimension by single steps; what is left over of fours
    of it is stored as it was.
    """

    loop: str

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, self.loop)
        rows = _found(loop)
        if rows is None:
            raise ScheduleError(
                f"pack stores of {self.loop}: required unrolled loops around {LANES} lanes that "
                f"store an int32 as a byte in rows side by side, at least {PACKED} of them"
            )
        for each in band(loop):
            conflict = carried(each, site.bounds, intrinsics=intrinsics)
            if conflict is not None:
                raise ScheduleError(
                    f"pack stores of {self.loop}: iterations share an element of "
                    f"{describe(conflict)}"
                )
        taken = set(loop_names(function.body)) - set(loop_names(loop))
        packed = _packed(rows, buffer_names(function))
        return site.replaced(rename_loops(packed, taken))


def is_packable(loop: Stmt) -> bool:
    """True if the step applies to ``loop``."""
    return _found(loop) is not None


@frozen
class _Rows:
    """stores: in the lanes of loop ``lane``.  along: the loop over ``count`` rows side by side, in
    dimension ``axis``; others: unrolled too.
    """

    stores: Bytes
    lane: str
    along: str
    count: int
    axis: int
    others: tuple[tuple[str, int], ...]


def _found(stmt: Stmt) -> _Rows | None:
    unrolled: dict[str, int] = {}
    while isinstance(stmt, For) and stmt.kind is LoopKind.UNROLLED:
        unrolled[stmt.variable] = _count(stmt)
        stmt = stmt.body
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.VECTOR or _count(stmt) != LANES:
        return None
    found = find_bytes(stmt.body, stmt.variable)
    if found is None:
        return None
    axes = {name: _axis(found.place, name) for name, size in unrolled.items() if size >= PACKED}
    able = {name: axis for name, axis in axes.items() if axis is not None}
    if not able:
        return None
    along = max(able, key=lambda name: able[name])
    others = tuple(each for each in unrolled.items() if each[0] != along)
    return _Rows(found, stmt.variable, along, unrolled[along], able[along], others)


def _packed(rows: _Rows, taken: set[str]) -> Stmt:
    lane, along, count = rows.lane, rows.along, rows.count
    registers = []
    for number in range(PACKED):
        name = fresh(f"near{number}", taken)
        registers.append(Buffer(name, (LANES,), DType.INT32, Memory.REGISTER))
    statements: list[Stmt] = []
    moved = [rows.stores.moved(register, lane) for register in registers]
    for start in range(0, count - PACKED + 1, PACKED):
        for number, body in enumerate(moved):
            own = substitute(body, {along: index(start + number)})
            statements.append(loops(((lane, LANES),), own, LoopKind.VECTOR))
        first = {along: index(start)}
        place = tuple(substitute_expr(each, first) for each in rows.stores.place)
        statements.append(pack((replace(rows.stores, place=place),), registers, rows.axis))
    for rest in range(count - count % PACKED, count):
        own = substitute(rows.stores.body, {along: index(rest)})
        statements.append(loops(((lane, LANES),), own, LoopKind.VECTOR))
    result = block(*statements)
    for register in registers:
        result = Allocate(register, result)
    return loops(rows.others, result, LoopKind.UNROLLED)


def _count(loop: For) -> int:
    assert isinstance(loop.extent, Constant)
    return int(loop.extent.value)


def _with_store(body: Stmt, store: Store) -> Stmt:
    if isinstance(body, Let):
        return replace(body, body=_with_store(body.body, store))
    return store


def _resolved(value: Expr, values: Mapping[str, Expr]) -> Expr:
    while isinstance(value, Variable) and value.name in values:
        value = values[value.name]
    return value


def _limited(value: Expr) -> Expr | None:
    """The value that is limited, if ``value`` is one within limits of bytes."""
    if isinstance(value, Binary) and value.function in LIMITS:
        limit = value.right
        if isinstance(limit, Constant) and limit.value == LIMITS[value.function]:
            return value.left
    return None


def _axis(place: Sequence[Expr], name: str) -> int | None:
    """The only dimension that ``name`` moves in, if it does so by single steps."""
    found = [axis for axis, each in enumerate(place) if name in variables(each)]
    if len(found) != 1 or not _is_term(place[found[0]], name):
        return None
    return found[0]


def _is_term(expr: Expr, name: str) -> bool:
    """True if ``expr`` is a sum with the term ``name``, which is nowhere else."""
    if isinstance(expr, Binary) and expr.function == BinaryFunction.ADD:
        inside = [side for side in (expr.left, expr.right) if name in variables(side)]
        return len(inside) == 1 and _is_term(inside[0], name)
    return expr == Variable(name)
