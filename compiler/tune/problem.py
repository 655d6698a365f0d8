"""Protocol of the problems that a search can solve."""

import json
import random
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

__all__ = ["Candidate", "Features", "Job", "Measured", "Problem"]

Features = NDArray[np.float32]


@frozen
class Candidate:
    """One way to do it, as canonical JSON text, so that equal ones are equal."""

    text: str

    @staticmethod
    def of(record: Mapping[str, object]) -> "Candidate":
        """From JSON values."""
        return Candidate(json.dumps(record, sort_keys=True, separators=(",", ":")))

    @property
    def record(self) -> dict[str, object]:
        """As JSON values."""
        found: dict[str, object] = json.loads(self.text)
        return found


@frozen
class Measured:
    """Measurement of a candidate; cost: in the problem's unit, None when it failed.

    baseline: the cost of the default, measured in turn with it.  error: why it failed.
    """

    cost: float | None
    baseline: float | None = None
    error: str = ""

    @property
    def ratio(self) -> float | None:
        """Cost over the default's; below 1 is better."""
        if self.cost is None or not self.baseline:
            return None
        return self.cost / self.baseline


class Job(Protocol):
    """A measurement that can be sent to another process."""

    def run(self) -> Measured:
        """Measure; whatever it raises is a failure of the candidate."""
        ...


class Problem(Protocol):
    """One kernel, or one network's plan, whose cost is to be made small."""

    @property
    def key(self) -> str:
        """The same for the same problem."""
        ...

    @property
    def title(self) -> str:
        """Description, for people."""
        ...

    def default(self) -> Candidate:
        """The default candidate, without a record."""
        ...

    def sample(self, rng: random.Random) -> Candidate:
        """Any candidate."""
        ...

    def mutate(self, candidate: Candidate, rng: random.Random) -> Candidate:
        """One near it."""
        ...

    def cross(self, one: Candidate, other: Candidate, rng: random.Random) -> Candidate:
        """One with parts of both."""
        ...

    def features(self, candidate: Candidate) -> Features | None:
        """Features for the cost model; None for an illegal candidate, which is not measured."""
        ...

    def program(self, candidate: Candidate) -> str:
        """The same for candidates that come to the same; only of those that have features."""
        ...

    def job(self, candidate: Candidate) -> Job:
        """Its measurement."""
        ...
