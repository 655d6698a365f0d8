"""Reductions over sliding windows: vectors of neighbouring windows."""

from collections.abc import Iterator, Sequence
from math import prod

from dovetail.isa.frozen import frozen

from ....loops.affine import Linear, linear
from ....loops.expressions import Constant, Variable
from ....loops.ir import Allocate, For, Function, Store, Update
from ....loops.traverse import loads, variables, walk
from ...steps.guards import at_least_zero, conjuncts, guard
from ...steps.schedule import Schedule, Step
from ...steps.separate import Reduction, Row
from ...steps.tile import band
from .machine import Machine

__all__ = ["schedule_windows"]

VECTOR_BYTES = 64
"""Bytes of a vector of windows; CPUs with smaller registers take several."""

MOST_TAPS = 25
"""Taps of windows whose taps are written out, at most."""

ROW_VECTORS = 4
"""Registers that take the elements of a row together, as windows are reduced down to rows."""

MOST_PADDING, MANY_TAPS = 1024, 9
"""Elements of a row that may be outside of the tensor, and as many as are inside; and taps from
which on rows pay without any outside."""


def schedule_windows(schedule: Schedule, machine: Machine, given: Sequence[Step] = ()) -> Schedule:
    """Vectors of windows that are neighbours in the last dimension.

    Where windows move along that dimension, and padding or their size make it faster, they are
    reduced to rows first.
    """
    window = _Window.of(schedule.function)
    if window is None:
        return _clipped(schedule)
    tap = window.tap(window.last)
    if tap is None:
        return _in_parts(schedule, window, machine)
    if not _are_rows_faster(window, tap):
        return _clipped(schedule, but=tap).lanes(window.last, window.lanes)
    first = next(each.variable for each in window.nest if window.tap(each.variable) is not None)
    schedule = _clipped(schedule.separate(first, window.last, tap))
    schedule = schedule.lanes(f"{window.last}.row", ROW_VECTORS * window.lanes)
    return schedule.lanes(window.last, window.lanes)


@frozen
class _Window:
    """The loops over results, and the reduction in them."""

    nest: list[For]
    reduction: Reduction

    @staticmethod
    def of(function: Function) -> "_Window | None":
        """None where there is none, or no loop along the last dimension of the result."""
        outer = next((each for each in walk(function.body) if isinstance(each, For)), None)
        nest = band(outer) if outer is not None else []
        found = Reduction.of(nest[-1].body) if nest else None
        if found is None:
            return None
        stores = [each for part in found.rest for each in walk(part) if isinstance(each, Store)]
        if any(nest[-1].variable not in variables(each.indices[-1]) for each in stores):
            return None
        return _Window(nest, found)

    @property
    def last(self) -> str:
        """The loop along the last dimension."""
        return self.nest[-1].variable

    @property
    def lanes(self) -> int:
        """Results in a vector."""
        return VECTOR_BYTES // self.reduction.accumulator.dtype.bytes

    def tap(self, loop: str) -> str | None:
        """The loop over the elements of a window along which ``loop`` moves it."""
        for form in _forms(self.reduction.update):
            for tap in self.reduction.taps:
                if form.coefficient(loop) and form.coefficient(tap.variable):
                    return tap.variable
        return None


def _forms(update: Update) -> Iterator[Linear]:
    """The indices of what is read."""
    for load in loads(update.value):
        yield from map(linear, load.indices)


def _are_rows_faster(window: _Window, tap: str) -> bool:
    """True if it pays to reduce to rows first, for windows that move along the last dimension."""
    update, (*above, last) = window.reduction.update, window.reduction.taps
    if tap != last.variable:
        return False
    dilations = {form.coefficient(each.variable) for form in _forms(update) for each in above}
    tests = [each for each in conjuncts(guard(update)) if tap in variables(each)]
    row = Row.of(update.value, window.last, tap, "rows")
    length = row.step * (_size(window.nest[-1]) - 1) + row.dilation * (_size(last) - 1) + 1
    low, high = row.inside(tests, length)
    many = prod(map(_size, window.reduction.taps)) >= MANY_TAPS
    short = length <= MOST_PADDING + 2 * (high - low)
    return dilations <= {0, 1} and short and (bool(tests) or many)


def _in_parts(schedule: Schedule, window: _Window, machine: Machine) -> Schedule:
    """Vectors along the last dimension; windows inside of the tensor separately.

    Their taps are written out, where they are few.  Threads share the first dimension that windows
    move in: what they read is then near the thread that wrote it.
    """
    names = [each.variable for each in window.nest]
    moving = [name for name in names if window.tap(name) is not None]
    if machine.threads > 1 and moving and moving[0] != names[0]:
        others = (name for name in names[:-1] if name != moving[0])
        schedule = schedule.reorder(moving[0], *others)
    while (cut := _cut(schedule.function)) is not None:
        schedule = schedule.partition(*cut)
    for loop in list(walk(schedule.function.body)):
        if isinstance(loop, For) and _holds_results(loop) and _size(loop) == 1:
            schedule = schedule.drop(loop.variable)
    for _, found in _results(schedule.function):
        if guard(found.update) is None and prod(map(_size, found.taps)) <= MOST_TAPS:
            for each in found.taps:
                schedule = schedule.unroll(each.variable)
    schedule = _clipped(schedule)
    for name, _ in _results(schedule.function):
        schedule = schedule.lanes(name, window.lanes)
    return schedule


def _cut(function: Function) -> tuple[str, int] | None:
    """A loop over windows, and the iterations from which on they are inside the tensor, or no
    longer do.
    """
    for loop in walk(function.body):
        if not isinstance(loop, For) or not _holds_results(loop):
            continue
        count, start, end = _size(loop), 0, _size(loop)
        update = next(each for each in walk(loop) if isinstance(each, Update))
        sizes = {each.variable: _size(each) for each in walk(loop) if isinstance(each, For)}
        for form in map(at_least_zero, conjuncts(guard(update))):
            step = form.coefficient(loop.variable) if form is not None else 0
            if form is None or step == 0:
                continue
            rest = form - Linear(0, {Variable(loop.variable): step})
            least, _ = rest.limits(sizes)
            if step > 0:
                start = max(start, -(least // step))
            else:
                end = min(end, least // -step + 1)
        if 0 < start < count:
            return loop.variable, start
        if start == 0 < end < count:
            return loop.variable, end
    return None


def _clipped(schedule: Schedule, but: str = "") -> Schedule:
    """Without the taps outside of the tensor, except along ``but`` and where elements are apart."""
    for loop in list(walk(schedule.function.body)):
        if isinstance(loop, For) and loop.variable != but and not _holds_results(loop):
            forms = [at_least_zero(test) for test in conjuncts(guard(loop))]
            if any(
                form is not None and abs(form.coefficient(loop.variable)) == 1 for form in forms
            ):
                schedule = schedule.clip(loop.variable)
    return schedule


def _results(function: Function) -> list[tuple[str, Reduction]]:
    """The innermost loops over results, and the reduction in each."""
    loops = (each for each in walk(function.body) if isinstance(each, For))
    found = ((each.variable, Reduction.of(each.body)) for each in loops)
    return [(name, reduction) for name, reduction in found if reduction is not None]


def _holds_results(loop: For) -> bool:
    return any(isinstance(each, Allocate) for each in walk(loop))


def _size(loop: For) -> int:
    assert isinstance(loop.extent, Constant), "clipped loops are not asked for"
    return int(loop.extent.value)
