"""The space of a kernel's schedules: the rule's with other tiles, and any steps after them.

There is no template: a step is drawn from the loops as they are at that point, and those that do
not apply, by the steps' own checks, are left out.
"""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import ScheduleError
from ..loops.ir import Store
from ..loops.text import to_text
from ..loops.traverse import walk
from ..schedule.steps.schedule import Schedule, Step
from ..schedule.steps.trace import from_record, step_record
from .features import function_features
from .kernel import Kernel, Setting
from .kernel_job import KernelJob, record_of
from .problem import Candidate, Features
from .steps import draw_step, varied_step
from .tiles import choices_of, key_of

__all__ = ["KernelProblem"]

MOST_STEPS = 10
"""Steps of a trace at most; each costs time to check."""
TRIES = 8
"""Tries of a change, until one is legal."""
RARE = 0.06
MANY_STORES = 64
KNOWN = 4096
"""Candidates whose schedules are remembered."""


Chosen = Mapping[str, Step]
"""The tiles of a kernel's sums, by their registers, and how many rows go together."""


@dataclass(slots=True)
class KernelProblem:
    """A kernel for ``setting``; see Problem.

    A candidate is a trace: the rule's, with the tiles that were chosen, and any steps after it.
    """

    kernel: Kernel
    setting: Setting
    _schedules: dict[Candidate, Schedule | None] = field(default_factory=dict)
    _choices: dict[str, Any] = field(init=False)
    _default: Schedule = field(init=False)

    def __post_init__(self) -> None:
        found = self.kernel.ruled(self.setting)
        self._default = found.schedule
        self._choices = choices_of(found.definition.function, found.schedule, self.setting.machine)

    @property
    def key(self) -> str:
        return self.kernel.key

    @property
    def title(self) -> str:
        return self.kernel.title

    def default(self) -> Candidate:
        return _candidate(self._default.trace)

    def sample(self, rng: random.Random) -> Candidate:
        chosen = {name: own.sample(rng) for name, own in self._choices.items()}
        candidate = self._kept(chosen, ())
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
        """With a tile or a step changed, if what is drawn applies."""
        chosen, steps = self._parts(candidate)
        kinds = ["step"] if rng.random() < self._stepping else []
        kinds += ["remove", "vary"] if steps else []
        kinds += 3 * ["tile"] if self._choices else []
        match rng.choice(kinds or ["step"]):
            case "tile":
                name = rng.choice(sorted(self._choices))
                own = self._choices[name].mutate(chosen[name], rng)
                return self._kept({**chosen, name: own}, steps)
            case "remove":
                place = rng.randrange(len(steps))
                return self._kept(chosen, (*steps[:place], *steps[place + 1 :]))
            case "vary":
                return self._kept(chosen, _varied(steps, rng))
            case _:
                return self._stepped(candidate, rng)

    def cross(self, one: Candidate, other: Candidate, rng: random.Random) -> Candidate:
        first, second = self._parts(one), self._parts(other)
        chosen = {
            name: own.cross(first[0][name], second[0][name], rng)
            for name, own in self._choices.items()
        }
        return self._kept(chosen, rng.choice((first, second))[1])

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
        """Probability of drawing steps; they take long to check where there are many stores."""
        stores = sum(isinstance(each, Store) for each in walk(self._default.function.body))
        return RARE if stores > MANY_STORES else 1.0

    def _schedule(self, candidate: Candidate) -> Schedule | None:
        """None when it is not legal."""
        if candidate not in self._schedules:
            if len(self._schedules) >= KNOWN:
                self._schedules.clear()
            try:
                found = self.kernel.recorded(self.setting, record_of(candidate)).schedule
            except ScheduleError:
                found = None
            self._schedules[candidate] = found
        return self._schedules[candidate]

    def _parts(self, candidate: Candidate) -> tuple[Chosen, tuple[Step, ...]]:
        """The tiles of a trace, and the steps after the rule's."""
        steps = tuple(map(from_record, record_of(candidate).steps))
        found = {key: step for step in steps if (key := key_of(step)) is not None}
        chosen = {name: found.get(name, own.default) for name, own in self._choices.items()}
        try:
            ruled = self.kernel.ruled(self.setting, tuple(chosen.values())).schedule.trace
        except ScheduleError:
            return chosen, ()
        return chosen, steps[len(ruled) :] if steps[: len(ruled)] == ruled else ()

    def _stepped(self, candidate: Candidate, rng: random.Random) -> Candidate:
        """One more step, if one of those drawn applies."""
        schedule = self._schedule(candidate)
        if schedule is None or len(self._parts(candidate)[1]) >= MOST_STEPS:
            return candidate
        for _ in range(TRIES):
            steps = draw_step(schedule.function, self.setting.threads, rng)
            try:
                after = schedule
                for step in steps:
                    after = after.then(step)
            except ScheduleError:
                continue
            if steps:
                return self._known(after)
        return candidate

    def _kept(self, chosen: Chosen, steps: tuple[Step, ...]) -> Candidate:
        """By the rule with chosen tiles, and those of the steps that still apply."""
        try:
            schedule = self.kernel.ruled(self.setting, tuple(chosen.values())).schedule
        except ScheduleError:
            return self.default()
        for step in steps:
            try:
                schedule = schedule.then(step)
            except ScheduleError:
                continue
        return self._known(schedule)

    def _known(self, schedule: Schedule) -> Candidate:
        found = _candidate(schedule.trace)
        self._schedules[found] = schedule
        return found


def _candidate(steps: tuple[Step, ...]) -> Candidate:
    return Candidate.of({"steps": [step_record(step) for step in steps]})


def _varied(steps: tuple[Step, ...], rng: random.Random) -> tuple[Step, ...]:
    place = rng.randrange(len(steps))
    return (*steps[:place], varied_step(steps[place], rng), *steps[place + 1 :])
