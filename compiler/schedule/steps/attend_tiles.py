"""Keys and values in shared memory, for the step ``attend``: tiles that all threads copy."""

from dovetail.isa.frozen import frozen

from ...errors import ScheduleError
from ...loops.affine import linear
from ...loops.expressions import Binary, BinaryFunction, Buffer, Load, Scope, Variable, as_index
from ...loops.ir import Invoke, LoopKind, Region, Stmt, loops
from ...loops.rewrite import substitute_expr
from ...loops.traverse import variables
from .attend_parts import COLUMN

__all__ = ["Tile", "require_rows", "tile_of"]

COPIED_BYTES = 16


@frozen
class Tile:
    """A step's part of an operand, ``load``; ``other``: the number beside that of the column.

    turned: its rows are not columns of scores, but other numbers.  Rows have 16 bytes more than
    they need, so that eight of them, which are read at once, are in different banks.
    """

    buffer: Buffer
    load: Load
    other: Variable
    columns: int
    turned: bool

    def copies(self, step: Variable, size: int, threads: int) -> Stmt:
        """All threads copy it, 16 bytes at a time; size: how many columns exist.

        Raises ScheduleError where threads would not have equally many copies.
        """
        name, count = self.buffer.name, COPIED_BYTES // self.buffer.dtype.bytes
        rows, across = self.buffer.shape[0], self.buffer.shape[1] // count - 1
        if rows * across % threads:
            raise ScheduleError(f"attend: {rows * across} copies for {threads} threads")
        number = Variable(f"{name}.round") * threads + Variable(f"{name}.thread")
        row, chunk = number // across, number % across
        unit, own = (count, chunk) if self.turned else (1, row)
        place = step * (self.columns // unit) + own
        if size % self.columns:
            place = Binary(BinaryFunction.MIN, place, as_index(size // unit - 1))
        other = row if self.turned else chunk * count
        where = {COLUMN.name: place * unit, self.other.name: other}
        start = tuple(substitute_expr(each, where) for each in self.load.indices)
        source = Region(self.load.buffer, start, (*(1 for _ in start[1:]), count))
        target = Region(self.buffer, (row, chunk * count), (1, count))
        call = Invoke(f"copy_{self.buffer.dtype}", (source, target))
        rounds = loops(((f"{name}.round", rows * across // threads),), call, LoopKind.UNROLLED)
        return loops(((f"{name}.thread", threads),), rounds, LoopKind.THREAD)


def tile_of(name: str, load: Load, other: Variable, size: int, columns: int, existing: int) -> Tile:
    """The tile of ``columns`` of an operand, of which so many are ``existing``; size: of ``other``.

    Raises ScheduleError where a thread cannot copy 16 bytes of it.
    """
    count = COPIED_BYTES // load.dtype.bytes
    turned = COLUMN.name in variables(load.indices[-1])
    require_rows(load, COLUMN if turned else other, count)
    if turned and existing % columns and existing % count:
        raise ScheduleError(f"attend: {existing} columns, which are neighbours in memory")
    sides = (size, columns) if turned else (columns, size)
    shape = sides[0], sides[1] + count
    buffer = Buffer(name, shape, load.dtype, Scope.SHARED)
    return Tile(buffer, load, other, columns, turned)


def require_rows(load: Load, along: Variable, count: int) -> None:
    """Raise ScheduleError unless rows in memory go ``along`` a number, from multiples of ``count``
    elements on.
    """
    last = linear(load.indices[-1])
    rest = [step for atom, step in last.terms.items() if atom != along]
    before = set().union(*(variables(each) for each in load.indices[:-1]))
    if last.coefficient(along.name) != 1 or along.name in before:
        raise ScheduleError(f"attend: rows of {load.buffer.name} do not go along the {along.name}")
    if any(each % count for each in (last.constant, load.buffer.shape[-1], *rest)):
        raise ScheduleError(f"attend: rows of {load.buffer.name}: required multiples of {count}")
