"""Results of 32 bits that end as bytes: four vectors at a time, which saturate as they are packed.

    y[p, :] = uint8(v[p, :]) for p in 0, 1, 2, 3  ->  invoke pack(v[0], ..., v[3], y[0 : 4, :])

Limits at 0 and 255 are left to the instruction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..define.operand import index
from ..dtypes import DType
from ..loops.expressions import Binary, BinaryFunction, Buffer, Cast, Constant, Expr, Variable
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, Invoke, Let, LoopKind, Region, Stmt, Store, block, loops
from ..loops.rewrite import substitute, substitute_expr
from ..loops.traverse import variables
from .scope import Scope

__all__ = ["LANES", "PACKED", "Bytes", "find_bytes", "pack", "packed_stores"]

PACK = "pack_uint8_16"
"""The intrinsic."""
PACKED, LANES = 4, 16
"""Vectors that are packed together, and the elements of each."""
LIMITS = {BinaryFunction.MAX: 0, BinaryFunction.MIN: 255}


@dataclass(frozen=True, slots=True)
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
    """What ``body`` stores, if that is one byte made of an int32 in each of 16 lanes."""
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
    """The packing of what four stores have left in ``registers``; they differ along ``axis``."""
    first = stores[0]
    shape = tuple(PACKED if each == axis else 1 for each in range(len(first.place)))
    regions = [Region(each, (index(0),), (LANES,)) for each in registers]
    regions.append(Region(first.target, (*first.place, index(0)), (*shape, LANES)))
    return Invoke(PACK, tuple(regions))


def packed_stores(
    body: Stmt, lane: str, unrolled: Sequence[tuple[str, int]], scope: Scope
) -> Stmt | None:
    """``body`` for 16 lanes and all values of ``unrolled``; None where nothing can be packed."""
    found = find_bytes(body, lane)
    if found is None:
        return None
    axes = {name: _axis(found.place, name) for name, size in unrolled if size >= PACKED}
    able = [name for name, axis in axes.items() if axis is not None]
    if not able:
        return None
    along = max(able, key=lambda name: axes[name] or 0)
    axis, count = axes[along], dict(unrolled)[along]
    assert axis is not None
    registers = [
        Buffer(scope.fresh("near"), (LANES,), DType.INT32, Memory.REGISTER) for _ in range(PACKED)
    ]
    statements: list[Stmt] = []
    for start in range(0, count - PACKED + 1, PACKED):
        parts = [_at(found, {along: index(start + number)}) for number in range(PACKED)]
        for part, register in zip(parts, registers, strict=True):
            own = part.moved(register, lane)
            statements.append(loops(((lane, LANES),), own, LoopKind.VECTOR))
        statements.append(pack(parts, registers, axis))
    for rest in range(count - count % PACKED, count):
        own = substitute(body, {along: index(rest)})
        statements.append(loops(((lane, LANES),), own, LoopKind.VECTOR))
    result = block(*statements)
    for register in registers:
        result = Allocate(register, result)
    others = tuple(each for each in unrolled if each[0] != along)
    return loops(others, result, LoopKind.UNROLLED)


def _at(found: Bytes, values: Mapping[str, Expr]) -> Bytes:
    place = tuple(substitute_expr(each, values) for each in found.place)
    value = substitute_expr(found.value, values)
    return Bytes(substitute(found.body, values), found.target, place, value)


def _with_store(body: Stmt, store: Store) -> Stmt:
    if isinstance(body, Let):
        return replace(body, body=_with_store(body.body, store))
    return store


def _resolved(value: Expr, values: Mapping[str, Expr]) -> Expr:
    while isinstance(value, Variable) and value.name in values:
        value = values[value.name]
    return value


def _limited(value: Expr) -> Expr | None:
    """What is limited, where ``value`` is that within a limit of bytes."""
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
    """Whether ``expr`` is a sum of which ``name`` is a term, and is nowhere else."""
    if isinstance(expr, Binary) and expr.function == BinaryFunction.ADD:
        inside = [side for side in (expr.left, expr.right) if name in variables(side)]
        return len(inside) == 1 and _is_term(inside[0], name)
    return expr == Variable(name)
