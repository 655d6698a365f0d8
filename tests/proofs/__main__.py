"""``python -m tests.proofs``: all proofs, or those named; writes docs/proofs.md after all."""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from .report import write_report
from .run import DEFAULT_SOLVER, Proof, Proved, prove, say
from .table import PROOFS


@click.command()
@click.argument("names", nargs=-1)
@click.option("--jobs", default=2, show_default=True, help="Proofs at a time.")
@click.option("--solver", default=DEFAULT_SOLVER, show_default=True, help="yices or z3.")
@click.option("--report", default="", help="The page to write, if all went well.")
def main(names: tuple[str, ...], jobs: int, solver: str, report: str) -> None:
    """Prove; exit 1 if anything does not hold, or a planted bug is not found."""
    unknown = set(names) - {proof.name for proof in PROOFS}
    if unknown:
        raise click.BadParameter(f"no proof is called {', '.join(sorted(unknown))}")
    chosen = [
        (proof, config)
        for proof in PROOFS
        if not names or proof.name in names
        for config in proof.configs
    ]

    def one(task: tuple[Proof, str]) -> Proved:
        with tempfile.TemporaryDirectory() as folder:
            done = prove(*task, Path(folder), solver)
        say(f"{done.proof.name:24}{done.config:16}{done.seconds:8.1f} s  {_verdict(done)}")
        return done

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(one, chosen))
    failed = [each for each in results if each.problems]
    say(f"{len(results) - len(failed)} of {len(results)} hold, all planted bugs found in them")
    if report and not failed and not names:
        write_report(results, Path(report), solver)
    sys.exit(bool(failed))


def _verdict(done: Proved) -> str:
    return "; ".join(done.problems) if done.problems else "holds"


if __name__ == "__main__":
    main()
