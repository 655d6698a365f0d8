"""The space of a kernel's schedules: decisions of the lowering, and any steps after them.

There is no template: a step is drawn from the loops as they are at that point, and those that do
not apply, by the steps' own checks, are left out.
"""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..errors import ScheduleError
from ..loops.text import to_text
from ..lower.decisions import Decisions
from ..schedule.records import KernelRecord
from ..schedule.steps.schedule import Schedule, Step
from ..schedule.steps.trace import from_record, replay, step_record
from .contraction import Contraction, contraction_of
from .features import function_features
from .kernel import Kernel, Setting
from .kernel_job import KernelJob
from .problem import Candidate, Features
from .steps import draw_step, varied_step

__all__ = ["KernelProblem", "record_of"]

MOST_STEPS = 10
"""Of a trace; each costs time to check."""
TRIES = 8
"""Of a change, until one is legal."""
RARE = 0.06
KNOWN = 4096
"""Candidates whose schedules are remembered."""


def record_of(candidate: Candidate) -> KernelRecord:
    """The candidate as compilation takes it."""
    values = candidate.record
    decisions, steps = values.get("decisions", {}), values.get("steps", [])
    if not isinstance(decisions, Mapping) or not isinstance(steps, list):
        raise ScheduleError(f"record {candidate.text}; required decisions and a list of steps")
    return KernelRecord(decisions, tuple(steps))


@dataclass(slots=True)
class KernelProblem:
    """A kernel for ``setting``; see Problem."""

    kernel: Kernel
    setting: Setting
    _schedules: dict[Candidate, Schedule | None] = field(default_factory=dict)
    _contraction: Contraction | None = field(init=False)

    def __post_init__(self) -> None:
        self._contraction = contraction_of(self.kernel.graph, self.setting.machine)

    @property
    def key(self) -> str:
        return self.kernel.key

    @property
    def title(self) -> str:
        return self.kernel.title

    def default(self) -> Candidate:
        return _candidate(Decisions(), ())

    def sample(self, rng: random.Random) -> Candidate:
        candidate = self.default()
        if self._contraction is not None:
            candidate = _candidate(self._contraction.sample(rng), ())
        if rng.random() < self._stepping:
            for _ in range(rng.randrange(4)):
                candidate = self._stepped(candidate, rng)
        return candidate

    def mutate(self, candidate: Candidate, rng: random.Random) -> Candidate:
        for _ in range(TRIES):
            found = self._changed(candidate, rng)
            if found != candidate:
                return found
        return self.sample(rng)

    def _changed(self, candidate: Candidate, rng: random.Random) -> Candidate:
        """With a decision or a step changed, if what is drawn applies."""
        decisions, steps = _parts(candidate)
        kinds = ["step"] if rng.random() < self._stepping else []
        kinds += ["remove", "vary"] if steps else []
        kinds += 3 * ["decide"] if self._contraction is not None else []
        match rng.choice(kinds or ["step"]):
            case "decide":
                assert self._contraction is not None
                return self._kept(self._contraction.mutate(decisions, rng), steps)
            case "remove":
                place = rng.randrange(len(steps))
                return self._kept(decisions, (*steps[:place], *steps[place + 1 :]))
            case "vary":
                return self._kept(decisions, _varied(steps, rng))
            case _:
                return self._stepped(candidate, rng)

    def cross(self, one: Candidate, other: Candidate, rng: random.Random) -> Candidate:
        first, second = _parts(one), _parts(other)
        decisions = Decisions(
            *(
                getattr(rng.choice((first, second))[0], name)
                for name in Decisions.__dataclass_fields__
            )
        )
        return self._kept(decisions, rng.choice((first, second))[1])

    def features(self, candidate: Candidate) -> Features | None:
        schedule = self._schedule(candidate)
        return None if schedule is None else function_features(schedule.function)

    def program(self, candidate: Candidate) -> str:
        schedule = self._schedule(candidate)
        assert schedule is not None, "it has features"
        return hashlib.sha256(to_text(schedule.function).encode()).hexdigest()

    def job(self, candidate: Candidate) -> KernelJob:
        return KernelJob(self.kernel, self.setting, candidate.text)

    @property
    def _stepping(self) -> float:
        """How likely steps are drawn; they take long to check where there are many stores."""
        return RARE if self._contraction is not None and self._contraction.rows else 1.0

    def _schedule(self, candidate: Candidate) -> Schedule | None:
        """None when it is not legal."""
        if candidate not in self._schedules:
            if len(self._schedules) >= KNOWN:
                self._schedules.clear()
            self._schedules[candidate] = self._made(candidate)
        return self._schedules[candidate]

    def _made(self, candidate: Candidate) -> Schedule | None:
        record = record_of(candidate)
        try:
            plain = self.kernel.lowered(self.setting, replace(record, steps=()))
            return replay(plain.function, record.steps)
        except ScheduleError:
            return None

    def _stepped(self, candidate: Candidate, rng: random.Random) -> Candidate:
        """One more step, if one of those drawn applies."""
        schedule = self._schedule(candidate)
        if schedule is None or len(schedule.trace) >= MOST_STEPS:
            return candidate
        decisions, _ = _parts(candidate)
        for _ in range(TRIES):
            steps = draw_step(schedule.function, self.setting.threads, rng)
            try:
                after = schedule
                for step in steps:
                    after = after.then(step)
            except ScheduleError:
                continue
            if steps:
                found = _candidate(decisions, after.trace)
                self._schedules[found] = after
                return found
        return candidate

    def _kept(self, decisions: Decisions, steps: tuple[Step, ...]) -> Candidate:
        """With those of the steps that still apply."""
        try:
            plain = self.kernel.lowered(self.setting, KernelRecord(decisions.to_record()))
        except ScheduleError:
            return self.default()
        schedule = Schedule.of(plain.function)
        for step in steps:
            try:
                schedule = schedule.then(step)
            except ScheduleError:
                continue
        found = _candidate(decisions, schedule.trace)
        self._schedules[found] = schedule
        return found


def _candidate(decisions: Decisions, steps: tuple[Step, ...]) -> Candidate:
    trace = [step_record(step) for step in steps]
    return Candidate.of({"decisions": decisions.to_record(), "steps": trace})


def _parts(candidate: Candidate) -> tuple[Decisions, tuple[Step, ...]]:
    record = record_of(candidate)
    return Decisions.from_record(record.decisions), tuple(map(from_record, record.steps))


def _varied(steps: tuple[Step, ...], rng: random.Random) -> tuple[Step, ...]:
    place = rng.randrange(len(steps))
    return (*steps[:place], varied_step(steps[place], rng), *steps[place + 1 :])
