"""An exploration from end to end: what is known is taken, the rest evaluated and kept."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.isa.frozen import frozen

from ..errors import ExploreError, SpaceError
from ..processes.folder_lock import locked
from .area import load_area_model
from .area_cache import counted_here
from .clock import load_clock_model
from .evaluate import Failure, ModelFile, Performance, Task, program_hash, read_model
from .figures import DesignResult, Models, evaluated
from .known import KnownResults
from .pools import ClusterPool, LocalPool, Pool
from .search import Everything, Search, Strategy
from .space import Design, Space, load_space
from .store import ResultFile, result_key

__all__ = ["Exploration", "Options", "Progress", "explore"]

RESULTS = "results.sqlite"


@frozen
class Options:
    """workers: processes.  scheduler: address of a Dask cluster to use in their place.

    budget: designs to try, at most; a larger space is searched.  family: that the search is for.
    seed: of the search.  cache: whether to take and keep results in the user's cache.
    """

    workers: int = 2
    scheduler: str | None = None
    budget: int = 5000
    family: str = "Xilinx 7"
    seed: int = 0
    cache: bool = True


@dataclass(slots=True)
class Progress:
    """State of an exploration; one evaluation is one model on one design.

    total: evaluations there will be, as far as that is known.  found: those that were known before.
    failed: those that have an error as result.
    """

    total: int
    done: int = 0
    found: int = 0
    failed: int = 0


@frozen
class Exploration:
    """Result of exploring a space for given models.

    searched: the space is larger than the budget, and was searched.  notes: what did not go as
    asked for.
    """

    space: Space
    models: tuple[str, ...]
    results: tuple[DesignResult, ...]
    basis: Models
    progress: Progress
    searched: bool
    notes: tuple[str, ...] = ()


def explore(
    models: Sequence[Path],
    space: Path | Space,
    folder: Path,
    options: Options | None = None,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Exploration:
    """Evaluate each design of ``space`` (as many as ``options`` allow) with each model.

    Results are kept in ``folder`` one by one; those that are there, from the same models and space,
    are not computed again.  A design on which a model cannot be compiled has its error as result.

    Raises SpaceError, ModelError and UnsupportedOperatorError for what is wrong from the beginning;
    ExploreError when ``folder`` cannot be used, is full, or holds something else.
    """
    options = options or Options()
    space = load_space(space) if isinstance(space, Path) else space
    files = _read_models(models)
    areas = load_area_model(counted_here())
    if options.family not in areas:
        raise SpaceError(f"family {options.family!r}; there are: {', '.join(areas)}")
    searched = space.size > options.budget
    strategy: Strategy = Everything(space)
    if searched:
        strategy = Search(space, options.budget, options.family, options.seed)
    basis = Models(areas, {name: load_clock_model(name) for name in areas})
    expected = options.budget if searched else sum(1 for _ in space.designs())
    progress = Progress(expected * len(files))
    with locked(folder, "exploration", ExploreError):
        known = KnownResults(ResultFile(folder / RESULTS), options.cache)
        try:
            known.require_same(_about(space, files), folder)
            work = _Work(strategy, files, basis, known, progress)
            observe(progress)
            for task, outcome in _pool(options).run(work.tasks()):
                work.take(task, outcome)
                observe(progress)
        finally:
            known.close()
    names = tuple(each.name for each in files)
    notes = tuple(known.notes)
    return Exploration(space, names, tuple(work.results), basis, progress, searched, notes)


def _read_models(paths: Sequence[Path]) -> tuple[ModelFile, ...]:
    files = tuple(read_model(path) for path in paths)
    names = [each.name for each in files]
    if not files or len(set(names)) < len(names):
        raise SpaceError(f"models {', '.join(names) or 'none'}; required one or more, named apart")
    return files


def _about(space: Space, files: Sequence[ModelFile]) -> dict[str, str]:
    """Space and models of a folder's results."""
    models = ", ".join(f"{each.name} {each.digest[:16]}" for each in files)
    return {"space": space.text, "models": models, "compiler": program_hash()}


def _pool(options: Options) -> Pool:
    if options.scheduler:
        return ClusterPool(options.scheduler)
    return LocalPool(options.workers)


@dataclass
class _Work:
    """Designs on their way: some of their models may be done and others not."""

    strategy: Strategy
    files: tuple[ModelFile, ...]
    basis: Models
    known: KnownResults
    progress: Progress
    results: list[DesignResult] = field(default_factory=list)
    _open: dict[Design, dict[str, Performance | Failure]] = field(default_factory=dict)
    _program: str = field(default_factory=program_hash)

    def tasks(self) -> Iterator[Task]:
        """Evaluations to compute; known results are taken on the way."""
        for design in self.strategy.designs():
            self._open[design] = {}
            missing = []
            for file in self.files:
                task = Task(design, file)
                outcome = self.known.find(result_key(task, self._program))
                if outcome is None:
                    missing.append(task)
                else:
                    self.progress.found += 1
                    self._count(task, outcome)
            yield from missing

    def take(self, task: Task, outcome: Performance | Failure) -> None:
        """Keep what came of a task."""
        self.known.put(result_key(task, self._program), outcome)
        self._count(task, outcome)

    def _count(self, task: Task, outcome: Performance | Failure) -> None:
        self.progress.done += 1
        self.progress.failed += isinstance(outcome, Failure)
        outcomes = self._open[task.design]
        outcomes[task.model.name] = outcome
        if len(outcomes) == len(self.files):
            del self._open[task.design]
            ordered = {file.name: outcomes[file.name] for file in self.files}
            result = evaluated(task.design, ordered, self.basis)
            self.results.append(result)
            self.strategy.tell(result)
