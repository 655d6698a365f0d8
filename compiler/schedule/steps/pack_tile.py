"""Tiles of results of 32 bits that end as bytes, whose rows are packed with saturation."""

from collections.abc import Mapping, Sequence

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.affine import linear
from ...loops.expressions import Buffer, Constant, Scope
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, Let, LoopKind, Stmt, block
from ...loops.traverse import loads, written
from .pack_stores import LANES, PACKED, Bytes, find_bytes, pack
from .site import buffer_names, find_loop, fresh

__all__ = ["PackTile", "is_packable_tile"]


@frozen
class PackTile:
    """Store the bytes of a tile in whole registers of them.

        for l in 16 vector: let w = ...: { y[0, l] = uint8(max(u(w), 0)); y[1, l] = ...; ... }
        ->   alloc near0[16], near1[16], ...:
               for l in 16 vector: let w = ...: { near0[l] = u(w); near1[l] = ...; ... }
               invoke pack_uint8_16(near0[...], ..., near3[...], y[0 : 4, 0 : 16]);  ...

    loop: over 16 lanes, with nothing in it but names and stores, each of an int32 as a byte; limits
    at 0 and 255 before it are left to the instruction, and nothing is read that is stored.
    Every four stores are side by side in one dimension.
    """

    loop: str

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, self.loop)
        stores = _stores(loop)
        if stores is None:
            raise ScheduleError(
                f"pack tile of {self.loop}: required {LANES} lanes that store rows of {PACKED} "
                "bytes side by side, each made of an int32"
            )
        taken = buffer_names(function)
        registers = []
        for number in range(len(stores)):
            name = fresh(f"near{number}", taken)
            taken.add(name)
            registers.append(Buffer(name, (LANES,), DType.INT32, Scope.REGISTER))
        moved = block(
            *(
                each.moved(register, self.loop)
                for each, register in zip(stores, registers, strict=True)
            )
        )
        rows = range(0, len(stores), PACKED)
        packed = (
            pack(stores[n : n + PACKED], registers[n : n + PACKED], _axis(stores[n : n + PACKED]))
            for n in rows
        )
        result = block(replace(loop, body=_with_stores(loop.body, moved)), *packed)
        for register in registers:
            result = Allocate(register, result)
        return site.replaced(result)


def is_packable_tile(loop: For) -> bool:
    """True if the step applies to ``loop``."""
    return _stores(loop) is not None


def _stores(loop: For) -> list[Bytes] | None:
    if loop.kind is not LoopKind.VECTOR or loop.extent != Constant(LANES, DType.INT64):
        return None
    body = loop.body
    while isinstance(body, Let):
        body = body.body
    stores = [find_bytes(each, loop.variable) for each in _statements(body)]
    found = [each for each in stores if each is not None]
    if {load.buffer.name for load in loads(loop)} & written(loop):
        return None
    if len(found) < len(stores) or len(found) % PACKED:
        return None
    rows = [found[n : n + PACKED] for n in range(0, len(found), PACKED)]
    return found if all(_axis(row) >= 0 for row in rows) else None


def _axis(row: Sequence[Bytes]) -> int:
    """The dimension in which stores are side by side; -1 for none."""
    first = [linear(each) for each in row[0].place]
    axes = set()
    for number, store in enumerate(row):
        apart = [linear(own) - start for own, start in zip(store.place, first, strict=True)]
        moved = [axis for axis, each in enumerate(apart) if each.terms or each.constant]
        if store.target != row[0].target or (
            number and [apart[x].value for x in moved] != [number]
        ):
            return -1
        axes.update(moved)
    return axes.pop() if len(axes) == 1 else -1


def _statements(body: Stmt) -> tuple[Stmt, ...]:
    return body.statements if isinstance(body, Block) else (body,)


def _with_stores(body: Stmt, stores: Stmt) -> Stmt:
    """``body`` with other statements in its names."""
    if isinstance(body, Let):
        return replace(body, body=_with_stores(body.body, stores))
    return stores
