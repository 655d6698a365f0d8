"""Command line: the samples that ``samples.py`` wrote, compiled where there is no torch."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dovetail.compiler import compile
from dovetail.compiler.front.torch.source import TorchModel
from dovetail.runtime.session import run
from tests.conformance.backend import Case
from tests.conformance.workers import Outcome, run_cases

from .report import write_report


@dataclass(frozen=True)
class Samples(Mapping[str, Case]):
    """Cases by the names of their files."""

    folder: Path

    def __getitem__(self, name: str) -> Case:
        return Case(name, "sample", lambda: check(self.folder, name), tuple)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.stem for path in self.folder.glob("*.npz")))

    def __len__(self) -> int:
        return len(list(self.folder.glob("*.npz")))


def check(folder: Path, name: str) -> None:
    """Compile and run a sample.  Raises what compiling raises, AssertionError for a difference."""
    with np.load(folder / f"{name}.npz") as archive:
        given, wanted = (
            [archive[key] for key in sorted(archive) if key.startswith(kind)]
            for kind in ("input", "output")
        )
    model = TorchModel.of(folder / f"{name}.pt2")
    places = {f"args_{n}": array for n, array in enumerate(given)}
    names = [each.name for each in model.inputs]
    inputs = {each: places.get(each, array) for each, array in zip(names, given, strict=False)}
    found = list(run(compile(model, "cpu"), inputs).outputs.values())
    for own, torchs in zip(found, wanted, strict=False):
        assert own.dtype == torchs.dtype, f"{own.dtype}; torch gives {torchs.dtype}"
        np.testing.assert_allclose(own, torchs, rtol=1e-4, atol=1e-5)


def main() -> None:
    """Run the samples, print counts and the most frequent reasons, write the table."""
    parser = argparse.ArgumentParser(prog="conformance_torch")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60, help="seconds a sample may take")
    parser.add_argument("--match", default="")
    parser.add_argument("--report", type=Path, help="a page whose table is written anew")
    arguments = parser.parse_args()
    samples = Samples(arguments.folder)
    names = [name for name in samples if arguments.match in name]
    outcomes: dict[str, Outcome] = {}

    def note(outcome: Outcome) -> None:
        outcomes[outcome.name] = outcome
        if outcome.reason:
            print(f"{outcome.name}: {outcome.reason[:300]}", flush=True)

    start = time.monotonic()
    run_cases(samples, names, arguments.jobs, arguments.limit, note)
    passed = sum(each.reason is None for each in outcomes.values())
    reasons = Counter(name.split(".float32")[0].split(".int64")[0] for name in outcomes
                      if outcomes[name].reason)  # fmt: skip
    for operator, count in reasons.most_common():
        print(f"{count:5d}  {operator}")
    print(f"{passed} of {len(outcomes)} pass; {time.monotonic() - start:.0f} s")
    if arguments.report:
        write_report(arguments.report, outcomes)
    sys.exit(passed < 0.9 * len(outcomes))


main()
