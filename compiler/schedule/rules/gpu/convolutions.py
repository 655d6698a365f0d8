"""Convolutions: on tensor cores as products of matrices, pixels by channels.

    for c: for y: for x: ... for taps: ...
    ->   for y.x: for c: ... for tap: ...

Without tensor cores they are products too, by tiles of threads (``thread_tiles.py``), where an
estimate finds that faster than the following: a thread computes several channels of the result for
each element of the image that it reads.

    for c: for y: for x: alloc acc: acc = 0; for taps: acc add= image[y, x] * w[c]; out = acc
    ->   for c.block: for y: for x: alloc acc[4]: ...; for taps: for c.item in 4: ...; ...

A thread then reads each element, and checks that it is inside the border, once for four products.
"""

from collections.abc import Callable
from contextlib import suppress

from ....errors import ScheduleError
from ....loops.expressions import Constant, Expr
from ....loops.ir import Allocate, Block, For, Stmt, Update
from ....loops.simplify import Simplifier
from ....loops.traverse import loads, variables, walk
from ...steps.schedule import Schedule
from ...steps.site import find_loop
from .bind import bind_nests
from .choice import DEFAULT, Choice, is_group
from .estimate import Work, plain_microseconds, tiled_microseconds
from .parts import best_parts
from .product import product_of
from .tensor_cores import on_tensor_cores, work_of
from .tensor_tiles import least_microseconds
from .thread_tiles import in_thread_tiles, sides_of

__all__ = ["schedule_convolution"]


def schedule_convolution(schedule: Schedule, choice: Choice = DEFAULT) -> Schedule:
    """On tensor cores if the schedule's intrinsics have its types; otherwise in tiles of channels,
    if only the weights depend on these, then in blocks and threads.

    Raises ScheduleError where the choice is of warpgroups and they do not suit.
    """
    if choice.groups:
        return _on_tensor_cores(schedule, choice)
    if schedule.intrinsics:
        with suppress(ScheduleError):
            return _on_tensor_cores(schedule, choice)
    with suppress(ScheduleError):
        return _in_threads(schedule, choice)
    with suppress(ScheduleError):
        schedule = _tiled(schedule, choice.channels)
    return bind_nests(schedule, choice.threads)


def _on_tensor_cores(schedule: Schedule, choice: Choice) -> Schedule:
    """As a product of matrices, in parts of its sum where there are few results."""
    hopper = any(map(is_group, schedule.intrinsics))
    schedule, _ = _in_parts(_multiplied(schedule), lambda work: least_microseconds(work, hopper))
    # What adds the parts has no blocks yet.
    return bind_nests(on_tensor_cores(schedule, choice), choice.threads)


def _in_threads(schedule: Schedule, choice: Choice) -> Schedule:
    """As a product of matrices without tensor cores.

    Raises ScheduleError where that is slower than a thread for some channels of each pixel.
    """
    whole = _multiplied(schedule)
    split, time = _in_parts(
        whole, lambda work: tiled_microseconds(work, sides_of(work.rows, work.columns))
    )
    product = product_of(split.function.body)
    if product is None or time >= plain_microseconds(_work(whole), choice.channels):
        raise ScheduleError("convolution: a thread for each pixel is faster")
    # Parts of a sum have their channels last, as images here have their pixels.
    turned = split is whole and product.apart[0]
    return bind_nests(in_thread_tiles(split, product, turned), choice.threads)


def _in_parts(schedule: Schedule, time: Callable[[Work], float]) -> tuple[Schedule, float]:
    """A product in the parts of its sum that an estimate finds fastest, and their microseconds."""
    parts, microseconds = best_parts(_work(schedule), time)
    product = product_of(schedule.function.body)
    if parts > 1 and product is not None:
        schedule = schedule.split_sum(product.k[0], parts)
    return schedule, microseconds


def _work(schedule: Schedule) -> Work:
    product = product_of(schedule.function.body)
    if product is None:
        raise ScheduleError("convolution: found none that is a product of matrices")
    return work_of(product)


