"""Costs of candidates, each program measured once and kept in a file; searches look them up.

    python benchmarks/tuning_values.py < JOBS

measures jobs, one after the other, and prints a JSON object for each.
"""

import json
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dovetail.compiler.tune.kernel_job import KernelJob
from dovetail.compiler.tune.kernel_space import KernelProblem
from dovetail.compiler.tune.problem import Candidate, Measured

__all__ = ["Value", "Values"]

AT_A_TIME = 300
"""Programs that one process measures."""


@dataclass(frozen=True, slots=True)
class Value:
    """A program of the kernel ``key``, one of the candidates that come to it, and its cost.

    features: none where it is not legal.
    """

    key: str
    title: str
    program: str
    candidate: dict[str, Any]
    features: tuple[float, ...]
    cost: float | None
    baseline: float | None
    error: str

    @property
    def measured(self) -> Measured:
        """The result."""
        return Measured(self.cost, self.baseline, self.error)


@dataclass(slots=True)
class Values:
    """Known costs, by kernel and program.

    file: where they are kept.  wrapper: a command that the measuring process is run by.
    """

    file: Path
    wrapper: Sequence[str] = ()
    known: dict[tuple[str, str], Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file.exists():
            for line in self.file.read_text(encoding="utf-8").splitlines():
                self._add(Value(**json.loads(line)))

    def _add(self, value: Value) -> None:
        self.known[value.key, value.program] = value

    def of(self, problem: KernelProblem, candidate: Candidate) -> Measured | None:
        """None of what was not measured yet."""
        found = self.known.get((problem.key, problem.program(candidate)))
        return None if found is None else found.measured

    def measure(self, wanted: Iterable[tuple[KernelProblem, Candidate]]) -> None:
        """Measure what is not known: all is compiled first, by this process."""
        programs = {
            (problem.key, problem.program(candidate)): (problem, candidate)
            for problem, candidate in wanted
        }
        names = [name for name in programs if name not in self.known]
        with tempfile.TemporaryDirectory() as cache:
            jobs: dict[tuple[str, str], KernelJob] = {}
            for name in sorted(names):
                problem, candidate = programs[name]
                job = replace(problem.job(candidate), cache=Path(cache))
                try:
                    job.compile()
                except Exception as error:
                    failed = Measured(None, error=f"{type(error).__name__}: {error}")
                    self._keep(*programs[name], failed)
                else:
                    jobs[name] = job
            while jobs:
                now = list(jobs)[:AT_A_TIME]
                for name, measured in zip(
                    now, self._measured([jobs[n] for n in now]), strict=False
                ):
                    self._keep(*programs[name], measured)
                    del jobs[name]

    def _measured(self, jobs: Sequence[KernelJob]) -> list[Measured]:
        """Measurements of the first jobs: as many as it got to, at least one."""
        done = subprocess.run(
            [*self.wrapper, sys.executable, __file__],
            input=pickle.dumps(jobs),
            stdout=subprocess.PIPE,
            check=False,
        )
        found = [Measured(**json.loads(line)) for line in done.stdout.splitlines()]
        if done.returncode and len(found) < len(jobs):
            found.append(Measured(None, error=f"the process ended with {done.returncode}"))
        return found

    def _keep(self, problem: KernelProblem, candidate: Candidate, measured: Measured) -> None:
        features = problem.features(candidate)
        value = Value(
            problem.key,
            problem.title,
            problem.program(candidate),
            candidate.record,
            () if features is None else tuple(round(float(each), 3) for each in features),
            measured.cost,
            measured.baseline,
            measured.error,
        )
        self._add(value)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(value), separators=(",", ":")) + "\n")


def main() -> None:
    """See above."""
    jobs: list[KernelJob] = pickle.load(sys.stdin.buffer)
    for job in jobs:
        try:
            found = job.run()
        except Exception as error:
            found = Measured(None, error=f"{type(error).__name__}: {error}")
        values = {"cost": found.cost, "baseline": found.baseline, "error": found.error}
        print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main()
