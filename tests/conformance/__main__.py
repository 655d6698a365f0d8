"""Command line of the conformance run."""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from .backend import TARGETS, cases, choose_target
from .report import write_report
from .workers import MEMORY_BYTES, Outcome, run_cases

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Run the cases, print counts and the most frequent reasons, write the report."""
    parser = argparse.ArgumentParser(prog="conformance")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60, help="seconds a case may take")
    parser.add_argument("--match", default="", help="only cases whose name holds one of these, |")
    parser.add_argument("--report", type=Path, help="write the whole result here")
    parser.add_argument("--json", type=Path, help="write reasons by case here")
    parser.add_argument("--again", type=Path, help="only what failed in this JSON file")
    parser.add_argument("--target", choices=TARGETS, default="cpu")
    arguments = parser.parse_args()
    choose_target(arguments.target)

    known = cases(ROOT / "build" / "conformance")
    parts = arguments.match.split("|")
    names = [name for name in known if any(part in name for part in parts)]
    if arguments.again:
        before = json.loads(arguments.again.read_text())
        names = [name for name in names if before.get(name, "") is not None]
    outcomes: dict[str, Outcome] = {}

    def note(outcome: Outcome) -> None:
        outcomes[outcome.name] = outcome
        if len(outcomes) % 200 == 0:
            print(f"{len(outcomes)} of {len(names)}", flush=True)

    start = time.monotonic()
    # CUDA reserves addresses for all memories that there are.
    memory = None if arguments.target == "cuda" else MEMORY_BYTES
    run_cases(known, names, arguments.jobs, arguments.limit, note, memory)
    failed = {name: each for name, each in sorted(outcomes.items()) if each.reason}
    reasons = Counter(_kind(str(each.reason)) for each in failed.values())
    for reason, count in reasons.most_common(60):
        print(f"{count:5d}  {reason}")
    if len(failed) <= 40:
        for name, each in failed.items():
            print(f"{name}: {each.reason}")
    passed = len(outcomes) - len(failed)
    computed = sum(each.reason is None and each.kernels > 0 for each in outcomes.values())
    print(
        f"{passed} of {len(outcomes)} pass, {computed} of them by kernels of the target "
        f"{arguments.target}; {time.monotonic() - start:.0f} s"
    )
    if arguments.json:
        result = {name: each.reason for name, each in sorted(outcomes.items())}
        arguments.json.write_text(json.dumps(result, indent=0))
    if arguments.report:
        write_report(arguments.report, known, outcomes)
    sys.exit(0)


def _kind(reason: str) -> str:
    """The reason without names, so that equal ones are counted together."""
    words = [word for word in reason.split() if "'" not in word]
    return " ".join(words)[:150]


main()
