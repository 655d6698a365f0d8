"""Reducing in the lanes of vectors."""

from collections.abc import Iterator, Mapping
from functools import partial

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.expressions import BinaryFunction, Buffer, Constant, Expr, Load, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import (
    Allocate,
    Block,
    For,
    Function,
    Invoke,
    Let,
    LoopKind,
    Stmt,
    Store,
    Update,
    block,
    loops,
)
from ...loops.legality import carried, describe
from ...loops.rewrite import map_expr, map_statement
from ...loops.traverse import bodies, loads, own_expressions, walk
from .lanes import constant_extent, in_lanes, piece_start, pieces
from .redirect import redirect
from .reduction import combined
from .rfactor import identity
from .site import find_allocation, find_loop, loop_names, rename_loops

__all__ = ["PartialLanes"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
class PartialLanes:
    """Reduce in the lanes of a vector, each lane separately, and combine the lanes at the end.

        alloc a[]: a[] = 0; for k in 40: a[] add= x[k]; y[] = a[]
        ->  alloc a[16]: for l in 16 vector: a[l] = 0
            for k.o in 2: for l in 16 vector: a[l] add= x[16 * k.o + l]
            for l in 8 vector: a[l] add= x[32 + l]
            y[] = (a[0] + a[1]) + (a[2] + a[3]) + ...

    ``buffer`` is the accumulator: one element, stored once before the loop, where it gets what
    changes no result, updated in the loop by one function, and read only after it.  Nothing else
    may be carried from one iteration to the next.  The order of float additions changes.
    """

    buffer: str
    loop: str
    lanes: int

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"partial lanes of {self.buffer} in {self.loop}"
        around, allocation = find_allocation(function, self.buffer)
        site, loop = find_loop(replace(function, body=allocation.body), self.loop)
        extent = constant_extent(loop, what)
        if self.lanes < 1 or allocation.buffer.shape:
            raise ScheduleError(f"{what}: required a buffer of one element, and at least 1 lane")
        reducing = self._function(allocation.body, loop, what)
        conflict = carried(loop, around.body.bounds, intrinsics=intrinsics)
        if conflict is not None:
            raise ScheduleError(f"{what}: iterations share an element of {describe(conflict)}")
        lanes, lane = min(self.lanes, extent), f"{self.loop}.l"
        wide = replace(allocation.buffer, shape=(lanes,))
        total = combined(reducing, [wide[_index(number)] for number in range(lanes)])
        hollow = replace(loop, body=Block(()))

        def read(node: Expr) -> Expr:
            return total if isinstance(node, Load) and node.buffer.name == self.buffer else node

        def write(stmt: Stmt) -> Stmt:
            match stmt:
                case For(variable=name) if name == self.loop:
                    return self._reduced(loop, wide, extent, what)
                case Store(buffer=buffer) if buffer.name == self.buffer:
                    place = Variable(lane) if lanes > 1 else _index(0)
                    store = Store(wide, (place,), stmt.value)
                    return loops(((lane, lanes),), store, LoopKind.VECTOR) if lanes > 1 else store
                case _:
                    return stmt

        body = map_statement(site.replaced(hollow).body, lambda each: map_expr(each, read), write)
        others = set(loop_names(function.body)) - set(loop_names(allocation))
        return around.replaced(rename_loops(Allocate(wide, body), others))

    def _reduced(self, loop: For, wide: Buffer, extent: int, what: str) -> Stmt:
        """The loop, each of whose vectors updates the elements of ``wide``."""
        statements = []
        outer, lane = f"{self.loop}.o", f"{self.loop}.l"
        for start, count, lanes in pieces(extent, wide.shape[0]):
            place = Variable(lane) if lanes > 1 else _index(0)
            body = redirect(loop.body, self.buffer, wide, partial(_placed, place))
            first = piece_start(outer, start, count, lanes)
            body = in_lanes(body, self.loop, first, lane, lanes, what)
            statements.append(loops(((outer, count),), body) if count > 1 else body)
        return block(*statements)

    def _function(self, body: Stmt, loop: For, what: str) -> BinaryFunction:
        """The updates' function.  Raises ScheduleError where the buffer is not an accumulator."""
        order, straight = list(walk(body)), list(_straight(body))
        inside = list(walk(loop))
        places = {id(stmt): number for number, stmt in enumerate(order)}
        stores = [each for each in order if isinstance(each, Store) and self._is(each.buffer)]
        updates = [each for each in order if isinstance(each, Update) and self._is(each.buffer)]
        reads = [each for each in order for own in own_expressions(each) for load in loads(own)
                 if self._is(load.buffer)]  # fmt: skip
        calls = (each for each in order if isinstance(each, Invoke))
        functions = {each.function for each in updates}
        first, last = places[id(loop)], places[id(inside[-1])]
        if (
            len(stores) != 1
            or len(functions) != 1
            or not {id(stores[0]), id(loop)} <= set(map(id, straight))
            or not {id(each) for each in updates} <= {id(each) for each in inside}
            or places[id(stores[0])] > first
            or any(places[id(each)] <= last for each in reads)
            or any(self._is(region.buffer) for each in calls for region in each.operands)
        ):
            raise ScheduleError(
                f"{what}: required one store before the loop, updates by one function in it, and "
                "reads after it"
            )
        (function,) = functions
        given, neutral = stores[0].value, identity(function, stores[0].buffer.dtype)
        if not isinstance(given, Constant) or given.value != neutral:
            raise ScheduleError(f"{what}: it starts from a value other than {neutral}")
        return function

    def _is(self, buffer: Buffer) -> bool:
        return buffer.name == self.buffer


def _straight(stmt: Stmt) -> Iterator[Stmt]:
    """The statement and those below it that run whenever it does, and once."""
    yield stmt
    if isinstance(stmt, Block | Allocate | Let):
        for each in bodies(stmt):
            yield from _straight(each)


def _placed(place: Expr, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return (place,)


def _index(value: int) -> Constant:
    return Constant(value, DType.INT64)
