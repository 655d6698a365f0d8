"""Command line of the fuzzer."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.conformance.workers import Outcome, run_cases

from .mutate import models
from .run import FRONTS, Mutants, runner


def main() -> None:
    """Run mutants, print each that crashes, hangs or fails with another error."""
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first mutant's number")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=30, help="seconds a mutant may take")
    parser.add_argument("--front", choices=FRONTS, default="onnx", help="whose files are damaged")
    parser.add_argument("--files", type=Path, help="a folder of more .pt2 files to damage")
    arguments = parser.parse_args()
    if arguments.front == "onnx":
        models()
    done: Counter[bool] = Counter()
    start = time.monotonic()

    def note(outcome: Outcome) -> None:
        done[outcome.reason is None] += 1
        if outcome.reason:
            print(f"mutant {outcome.name}: {outcome.reason}", flush=True)
        if done.total() % 10_000 == 0:
            print(f"{done.total()} of {arguments.mutants}", flush=True)

    files = sorted(arguments.files.glob("*.pt2")) if arguments.files else []
    numbers = range(arguments.seed, arguments.seed + arguments.mutants)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DOVETAIL_CACHE"] = folder
        mutants = Mutants(1 << 62, runner(arguments.front, files))
        run_cases(mutants, map(str, numbers), arguments.jobs, arguments.limit, note)
    print(f"{arguments.mutants} mutants, {done[False]} wrong; {time.monotonic() - start:.0f} s")
    sys.exit(bool(done[False]))


main()
