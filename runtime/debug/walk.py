"""Going through a run, in both directions, and stopping on the way."""

from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Unit

from ..errors import InputError
from .moments import Event, Moment
from .stops import AtCycle, AtInstruction, AtLayer, AtToken, Run, Stop, positions

__all__ = ["Place", "Walk", "listed"]


@frozen
class Place:
    """Where a run stands.

    cycle: of the last thing that happened, -1 before the first.  reasons: the stops that apply.
    next: what happens next, None at the end.
    """

    cycle: int
    position: int
    reasons: tuple[str, ...]
    next: Moment | None


class Walk:
    """A place in a run, which can be gone through in both directions: what it does when is known.

    ``position`` p is before ``moments[p]``.  breakpoints: by their numbers.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.program, self.moments, self.layers = run.program, run.moments, run.layers
        self.position = 0
        self.breakpoints: dict[int, Stop] = {}
        self._made = 0

    @property
    def cycle(self) -> int:
        """Cycle of the last thing that happened; -1 before the first."""
        return self.moments[self.position - 1].cycle if self.position else -1

    @property
    def ended(self) -> bool:
        """True if nothing happens any more."""
        return self.position == len(self.moments)

    def where(self) -> Place:
        """The cycle, what stops here, and what comes next."""
        here = self.position
        reasons = [str(s) for s in self.breakpoints.values() if here in positions(s, self.run)]
        return Place(self.cycle, here, tuple(reasons), None if self.ended else self.moments[here])

    def layer(self, name: str) -> int:
        """The number of the layer called ``name``, of the only one that ends so, or so numbered.

        Raises InputError when there is none.
        """
        if name.isdecimal() and int(name) < len(self.layers):
            return int(name)
        found = [n for n, each in enumerate(self.layers) if each == name]
        found = found or [n for n, each in enumerate(self.layers) if each.endswith(name)]
        if len(found) != 1:
            problem = "no layer" if not found else f"{len(found)} layers"
            raise InputError(
                f"{problem} called {name!r}; there are: {listed(self.layers)}; or a number"
            )
        return found[0]

    def go_to(self, stop: Stop) -> Place:
        """To the next place at which ``stop`` stops, or, when all have passed, back to the last.

        Raises InputError when there is none.
        """
        found = positions(stop, self.run)
        if not found:
            raise InputError(f"the run never reaches {stop}")
        self.position = next((p for p in found if p >= self.position), found[-1])
        return self.where()

    def run_to_instruction(self, index: int, event: Event = Event.STARTED) -> Place:
        """To where instruction ``index`` is about to start, or has ended."""
        return self.go_to(AtInstruction(index, event))

    def run_to_cycle(self, cycle: int) -> Place:
        """To after everything in ``cycle``."""
        return self.go_to(AtCycle(cycle))

    def run_to_layer(self, name: str, *, end: bool = False) -> Place:
        """To before the first instruction of a layer starts, or after the last one ended."""
        return self.go_to(AtLayer(self.layer(name), end))

    def run_to_token(self, giver: Unit, taker: Unit, count: int | None = None) -> Place:
        """To after a token was given: the next one, or that of number ``count``, from 1 on."""
        stop = AtToken(giver, taker, count)
        if count is None:
            self.position = self._after(positions(stop, self.run))
            return self.where()
        return self.go_to(stop)

    def step(self, unit: Unit | None = None, count: int = 1) -> Place:
        """To after ``count`` more instructions, of ``unit`` or of any, ended."""
        for _ in range(count):
            places = (
                place + 1
                for place in range(self.position, len(self.moments))
                if self.moments[place].event is Event.ENDED
                and unit in (None, self.program[self.moments[place].index].unit)
            )
            self.position = next(places, len(self.moments))
        return self.where()

    def back(self, unit: Unit | None = None, count: int = 1) -> Place:
        """To before ``count`` instructions, of ``unit`` or of any, ended, last one first."""
        for _ in range(count):
            places = (
                place
                for place in reversed(range(self.position))
                if self.moments[place].event is Event.ENDED
                and unit in (None, self.program[self.moments[place].index].unit)
            )
            self.position = next(places, 0)
        return self.where()

    def resume(self) -> Place:
        """On to the next breakpoint, or to the end."""
        found = [p for stop in self.breakpoints.values() for p in positions(stop, self.run)]
        self.position = self._after(sorted(found))
        return self.where()

    def reverse(self) -> Place:
        """Back to the breakpoint before, or to the beginning."""
        found = [p for stop in self.breakpoints.values() for p in positions(stop, self.run)]
        self.position = max((p for p in found if p < self.position), default=0)
        return self.where()

    def restart(self) -> Place:
        """To before the first cycle."""
        self.position = 0
        return self.where()

    def _after(self, found: list[int]) -> int:
        return next((p for p in found if p > self.position), len(self.moments))

    def add_stop(self, stop: Stop) -> int:
        """Stop there from now on; the stop's number.

        Raises InputError for a stop that names what there is not.
        """
        positions(stop, self.run)
        self._made += 1
        self.breakpoints[self._made] = stop
        return self._made

    def delete_stop(self, number: int) -> None:
        """Stop there no more.

        Raises InputError when there is no such stop.
        """
        if number not in self.breakpoints:
            known = ", ".join(map(str, self.breakpoints)) or "none"
            raise InputError(f"no breakpoint {number}; there are: {known}")
        del self.breakpoints[number]


def listed(names: tuple[str, ...] | list[str]) -> str:
    """The first names of many."""
    most = 8
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
