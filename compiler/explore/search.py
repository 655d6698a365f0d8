"""Choice of the designs to try: all of a space, or those that a search asks for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from .figures import DesignResult
from .space import Design, Space

if TYPE_CHECKING:
    import optuna

__all__ = ["Everything", "Search", "Strategy"]


class Strategy(Protocol):
    """Chooses designs; none twice."""

    def designs(self) -> Iterator[Design]:
        """One design after the other, each when it is wanted."""
        ...

    def tell(self, result: DesignResult) -> None:
        """Take note of the result of a chosen design."""
        ...


class Everything:
    """All designs of a space."""

    def __init__(self, space: Space) -> None:
        self._space = space

    def designs(self) -> Iterator[Design]:
        return self._space.designs()

    def tell(self, result: DesignResult) -> None:
        pass


class Search:
    """``budget`` designs, chosen by Optuna's NSGA-II for latency, area and energy in one family.

    A design that fails, or is not a configuration, counts as infeasible.  Results told in another
    order, as they are with several workers, lead to other designs; results that are known lead to
    the same ones.
    """

    TRIES = 50
    """Combinations asked for, at most, for each design of the budget."""

    def __init__(self, space: Space, budget: int, family: str, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space, self._budget, self._family = space, budget, family
        self._infeasible = optuna.trial.TrialState.FAIL
        sampler = optuna.samplers.NSGAIISampler(
            population_size=max(10, min(50, budget // 4)), seed=seed
        )
        self._study = optuna.create_study(directions=["minimize"] * 3, sampler=sampler)
        self._trials: dict[Design, list[optuna.Trial]] = {}
        self._results: dict[Design, DesignResult] = {}

    def designs(self) -> Iterator[Design]:
        left = self._budget * self.TRIES
        while len(self._trials) < self._budget and left:
            left -= 1
            trial = self._study.ask()
            chosen = tuple(
                axis.values[trial.suggest_int(axis.name, 0, len(axis.values) - 1)]
                for axis in self._space.axes
            )
            design = self._space.design(chosen)
            if isinstance(design, str):
                self._study.tell(trial, state=self._infeasible)
            elif design not in self._trials:
                self._trials[design] = [trial]
                yield design
            elif design in self._results:
                self._tell(trial, self._results[design])
            else:
                self._trials[design].append(trial)

    def tell(self, result: DesignResult) -> None:
        self._results[result.design] = result
        for trial in self._trials[result.design]:
            self._tell(trial, result)

    def _tell(self, trial: "optuna.Trial", result: DesignResult) -> None:
        if result.complete:
            self._study.tell(trial, list(result.objectives(self._family)))
        else:
            self._study.tell(trial, state=self._infeasible)
