"""Random steps for loops as they are."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dovetail.isa.frozen import frozen

from ..loops.expressions import Constant, Scope
from ..loops.ir import Allocate, For, Function, If, Let, LoopKind, Stmt
from ..loops.traverse import bodies, loads
from ..schedule.steps.loop_steps import Fuse, Partition, SetKind, Split
from ..schedule.steps.order_steps import Reorder
from ..schedule.steps.schedule import Step
from ..schedule.steps.storage_steps import CacheRead

__all__ = ["draw_step", "varied_step"]

FACTORS = (2, 3, 4, 6, 7, 8, 14, 16, 28, 32, 64)
UNROLLED = 8
"""Iterations that may be written out."""
VECTOR = 64
"""Iterations of a loop that may become a vector without being split."""


@frozen
class _Place:
    """A loop; inner: the serial loop that is alone in it, if there is one.  depth: loops around."""

    loop: For
    inner: For | None
    depth: int

    @property
    def extent(self) -> int:
        """0 when it is not constant."""
        return int(self.loop.extent.value) if isinstance(self.loop.extent, Constant) else 0

    @property
    def name(self) -> str:
        return self.loop.variable


def draw_step(function: Function, threads: int, rng: random.Random) -> Sequence[Step]:
    """One step, or two that belong together, which may not apply; none when there are no loops."""
    places = list(_serial(function.body, 0))
    if not places:
        return ()
    place = rng.choice(places)
    name, extent = place.name, place.extent
    match rng.choice(
        ("swap", "swap", "split", "unroll", "unroll", "vector", "edge", "fuse", "pack", "parallel")
    ):
        case "swap" if place.inner is not None:
            return (Reorder((place.inner.variable, name)),)
        case "split" if extent >= 4:
            split = _split(place, rng)
            below = [p.name for p in places if p.depth > place.depth and p.name != name]
            if not below or rng.random() < 0.3:
                return (split,)
            return (split, Reorder((rng.choice(below), f"{name}.i")))
        case "unroll" if 2 <= extent <= UNROLLED:
            return (SetKind(name, LoopKind.UNROLLED),)
        case "unroll" if extent > UNROLLED:
            factor = rng.choice((2, 4, 8))
            split = Split(name, factor, "exact" if extent % factor == 0 else "short")
            return (split, SetKind(f"{name}.i", LoopKind.UNROLLED))
        case "vector" if place.inner is None and 2 <= extent <= VECTOR:
            return (SetKind(name, LoopKind.VECTOR),)
        case "vector" if place.inner is None and extent > VECTOR:
            factor = rng.choice((16, 32, 64))
            split = Split(name, factor, "exact" if extent % factor == 0 else "guard")
            return (split, SetKind(f"{name}.i", LoopKind.VECTOR))
        case "edge" if extent >= 3:
            return (Partition(name, rng.choice((1, 2, extent - 1, extent - 2, extent // 2))),)
        case "fuse" if place.inner is not None:
            return (Fuse(name, place.inner.variable),)
        case "pack":
            buffers = sorted({load.buffer.name for load in loads(place.loop)})
            given = [each.name for each in function.inputs if each.name in buffers]
            return (CacheRead(rng.choice(given), name, Scope.LOCAL, ""),) if given else ()
        case "parallel" if threads > 1 and place.depth == 0:
            return (SetKind(name, LoopKind.PARALLEL),)
    return ()


def varied_step(step: Step, rng: random.Random) -> Step:
    """The step with another number, where it has one."""
    match step:
        case Split():
            return replace(step, factor=rng.choice(FACTORS), tail="short")
        case Partition(at=at):
            return replace(step, at=max(1, at + rng.choice((-1, 1))))
        case Reorder(loops=loops) if len(loops) > 1:
            return Reorder(tuple(rng.sample(loops, len(loops))))
    return step


def _split(place: _Place, rng: random.Random) -> Split:
    divisors = [n for n in range(2, place.extent) if place.extent % n == 0]
    if divisors and rng.random() < 0.8:
        return Split(place.name, rng.choice(divisors), "exact")
    factor = rng.choice([n for n in FACTORS if n < place.extent])
    return Split(place.name, factor, "short")


def _serial(stmt: Stmt, depth: int) -> Iterator[_Place]:
    if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL:
        yield _Place(stmt, _alone(stmt.body), depth)
    for body in bodies(stmt):
        yield from _serial(body, depth + isinstance(stmt, For))


def _alone(stmt: Stmt) -> For | None:
    while isinstance(stmt, Let | Allocate) or (isinstance(stmt, If) and stmt.otherwise is None):
        stmt = stmt.then if isinstance(stmt, If) else stmt.body
    return stmt if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL else None
