"""Evolution of candidates, which a learned model ranks before any is measured."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dovetail.isa.frozen import frozen

from .model import CostModel
from .problem import Candidate, Features, Measured, Problem

__all__ = ["RandomSearch", "Search"]

PARENTS = 10
"""Candidates are made from as many of the best so far."""
POOL = 12
"""Candidates that are made for each that is measured."""
POOL_SECONDS = 0.6
"""For making them, for each that is measured."""
ROUNDS = 3
"""In which they are made: each has parents among the most promising of the one before."""
PROMISING = 8
"""Candidates of a round that become parents of the next."""
EXPLORED = 0.1
"""Part of what is measured that is drawn without the model."""
MUTATED, CROSSED = 0.55, 0.15
"""Parts of the candidates; the rest is drawn again."""
TRIES = 8
"""Candidates that are made at most for each that is new."""


@frozen
class _Made:
    """features: what the model knows of it.  program: what it comes to."""

    features: Features
    program: str


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
    """True if the default is the first candidate; else the search does not know it."""
    hurried: bool = True
    """True if making candidates may take no longer than ``POOL_SECONDS``."""
    _waiting: dict[Candidate, _Made] = field(default_factory=dict)
    _programs: set[str] = field(default_factory=set)
    """Programs of the candidates that were proposed or told of."""

    def propose(self, count: int) -> list[Candidate]:
        """Up to ``count`` candidates that were not proposed before; the default comes first.

        No two come to the same program.  None are left when a small space is used up.
        """
        default = self.problem.default()
        known = default in self.results or default in self._waiting
        if self.from_default and not known:
            made = self._looked_at(default)
            assert made is not None, "the default is legal"
            return self._taken({default: made}, [default])
        pool = self._seeds() or self._pool(count)
        found = self._chosen(pool, count)
        return self._taken(pool, found)

    def tell(self, candidate: Candidate, measured: Measured) -> None:
        """Take note of the measurement of a candidate, proposed here or known from before."""
        made = self._waiting.pop(candidate, None)
        if made is None and measured.ratio is not None:
            made = self._looked_at(candidate)
        self.results[candidate] = measured
        if made is not None:
            self._programs.add(made.program)
            if measured.ratio is not None:
                self.model.add(self.problem.key, made.features, measured.ratio)

    def features_of(self, candidate: Candidate) -> Sequence[float]:
        """Features of a candidate that is being measured; empty for others."""
        found = self._waiting.get(candidate)
        return () if found is None else [float(each) for each in found.features]

    def best(self, count: int) -> list[tuple[Candidate, float]]:
        """The ``count`` best candidates and their ratios, best first."""
        found = [(c, m.ratio) for c, m in self.results.items() if m.ratio is not None]
        return sorted(found, key=lambda each: each[1])[:count]

    def _taken(self, pool: dict[Candidate, _Made], found: list[Candidate]) -> list[Candidate]:
        for each in found:
            self._waiting[each] = pool[each]
            self._programs.add(pool[each].program)
        return found

    def _looked_at(self, candidate: Candidate) -> _Made | None:
        features = self.problem.features(candidate)
        return None if features is None else _Made(features, self.problem.program(candidate))

    def _seeds(self) -> dict[Candidate, _Made]:
        found = dict(self._new(iter(self.seeds), set()))
        self.seeds = []
        return found

    def _new(
        self, candidates: Iterator[Candidate], programs: set[str]
    ) -> Iterator[tuple[Candidate, _Made]]:
        """The legal candidates whose programs were not seen before."""
        for candidate in candidates:
            if candidate in self.results or candidate in self._waiting:
                continue
            made = self._looked_at(candidate)
            if made is None or made.program in self._programs | programs:
                continue
            programs.add(made.program)
            yield candidate, made

    def _pool(self, count: int) -> dict[Candidate, _Made]:
        """Candidates made in rounds."""
        pool: dict[Candidate, _Made] = {}
        programs = set[str]()
        until = time.monotonic() + POOL_SECONDS * count
        parents = [candidate for candidate, _ in self.best(PARENTS)]
        for number in range(1, ROUNDS + 1):
            wanted = POOL * count * number // ROUNDS
            tries = (self._made(parents) for _ in range(TRIES * POOL * count // ROUNDS))
            for candidate, made in self._new(tries, programs):
                pool[candidate] = made
                if len(pool) >= wanted or (self.hurried and time.monotonic() > until):
                    break
            promising = self._ranked(pool)[:PROMISING]
            parents = [candidate for candidate, _ in self.best(PARENTS)] + promising
        return pool

    def _made(self, parents: list[Candidate]) -> Candidate:
        kind, rng = self.rng.random(), self.rng
        if not parents or kind > MUTATED + CROSSED:
            return self.problem.sample(rng)
        # The better a parent is, the more children it has.
        parent = parents[min(int(rng.expovariate(3 / len(parents))), len(parents) - 1)]
        if kind < MUTATED or len(parents) == 1:
            return self.problem.mutate(parent, rng)
        return self.problem.cross(parent, rng.choice(parents), rng)

    def _chosen(self, pool: dict[Candidate, _Made], count: int) -> list[Candidate]:
        """The most promising, and some others."""
        found = self._ranked(pool)[:count]
        strangers = [each for each in pool if each not in found]
        for place in range(len(found)):
            if strangers and self.rng.random() < EXPLORED:
                found[place] = strangers.pop(self.rng.randrange(len(strangers)))
        return found

    def _ranked(self, pool: dict[Candidate, _Made]) -> list[Candidate]:
        """Best first, as far as the model can say."""
        candidates = list(pool)
        rows = [made.features for made in pool.values()]
        scores = self.model.predict(self.problem.key, rows) if pool else None
        if scores is None:
            return candidates
        order = sorted(range(len(candidates)), key=lambda number: float(scores[number]))
        return [candidates[number] for number in order]


class RandomSearch(Search):
    """The same without evolution and without a model, to compare with."""

    def _pool(self, count: int) -> dict[Candidate, _Made]:
        pool: dict[Candidate, _Made] = {}
        drawn = (self.problem.sample(self.rng) for _ in range(64 * count))
        for candidate, made in self._new(drawn, set()):
            pool[candidate] = made
            if len(pool) >= count:
                break
        return pool

    def _chosen(self, pool: dict[Candidate, _Made], count: int) -> list[Candidate]:
        return list(pool)[:count]
