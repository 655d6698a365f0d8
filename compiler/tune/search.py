"""Evolution of candidates, which a learned model ranks before any is measured."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from .model import CostModel
from .problem import Candidate, Features, Measured, Problem

__all__ = ["RandomSearch", "Search"]

PARENTS = 12
"""Of the best so far, that candidates come from."""
POOL = 10
"""Candidates that are made for each that is measured."""
POOL_SECONDS = 0.5
"""For making them, for each that is measured."""
EXPLORED = 0.15
"""Part of what is measured that is drawn without the model."""
BLIND = 12
"""Candidates that are drawn before any is changed, where no good one is known."""
MUTATED, CROSSED = 0.5, 0.15
"""Parts of the candidates; the rest is drawn anew."""


@dataclass(slots=True)
class Search:
    """The state of one problem's search; ``model`` may be shared by several."""

    problem: Problem
    model: CostModel
    rng: random.Random
    results: dict[Candidate, Measured] = field(default_factory=dict)
    seeds: list[Candidate] = field(default_factory=list)
    """Good ones of before, which another compiler measured: they come after the default."""
    from_default: bool = True
    """Whether the default is the first candidate; else it is unknown to the search."""
    _waiting: dict[Candidate, Features] = field(default_factory=dict)

    def propose(self, count: int) -> list[Candidate]:
        """Up to ``count`` candidates that were not proposed before; the default comes first.

        None are left when a small space is used up.
        """
        default = self.problem.default()
        known = default in self.results or default in self._waiting
        if self.from_default and not known:
            features = self.problem.features(default)
            assert features is not None, "the default is legal"
            self._waiting[default] = features
            return [default]
        pool = self._seeds() or self._pool(count)
        found = self._ranked(pool)[:count]
        strangers = [each for each in pool if each not in found]
        for place in range(len(found)):
            if strangers and self.rng.random() < EXPLORED:
                found[place] = strangers.pop(self.rng.randrange(len(strangers)))
        self._waiting |= {each: pool[each] for each in found}
        return found

    def tell(self, candidate: Candidate, measured: Measured) -> None:
        """What came of a candidate, proposed here or known from before."""
        features = self._waiting.pop(candidate, None)
        if features is None and measured.ratio is not None:
            features = self.problem.features(candidate)
        self.results[candidate] = measured
        if features is not None and measured.ratio is not None:
            self.model.add(features, measured.ratio)

    def features_of(self, candidate: Candidate) -> Sequence[float]:
        """Of one that was proposed and is being measured; none of others."""
        found = self._waiting.get(candidate)
        return () if found is None else [float(each) for each in found]

    def best(self, count: int = 1) -> list[tuple[Candidate, float]]:
        """The best candidates and their ratios, best first."""
        found = [(c, m.ratio) for c, m in self.results.items() if m.ratio is not None]
        return sorted(found, key=lambda each: each[1])[:count]

    def _seeds(self) -> dict[Candidate, Features]:
        found: dict[Candidate, Features] = {}
        for candidate in self.seeds:
            features = self.problem.features(candidate)
            if features is not None and candidate not in self.results:
                found[candidate] = features
        self.seeds = []
        return found

    def _pool(self, count: int) -> dict[Candidate, Features]:
        parents = [candidate for candidate, _ in self.best(PARENTS)]
        pool: dict[Candidate, Features] = {}
        until = time.monotonic() + POOL_SECONDS * count
        for _ in range(8 * POOL * count):
            if len(pool) >= POOL * count or (pool and time.monotonic() > until):
                break
            candidate = self._made(parents)
            if candidate in self.results or candidate in self._waiting or candidate in pool:
                continue
            features = self.problem.features(candidate)
            if features is not None:
                pool[candidate] = features
        return pool

    def _made(self, parents: list[Candidate]) -> Candidate:
        kind, rng = self.rng.random(), self.rng
        blind = not self.from_default and len(self.results) < BLIND
        if not parents or blind or kind > MUTATED + CROSSED:
            return self.problem.sample(rng)
        # The better a parent is, the more children it has.
        parent = parents[min(int(rng.expovariate(3 / len(parents))), len(parents) - 1)]
        if kind < MUTATED or len(parents) == 1:
            return self.problem.mutate(parent, rng)
        return self.problem.cross(parent, rng.choice(parents), rng)

    def _ranked(self, pool: dict[Candidate, Features]) -> list[Candidate]:
        candidates = list(pool)
        scores = self.model.predict(list(pool.values())) if pool else None
        if scores is None:
            return candidates
        order = sorted(range(len(candidates)), key=lambda number: float(scores[number]))
        return [candidates[number] for number in order]


class RandomSearch(Search):
    """The same without evolution and without a model, to compare with."""

    def _pool(self, count: int) -> dict[Candidate, Features]:
        pool: dict[Candidate, Features] = {}
        for _ in range(64 * count):
            if len(pool) >= count:
                break
            candidate = self.problem.sample(self.rng)
            if candidate not in self.results and candidate not in pool:
                features = self.problem.features(candidate)
                if features is not None:
                    pool[candidate] = features
        return pool

    def _ranked(self, pool: dict[Candidate, Features]) -> list[Candidate]:
        return list(pool)
