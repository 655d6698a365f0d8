"""Command line: random models on targets, each failure made small."""

import argparse
import gc
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path

import onnx

from tests.conformance.backend import Case
from tests.conformance.workers import Outcome, run_cases

from .compare import KEPT, TARGETS, check
from .draw import Sample, draw
from .memories import DRAWN, drawn_config
from .minimise import minimised
from .plans import drawn_plans
from .relations import check_related

RELATED = "same"
"""Marks the cases that compare a model with one that means the same."""


DRAWS = 5
"""Plans that are drawn for a model that is made small."""


class Graphs(Mapping[str, Case]):
    """Cases by seed and target, ``17@cpu`` or ``17same@cpu``; or of one model, by target.

    searched: of so many graphs one runs by the fastest plan; the others by plans drawn at random.
    """

    def __init__(self, searched: int, sample: Sample | None = None) -> None:
        self.searched, self.sample = searched, sample

    def __getitem__(self, name: str) -> Case:
        start, _, target = name.rpartition("@")
        seed = int(start.removesuffix(RELATED))

        def run() -> None:
            sample = self.sample or drawn(seed)
            compiled_for = drawn_config(seed) if target == DRAWN else target
            for number in range(DRAWS if self.sample else 1):
                search = seed % self.searched == 0
                if self.sample:
                    KEPT.clear()
                with nullcontext() if search else drawn_plans(seed + number):
                    if start.endswith(RELATED):
                        check_related(sample, seed, compiled_for)
                    else:
                        check(sample, compiled_for)

        return Case(name, "graph", run, tuple)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


drawn = lru_cache(maxsize=1)(draw)
"""A graph, kept for the other targets."""


def main() -> None:
    """Run graphs, print what differs, crashes or hangs, and what was refused how often."""
    parser = argparse.ArgumentParser(prog="random_models")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first graph's number")
    parser.add_argument("--targets", default=",".join(TARGETS), help="separated by commas")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120, help="seconds a graph may take")
    parser.add_argument(
        "--searched", type=int, default=19, help="of so many graphs one runs by the fastest plan"
    )
    parser.add_argument(
        "--related", type=int, default=3, help="of so many graphs one meets one that means the same"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("build/graphs"), help="for small models"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    done: Counter[tuple[str, str]] = Counter()
    failed: list[Outcome] = []
    start = time.monotonic()

    def note(outcome: Outcome) -> None:
        kind = _kind(outcome)
        start, _, target = outcome.name.rpartition("@")
        compared = "a model that means the same" if start.endswith(RELATED) else "ONNX Runtime"
        done[f"{target}, {compared}", kind] += 1
        if kind not in ("equal", "refused"):
            failed.append(outcome)
            print(f"graph {outcome.name}: {outcome.reason}", flush=True)
        if done.total() % 1000 == 0:
            print(f"{done.total()} of {len(names)} comparisons", flush=True)

    seeds = range(arguments.seed, arguments.seed + arguments.count)
    names = [
        f"{seed}{mark}@{target}"
        for seed in seeds
        for target in arguments.targets.split(",")
        for mark in ("", *([RELATED] if seed % arguments.related == 0 else []))
    ]
    # Objects come and go by millions, nearly all without a circle; no file need outlive the run.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    os.fsync = lambda file: None
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DOVETAIL_CACHE"] = folder
        run_cases(Graphs(arguments.searched), names, arguments.jobs, arguments.limit, note)
        for outcome in failed:
            _make_small(outcome, arguments)
    for (target, kind), count in sorted(done.items()):
        print(f"{target}: {count} {kind}")
    print(f"seeds {seeds.start} to {seeds.stop - 1}; {time.monotonic() - start:.0f} s")
    sys.exit(bool(failed))


def _kind(outcome: Outcome) -> str:
    """Outcome of a case in a word; failures alike have the same."""
    if outcome.reason is None:
        return "equal"
    first = outcome.reason.partition(":")[0]
    if first == "FoundError":
        second = outcome.reason.split(": ")[2]
        return f"{first} {second if second.endswith('Error') else 'bytes'}"
    return "refused" if first == "RefusedError" else first.partition(" of ")[0]


def _make_small(outcome: Outcome, arguments: argparse.Namespace) -> None:
    limit, folder = arguments.limit, arguments.folder
    start, _, target = outcome.name.rpartition("@")

    def fails(sample: Sample) -> bool:
        found: list[Outcome] = []
        run_cases(Graphs(arguments.searched, sample), [outcome.name], 1, limit, found.append)
        return _kind(found[0]) == _kind(outcome)

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{start}-{target.replace(':', '-')}.onnx"
    small = minimised(draw(int(start.removesuffix(RELATED))), fails)
    onnx.save(small.model, path)
    kinds = ", ".join(node.op_type for node in small.model.graph.node)
    print(f"graph {outcome.name} made small: {path}: {kinds}", flush=True)


main()
