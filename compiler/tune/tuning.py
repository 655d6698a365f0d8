"""Tuning a model from end to end: what is known is taken, the rest proposed, measured and kept."""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.isa.frozen import frozen

from ..errors import TuneError
from ..processes.folder_lock import locked
from ..schedule.record_files import write_entries
from .model import CostModel
from .problem import Candidate, Job, Measured
from .search import RandomSearch, Search
from .selection import Selection
from .subject import Entry, Subject
from .trials import Trial, TrialFile
from .workers import ClusterWorkers, LocalWorkers, Workers

__all__ = ["RECORDS", "Options", "Progress", "Tuned", "tune"]

RECORDS = "records.json"

BATCH = 6
"""Candidates of a problem that are measured before another problem may have its turn."""
STALE, FRESH = 0.55, 1.3
"""Factors of the hope for more after a batch without and with a better candidate."""
BETTER = 0.995
"""The part of the best ratio so far that counts as better."""
CONFIRMED = 3
"""The best candidates of a problem that are measured once more at the end."""
CLOSING, LATEST = 0.25, 1.05
"""Part of the time that is kept for those and for whole runs, and when these end."""
SEEDS, WORTH_AGAIN = 4, 0.98
"""Candidates of a problem that were good with another compiler, and what is good."""


@frozen
class Options:
    """seconds, trials: after which it ends; None for no limit.  workers: processes that measure.

    scheduler: address of a Dask cluster to use in their place.  strategy: ``evolution`` or
    ``random``.  seed: of the search.
    """

    seconds: float | None = 600.0
    trials: int | None = None
    workers: int = 1
    scheduler: str | None = None
    strategy: str = "evolution"
    seed: int = 0


@dataclass(slots=True)
class Progress:
    """State of the search.  start, best: costs of a run, by the kernels' own, with defaults and so
    far.

    failed: candidates that could not be measured, or were wrong.  title: of the last problem.
    whole: costs of a whole run without and with the records that were written.
    """

    problems: int
    seconds: float = 0.0
    trials: int = 0
    known: int = 0
    failed: int = 0
    start: float = 0.0
    best: float = 0.0
    title: str = ""
    whole: tuple[float, float] | None = None


@frozen
class Tuned:
    """entries: the records that were written.  notes: what did not go as asked for."""

    entries: tuple[Mapping[str, object], ...]
    progress: Progress
    notes: tuple[str, ...] = ()