def _multiplied(schedule: Schedule) -> Schedule:
    """As a product of matrices."""
    loops, allocation = _nest(schedule.function.body)
    if allocation is None or not isinstance(allocation.body, Block):
        raise ScheduleError("convolution: required a nest around a sum")
    taps = [each.variable for each in walk(allocation.body) if isinstance(each, For)]
    kept = {name for name, _ in loops}
    weights = [each & kept for each in _reads(schedule, allocation) if len(each & kept) == 1]
    if len(weights) != 1:
        raise ScheduleError("convolution: no weights that depend on channels alone")
    (channel,) = weights[0]
    pixels = [name for name, _ in loops if name != channel]
    if not pixels:
        raise ScheduleError("convolution: one pixel, which fills no tile")
    schedule = schedule.reorder(*pixels, channel)
    for names in (pixels, taps):
        whole = names[0]
        for number, each in enumerate(names[1:]):
            name = f"{names[0]}.all{number}"
            schedule, whole = schedule.fuse(whole, each, name), name
    return schedule


def _reads(schedule: Schedule, allocation: Allocate) -> list[set[str]]:
    """The loops that each factor of the sum depends on."""
    update = next((each for each in walk(allocation.body) if isinstance(each, Update)), None)
    taps = [each.variable for each in walk(allocation.body) if isinstance(each, For)]
    if update is None or not taps:
        raise ScheduleError("convolution: no taps")
    simplifier = Simplifier(find_loop(schedule.function, taps[-1])[0].body.bounds)
    return [_used(tuple(map(simplifier.expr, load.indices))) for load in loads(update.value)]


def _tiled(schedule: Schedule, most: int) -> Schedule:
    """A thread has so many channels, or half as many, and so on, if they divide all."""
    loops, allocation = _nest(schedule.function.body)
    if allocation is None or not isinstance(allocation.body, Block):
        raise ScheduleError("convolution: required a nest around a sum")
    parts = allocation.body.statements
    if len(parts) != 3:
        raise ScheduleError("convolution: required a start, a sum and a result")
    taps = [each.variable for each in walk(parts[1]) if isinstance(each, For)]
    channel = _channel(loops, _reads(schedule, allocation))
    if channel is None:
        raise ScheduleError("convolution: no channels that the image does not depend on")
    name, extent = channel
    size = most
    while extent % size:
        size //= 2
    item, names = f"{name}.item", [loop for loop, _ in loops]
    schedule = schedule.split(name, size, "exact", f"{name}.block", item)
    order = [f"{name}.block" if each == name else each for each in names]
    schedule = schedule.reorder(*order, item).lift(allocation.buffer.name, item)
    schedule = schedule.fission(item, 1, f"{item}.sum").fission(f"{item}.sum", 1, f"{item}.end")
    schedule = schedule.reorder(*taps, f"{item}.sum")
    for end in ("", ".sum", ".end"):
        schedule = schedule.unroll(f"{item}{end}")
    return schedule


def _nest(stmt: Stmt) -> tuple[list[tuple[str, int]], Allocate | None]:
    """Loops of constant extents, one in the other, and what is allocated in them."""
    loops = []
    while isinstance(stmt, For) and isinstance(stmt.extent, Constant):
        loops.append((stmt.variable, int(stmt.extent.value)))
        stmt = stmt.body
    return loops, stmt if isinstance(stmt, Allocate) else None


def _channel(loops: list[tuple[str, int]], used: list[set[str]]) -> tuple[str, int] | None:
    """The loop that the weights depend on, and the image does not; used: by the loads of each."""
    for name, extent in loops:
        readers = [each for each in used if name in each]
        if extent > 1 and len(readers) == 1 and len(used) == 2:
            return name, extent
    return None


def _used(indices: tuple[Expr, ...]) -> set[str]:
    return {name for each in indices for name in variables(each)}
