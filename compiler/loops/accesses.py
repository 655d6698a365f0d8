"""Every access of a statement to a buffer, with what holds where it happens."""

from collections.abc import Container, Iterable, Mapping

from dovetail.isa.frozen import frozen, replace

from ..dtypes import DType
from .affine import Linear
from .bounds import Bounds
from .expressions import BinaryFunction, Buffer, Expr, Load, Select, Variable
from .intrinsic import PREFETCH, Intrinsic
from .ir import Allocate, Block, For, If, Invoke, Let, Region, Stmt, Store, Update, While
from .rewrite import substitute_expr
from .simplify import Simplifier
from .traverse import LEAVES, loads, operands, written

__all__ = ["Access", "accesses"]

MOST_PLACES = 512
"""Branches of the selects of one statement that are told apart."""


@frozen(eq=False)
class Access:
    """A load, a store, an update, or the region of an intrinsic's operand.

    ``index`` has what ``Let`` stands for put in.  A region's index has one more variable for each
    dimension, of the range of its size.
    """

    buffer: Buffer
    index: tuple[Linear, ...]
    reads: bool
    writes: bool
    function: BinaryFunction | None
    """The function that an update combines with; None for plain reads and stores."""
    loops: tuple[For, ...]
    """Around it, inside the statement that was asked about, outermost first."""
    bounds: Bounds
    """Where it happens."""
    private: int | None
    """Number of ``loops`` around the allocation of the buffer; None: it is not inside."""
    statement: Stmt
    within: frozenset[str]
    """The variables of the dimensions of a region."""
    lets: frozenset[str]
    """The variables of lets inside the statement that nothing is put in for."""
    conditional: bool
    """True if it may not happen although ``bounds`` hold."""

    def commutes(self, other: "Access") -> bool:
        """True if their order does not matter, on one element."""
        same = self.function is not None and self.function is other.function
        return same or not (self.writes or other.writes)


def accesses(
    stmt: Stmt,
    bounds: Bounds,
    intrinsics: Mapping[str, Intrinsic] | None = None,
    loops: tuple[For, ...] = (),
    of: Container[str] | None = None,
) -> list[Access]:
    """The accesses of ``stmt``, in the order of its text, reads of a write first.

    of: names of the buffers whose accesses are wanted; None: all.
    ``loops`` are loops that it is a part of the body of, and that the accesses count among theirs;
    ``bounds`` hold outside them.  An intrinsic that is not in ``intrinsics`` is taken to read and
    write all its operands.
    """
    for loop in loops:
        bounds = bounds.loop(loop.variable, Simplifier(bounds).expr(loop.extent))
    collector = _Collector(intrinsics or {}, of)
    collector.statement(stmt, _Place(loops, Simplifier(bounds), {}, {}, False))
    return collector.found


@frozen
class _Place:
    loops: tuple[For, ...]
    simplifier: Simplifier
    lets: Mapping[str, Expr]
    allocated: Mapping[str, int]
    conditional: bool
    opaque: frozenset[str] = frozenset()

    def inner(self, bounds: Bounds, loops: tuple[For, ...] | None = None) -> "_Place":
        if bounds is self.simplifier.bounds and loops is None:
            return self
        loops = self.loops if loops is None else loops
        simplifier = Simplifier(bounds)
        return _Place(loops, simplifier, self.lets, self.allocated, self.conditional, self.opaque)

    def surviving(self, stmt: Stmt) -> "_Place":
        bounds = self.simplifier.bounds.surviving(stmt)
        return self if bounds is self.simplifier.bounds else self.inner(bounds)

    def where(self, condition: Expr, holds: bool = True) -> "_Place":
        test = self.simplifier.expr(self.expr(condition))
        inside = self.inner(self.simplifier.bounds.where(test, holds))
        return inside if Bounds.decides(test, holds) else replace(inside, conditional=True)

    def expr(self, expr: Expr) -> Expr:
        return substitute_expr(expr, self.lets) if self.lets else expr


