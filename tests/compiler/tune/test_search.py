"""Searches on a problem whose costs are known: a grid, on which pairs of places are the same."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from dovetail.compiler.tune.experience import experience_of
from dovetail.compiler.tune.model import CostModel
from dovetail.compiler.tune.problem import Candidate, Features, Job, Measured
from dovetail.compiler.tune.search import RandomSearch, Search

SIZE = 24


@dataclass(frozen=True)
class Grid:
    """Candidates are places ``x, y, z``; z does not matter, and x = 0 is not legal."""

    best: tuple[int, int] = (17, 5)
    key: str = "grid"
    title: str = "grid"

    def cost(self, candidate: Candidate) -> float:
        x, y, _ = self.place(candidate)
        return 1 + abs(x - self.best[0]) + abs(y - self.best[1])

    def place(self, candidate: Candidate) -> tuple[int, int, int]:
        x, y, z = candidate.record["place"]  # type: ignore[misc]
        return x, y, z

    def default(self) -> Candidate:
        return Candidate.of({"place": [1, SIZE - 1, 0]})

    def sample(self, rng: random.Random) -> Candidate:
        place = [rng.randrange(SIZE), rng.randrange(SIZE), rng.randrange(2)]
        return Candidate.of({"place": place})

    def mutate(self, candidate: Candidate, rng: random.Random) -> Candidate:
        place = list(self.place(candidate))
        axis = rng.randrange(2)
        place[axis] = min(max(place[axis] + rng.choice((-2, -1, 1, 2)), 0), SIZE - 1)
        return Candidate.of({"place": place})

    def cross(self, one: Candidate, other: Candidate, rng: random.Random) -> Candidate:
        return Candidate.of({"place": [self.place(one)[0], *self.place(other)[1:]]})

    def features(self, candidate: Candidate) -> Features | None:
        x, y, _ = self.place(candidate)
        return np.array([x, y], np.float32) if x else None

    def program(self, candidate: Candidate) -> str:
        return str(self.place(candidate)[:2])

    def job(self, candidate: Candidate) -> Job:
        raise NotImplementedError


def run(search: Search, trials: int, batch: int = 5) -> list[float]:
    """The costs in the order of trials."""
    found = list[float]()
    while len(found) < trials:
        proposed = search.propose(batch)
        assert proposed
        for candidate in proposed:
            cost = search.problem.cost(candidate)  # type: ignore[attr-defined]
            search.tell(candidate, Measured(cost, 10.0))
            found.append(cost)
    return found


def test_the_default_comes_first_unless_it_is_unknown() -> None:
    problem = Grid()
    first = Search(problem, CostModel(), random.Random(0)).propose(4)
    assert first == [problem.default()]
    assert len(Search(problem, CostModel(), random.Random(0), from_default=False).propose(4)) == 4


@pytest.mark.parametrize("kind", [Search, RandomSearch])
def test_no_program_is_proposed_twice_and_none_that_is_not_legal(kind: type[Search]) -> None:
    problem = Grid()
    search = kind(problem, CostModel(), random.Random(1))
    seen = set()
    for _ in range(30):
        for candidate in search.propose(5):
            program = problem.program(candidate)
            assert program not in seen
            assert problem.features(candidate) is not None
            seen.add(program)
            if len(seen) % 2:
                search.tell(candidate, Measured(problem.cost(candidate), 10.0))
    assert len(seen) > 100


def test_a_failed_candidate_is_not_tried_again_under_another_name() -> None:
    problem = Grid()
    search = Search(problem, CostModel(), random.Random(2), from_default=False)
    (candidate,) = search.propose(1)
    search.tell(candidate, Measured(None, error="planted"))
    programs = [problem.program(each) for _ in range(20) for each in search.propose(5)]
    assert problem.program(candidate) not in programs


def test_seeds_come_after_the_default() -> None:
    problem = Grid()
    search = Search(problem, CostModel(), random.Random(3))
    good = Candidate.of({"place": [*problem.best, 0]})
    again = Candidate.of({"place": [*problem.best, 1]})
    search.seeds = [good, again, Candidate.of({"place": [0, 0, 0]})]
    assert search.propose(4) == [problem.default()]
    search.tell(problem.default(), Measured(10.0, 10.0))
    assert search.propose(4) == [good]


def test_evolution_needs_fewer_trials_than_random_search() -> None:
    needed = dict[type[Search], list[int]]()
    for kind in (Search, RandomSearch):
        for seed in range(3):
            search = kind(Grid(), CostModel(), random.Random(seed), from_default=False)
            costs = run(search, 150)
            place = next((n for n, cost in enumerate(costs) if cost <= 2), len(costs))
            needed.setdefault(kind, []).append(place)
    assert np.median(needed[Search]) < 0.7 * np.median(needed[RandomSearch])


def test_experience_of_other_kernels_helps_from_the_first_trial() -> None:
    rng, kernels = random.Random(4), {}
    for number, scale in enumerate((1.0, 7.0, 0.2)):
        grid = Grid(best=(16 + number, 5))
        places = [grid.sample(rng) for _ in range(150)]
        rows = [(grid.features(each), scale * grid.cost(each)) for each in places]
        kernels[str(number)] = [(row, cost) for row, cost in rows if row is not None]
    model = CostModel(experience_of(kernels))
    costs = run(Search(Grid(), model, random.Random(5), from_default=False), 5)
    blind = run(Search(Grid(), CostModel(), random.Random(5), from_default=False), 5)
    assert np.median(costs) < 0.6 * np.median(blind)
