"""Selection of the records that make the whole faster, of those that are good separately."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .problem import Measured
from .subject import Entry, Subject
from .workers import LocalWorkers

__all__ = ["Selection"]

FASTER = 0.998
"""Time of a whole run with more records over that without, for which they are kept."""
SURE = 2
"""Measurements of all records together, of which one has to find the same as before."""
SECONDS = 300.0
"""Seconds that one measurement may take."""


def _new_workers() -> LocalWorkers[None]:
    return LocalWorkers(1, SECONDS)


@dataclass(slots=True)
class Selection:
    """late: whether time is up.  notes: what did not go as asked for.

    whole: costs of a whole run without and with all records, as they were measured last.
    """

    subject: Subject
    late: Callable[[], bool]
    notes: list[str]
    whole: tuple[float, float] | None = None
    _workers: LocalWorkers[None] = field(default_factory=_new_workers)

    def close(self) -> None:
        """End the process that measures."""
        self._workers.close()

    def of(self, groups: Sequence[Sequence[Entry]]) -> list[Entry]:
        """The records of those groups with which the whole is faster."""
        best = self._added([], groups)
        if best and not any(self._is_faster(best) for _ in range(SURE)):
            best = []
        if not best:
            self.notes.append("nothing that was found makes the whole model faster")
        return best

    def _added(self, best: list[Entry], groups: Sequence[Sequence[Entry]]) -> list[Entry]:
        """``best`` with those groups with which it is faster: all together, or else either half.

        Many small gains show together only.
        """
        if not groups:
            return best
        if self.late():
            self.notes.append("time was up before all records were tried as a whole")
            return best
        more = [*best, *(entry for group in groups for entry in group)]
        measured = self._measured(best, more)
        if measured is None or (measured.ratio or 1.0) < FASTER:
            return more
        if len(groups) == 1:
            return best
        middle = len(groups) // 2
        return self._added(self._added(best, groups[:middle]), groups[middle:])

    def _is_faster(self, entries: Sequence[Entry]) -> bool:
        """True if everything is with these records, by one more measurement."""
        measured = self._measured([], entries)
        if measured is None:
            return True
        self.whole = (measured.baseline or 0.0, measured.cost or 0.0)
        return (measured.ratio or 1.0) < FASTER

    def _measured(self, before: Sequence[Entry], after: Sequence[Entry]) -> Measured | None:
        """None when nothing has to be measured."""
        job = self.subject.whole(before, after)
        if job is None:
            return None
        jobs = deque([(None, job)])
        ((_, measured),) = self._workers.run(lambda: jobs.popleft() if jobs else None)
        if measured.error:
            self.notes.append(f"as a whole, {measured.error}")
        return measured