class _Collector:
    def __init__(self, intrinsics: Mapping[str, Intrinsic], of: Container[str] | None) -> None:
        self.intrinsics = intrinsics
        self.of = of
        self.found: list[Access] = []

    def statement(self, stmt: Stmt, place: _Place) -> None:
        bounds = place.simplifier.bounds
        match stmt:
            case Block(statements=statements):
                for each in statements:
                    self.statement(each, place)
                    place = place.surviving(each)
            case For(variable=name, extent=extent, body=body):
                self.reads((extent,), stmt, place)
                limit = place.simplifier.expr(place.expr(extent))
                inner = bounds.loop(name, limit).surviving(body)
                self.statement(body, place.inner(inner, (*place.loops, stmt)))
            case If(condition=condition, then=then, otherwise=otherwise):
                self.reads((condition,), stmt, place)
                self.statement(then, place.where(condition))
                if otherwise is not None:
                    self.statement(otherwise, place.where(condition, False))
            case While(condition=condition, body=body):
                self.reads((condition,), stmt, place)
                self.statement(body, replace(place.surviving(body), conditional=True))
            case Allocate(buffer=buffer, body=body):
                allocated = {**place.allocated, buffer.name: len(place.loops)}
                self.statement(body, replace(place, allocated=allocated))
            case Let(variable=variable, value=value, body=body):
                self.reads((value,), stmt, place)
                lets = place.lets
                given = place.expr(value)
                changing = {load.buffer.name for load in loads(given)}
                if changing:
                    changing &= written(body)
                if variable.dtype in (DType.INT64, DType.BOOL) and not changing:
                    lets = {**lets, variable.name: given}
                else:
                    place = replace(place, opaque=place.opaque | {variable.name})
                    if not variable.dtype.is_float:
                        place = place.inner(bounds.variable(variable.name, bounds.of(given)))
                self.statement(body, replace(place, lets=lets))
            case Store(buffer=buffer, indices=indices, value=value):
                self.reads((*indices, value), stmt, place)
                self.add(buffer, indices, place, stmt, writes=True)
            case Update(buffer=buffer, indices=indices, function=function, value=value):
                self.reads((*indices, value), stmt, place)
                self.add(buffer, indices, place, stmt, reads=True, writes=True, function=function)
            case Invoke():
                self.invoke(stmt, place)

    def add(
        self,
        buffer: Buffer,
        indices: Iterable[Expr],
        place: _Place,
        stmt: Stmt,
        *,
        reads: bool = False,
        writes: bool = False,
        function: BinaryFunction | None = None,
        within: frozenset[str] = frozenset(),
    ) -> None:
        if self.of is not None and buffer.name not in self.of:
            return
        index = tuple(place.simplifier.linear(place.expr(each)) for each in indices)
        self.found.append(
            Access(
                buffer,
                index,
                reads,
                writes,
                function,
                place.loops,
                place.simplifier.bounds,
                place.allocated.get(buffer.name),
                stmt,
                within,
                place.opaque,
                place.conditional,
            )
        )

    def reads(self, roots: Iterable[Expr], stmt: Stmt, place: _Place) -> None:
        """The loads in ``roots``, with the conditions of the selects around them."""
        stack = [(root, place) for root in roots if type(root) not in LEAVES]
        seen: set[tuple[int, int, bool]] = set()
        places = [place]
        while stack:
            expr, here = stack.pop()
            key = id(expr), id(here.simplifier.bounds), here.conditional
            if key in seen:
                continue
            seen.add(key)
            match expr:
                case Load(buffer=buffer, indices=indices):
                    stack += [(each, here) for each in indices if type(each) not in LEAVES]
                    self.add(buffer, indices, here, stmt, reads=True)
                case Select(condition=condition, chosen=chosen, other=other) if (
                    len(places) < MOST_PLACES
                ):
                    then, otherwise = here.where(condition), here.where(condition, False)
                    # Kept alive, so that no two places have one identity.
                    places += (then, otherwise)
                    stack += ((other, otherwise), (chosen, then), (condition, here))
                case _:
                    stack += [(each, here) for each in operands(expr) if type(each) not in LEAVES]

    def invoke(self, stmt: Invoke, place: _Place) -> None:
        if stmt.intrinsic == PREFETCH:
            for region in stmt.operands:
                self.reads(region.start, stmt, place)
            return
        intrinsic = self.intrinsics.get(stmt.intrinsic)
        inputs = len(intrinsic.meaning.inputs) if intrinsic else 0
        for number, region in enumerate(stmt.operands):
            self.reads(region.start, stmt, place)
            self.region(region, number, place, stmt, writes=number >= inputs)

    def region(
        self, region: Region, number: int, place: _Place, stmt: Stmt, *, writes: bool
    ) -> None:
        bounds = place.simplifier.bounds
        indices, within = [], set()
        for axis, (start, size) in enumerate(zip(region.start, region.shape, strict=True)):
            if size == 1:
                indices.append(start)
                continue
            name = f"{region.buffer.name}.{number}.{axis}"
            within.add(name)
            bounds = bounds.variable(name, (0, size - 1))
            indices.append(start + Variable(name))
        self.add(
            region.buffer,
            indices,
            place.inner(bounds),
            stmt,
            reads=True,
            writes=writes,
            within=frozenset(within),
        )