def tune(
    subject: Subject,
    folder: Path,
    options: Options | None = None,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Tuned:
    """Search until time is up.  Each result is kept in ``folder`` as soon as it is there; those
    that are there are not measured again.

    Raises TuneError when the folder cannot be used or is full, or nothing can be measured.
    """
    options = options or Options()
    with locked(folder, "search", TuneError):
        file = TrialFile(folder)
        try:
            state = _Tuning(subject, options, file, observe)
            state.run()
            entries = state.chosen()
            write_entries(folder / RECORDS, entries)
        finally:
            file.close()
    return Tuned(tuple(entries), state.progress, tuple(file.notes))


@dataclass(slots=True)
class _Turn:
    """A problem's search; hope: for more from another batch.  confirmed: ratios of the last
    measurements, by candidate.
    """

    search: Search
    hope: float = 1.0
    waiting: int = 0
    best: float = float("inf")
    confirmed: dict[Candidate, float] = field(default_factory=dict)


@dataclass
class _Tuning:
    subject: Subject
    options: Options
    file: TrialFile
    observe: Callable[[Progress], None]
    turns: dict[str, _Turn] = field(default_factory=dict)
    queue: deque[tuple[str, Candidate]] = field(default_factory=deque)
    progress: Progress = field(init=False)
    closing: bool = False
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        rng = random.Random(self.options.seed)
        model = CostModel(self.subject.experience())
        kind = RandomSearch if self.options.strategy == "random" else Search
        for problem in self.subject.problems():
            self.turns[problem.key] = _Turn(kind(problem, model, random.Random(rng.random())))
        if not self.turns:
            raise TuneError("the model has nothing that can be tuned")
        self.progress = Progress(len(self.turns))
        for trial in self.file.trials:
            turn = self.turns.get(trial.key)
            if turn is not None and trial.setting == self.subject.setting:
                turn.search.tell(trial.text, trial.measured)
                self.progress.known += 1
                turn.best = min(turn.best, trial.measured.ratio or turn.best)
        self._sow()

    def _sow(self) -> None:
        """Let the best of other settings be measured again."""
        others: dict[str, list[tuple[float, Candidate]]] = {}
        for trial in self.file.trials:
            ratio = trial.measured.ratio
            other = trial.setting != self.subject.setting
            if other and trial.key in self.turns and ratio is not None and ratio < WORTH_AGAIN:
                others.setdefault(trial.key, []).append((ratio, trial.text))
        for key, found in others.items():
            best = sorted(found, key=lambda each: each[0])[:SEEDS]
            self.turns[key].search.seeds = [candidate for _, candidate in best]

    def run(self) -> None:
        """Measure until the end, then the best once more."""
        workers = self._workers()
        try:
            for stage in (False, True):
                self.closing = stage
                if stage:
                    self.queue.clear()
                    self.queue += self._last()
                for name, measured in workers.run(self._next):
                    self._take(*name, measured)
        finally:
            workers.close()

    def accepted(self) -> dict[str, tuple[Candidate, float]]:
        """The best candidate of each problem that was confirmed and is worth a record."""
        found = {}
        for key, turn in self.turns.items():
            if turn.confirmed:
                candidate = min(turn.confirmed, key=lambda each, own=turn: own.confirmed[each])  # type: ignore[misc]
                if turn.confirmed[candidate] <= self.subject.worth():
                    found[key] = candidate, turn.confirmed[candidate]
        return found

    def chosen(self) -> Sequence[Entry]:
        """The groups of records with which the whole is faster than before."""
        selection = Selection(self.subject, lambda: self._late(LATEST), self.file.notes)
        try:
            return selection.of(self.subject.entries(self.accepted(), self.costs()))
        finally:
            selection.close()
            self.progress.whole = selection.whole

    def _workers(self) -> Workers[tuple[str, Candidate]]:
        if self.options.scheduler:
            return ClusterWorkers(self.options.scheduler, self.subject.job_seconds)
        return LocalWorkers(self.options.workers, self.subject.job_seconds)

    def _next(self) -> tuple[tuple[str, Candidate], Job] | None:
        """The next job for a worker."""
        while not self.queue:
            if self.closing or self._over() or not self._propose():
                return None
        key, candidate = self.queue.popleft()
        turn = self.turns[key]
        turn.waiting += 1
        return (key, candidate), turn.search.problem.job(candidate)

    def _over(self) -> bool:
        trials = self.options.trials
        return self._late(1 - CLOSING) or (trials is not None and self.progress.trials >= trials)

    def _late(self, part: float) -> bool:
        """True if that part of the time is over."""
        seconds = self.options.seconds
        return seconds is not None and time.monotonic() - self.started > seconds * part

    def _propose(self) -> bool:
        """Fill the queue from the problem that promises most; False when none has candidates."""
        weights = self.subject.weights(self.costs())
        order = sorted(
            self.turns,
            key=lambda key: (
                key not in weights,
                weights.get(key, 0.0) * self.turns[key].hope / (1 + self.turns[key].waiting),
            ),
            reverse=True,
        )
        unknown = [key for key in self.turns if not self.turns[key].search.results]
        unknown = [key for key in unknown if not self.turns[key].waiting]
        for key in (*unknown, *(key for key in order if weights.get(key, 0.0) > 0)):
            turn = self.turns[key]
            if turn.waiting and not turn.search.results:
                continue
            found = turn.search.propose(BATCH)
            if found:
                self.queue += [(key, each) for each in found]
                turn.hope *= STALE
                return True
        return False

    def _take(self, key: str, candidate: Candidate, measured: Measured) -> None:
        turn, progress = self.turns[key], self.progress
        turn.waiting -= 1
        ratio = measured.ratio
        if self.closing:
            if ratio is not None:
                turn.confirmed[candidate] = ratio
        else:
            waiting = turn.search.features_of(candidate)
            turn.search.tell(candidate, measured)
            self._keep(turn, candidate, measured, waiting)
            if ratio is not None and ratio < BETTER * turn.best:
                turn.hope = min(1.0, turn.hope * FRESH / STALE)
                turn.best = ratio
        progress.failed += measured.cost is None
        progress.seconds = time.monotonic() - self.started
        progress.title = turn.search.problem.title
        progress.start, progress.best = self.subject.totals(self._defaults(), self.costs())
        self.observe(progress)

    def _keep(
        self, turn: _Turn, candidate: Candidate, measured: Measured, features: Sequence[float]
    ) -> None:
        problem = turn.search.problem
        self.progress.trials += 1
        self.file.append(
            Trial(
                self.subject.setting,
                problem.key,
                problem.title,
                candidate.record,
                measured.cost,
                measured.baseline,
                measured.error,
                tuple(round(float(each), 3) for each in features),
            )
        )

    def _last(self) -> Iterator[tuple[str, Candidate]]:
        """The best of each problem, and its default's neighbours in rank."""
        default = {key: turn.search.problem.default() for key, turn in self.turns.items()}
        for key, turn in self.turns.items():
            for candidate, ratio in turn.search.best(CONFIRMED):
                if candidate != default[key] and ratio <= self.subject.worth():
                    yield key, candidate

    def _defaults(self) -> dict[str, float]:
        """Costs of the defaults, as far as they are known."""
        found = {}
        for key, turn in self.turns.items():
            default = turn.search.results.get(turn.search.problem.default())
            if default is not None and default.cost is not None:
                found[key] = default.cost
        return found

    def costs(self) -> dict[str, float]:
        """The best costs, by ratio to the default, whose cost itself varies less."""
        found = self._defaults()
        for key in found:
            turn = self.turns[key]
            ratio = min(1.0, turn.best)
            if turn.confirmed:
                ratio = min(1.0, *turn.confirmed.values())
            found[key] *= ratio
        return found
