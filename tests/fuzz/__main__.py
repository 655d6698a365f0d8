"""Command line of the fuzzer."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter

from tests.conformance.workers import Outcome, run_cases

from .mutate import models
from .run import Mutants
from .tflite_mutants import read_mutant


def main() -> None:
    """Run mutants, print each that crashes, hangs or fails with another error."""
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first mutant's number")
    parser.add_argument("--tflite", type=int, default=10_000, help="damaged .tflite files")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=30, help="seconds a mutant may take")
    arguments = parser.parse_args()
    models()
    done: Counter[bool] = Counter()
    start = time.monotonic()

    def note(outcome: Outcome) -> None:
        done[outcome.reason is None] += 1
        if outcome.reason:
            print(f"mutant {outcome.name}: {outcome.reason}", flush=True)
        if done.total() % 10_000 == 0:
            print(f"{done.total()} of {arguments.mutants}", flush=True)

    wrong = 0
    for seed in range(arguments.seed, arguments.seed + arguments.tflite):
        try:
            read_mutant(seed)
        except Exception as error:  # what is none of the compiler's errors is what is looked for
            wrong += 1
            print(f"file of TensorFlow Lite {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{arguments.tflite} damaged files of TensorFlow Lite, {wrong} wrong", flush=True)
    numbers = range(arguments.seed, arguments.seed + arguments.mutants)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DOVETAIL_CACHE"] = folder
        run_cases(Mutants(1 << 62), map(str, numbers), arguments.jobs, arguments.limit, note)
    print(f"{arguments.mutants} mutants, {done[False]} wrong; {time.monotonic() - start:.0f} s")
    sys.exit(bool(done[False] + wrong))


main()
