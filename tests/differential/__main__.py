"""``python -m tests.differential --config tiny --programs 200 --seed 1``."""

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from dovetail.isa.assembly import disassemble
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import CONFIGS
from dovetail.isa.registers import ErrorCode
from tests.differential.compare import BACKENDS, Difference, compare
from tests.differential.configs import VARIANTS, differential_config
from tests.differential.coverage import Coverage
from tests.differential.faults import with_fault
from tests.differential.generate import Case, generate
from tests.differential.minimise import minimise

BATCH = 25
FAULT_EVERY = 5
"""One program in so many runs again, with a fault."""


@dataclass(slots=True)
class Totals:
    """Counts of programs that ran, and of those that differed."""

    programs: int = 0
    instructions: int = 0
    differences: list[int] = field(default_factory=lambda: [0, 0, 0])
    stops: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Case, Difference]] = field(default_factory=list)

    def add(self, case: Case, found: Difference) -> None:
        """Count one program."""
        self.programs += 1
        self.instructions += len(case.instructions)
        counts = (found.bytes_wrong, found.cycles_wrong, found.counters_wrong)
        self.differences = [a + b for a, b in zip(self.differences, counts, strict=True)]
        if found.error_code:
            self.stops[ErrorCode(found.error_code).name] += 1
        if found:
            self.failures.append((case, found))


def _cases(hardware: HardwareConfig, seed: int, numbers: range, backends: list[str]) -> list[Case]:
    cases = [generate(hardware, seed, number) for number in numbers]
    if {"sim", "rtl"} <= set(backends):
        cases += [
            with_fault(case, seed, number // FAULT_EVERY)
            for case, number in zip(cases, numbers, strict=True)
            if number % FAULT_EVERY == 0
        ]
    return cases


def _print(totals: Totals, title: str) -> None:
    table = Table(title=title)
    for heading in (
        *("programs", "instructions", "stopped", "byte differences", "cycle differences"),
        "counter differences",
    ):
        table.add_column(heading, justify="right")
    stopped = sum(totals.stops.values())
    counts = (totals.programs, totals.instructions, stopped, *totals.differences)
    table.add_row(*map(str, counts))
    console = Console()
    console.print(table)
    if stopped:
        causes = ", ".join(f"{name} {count}" for name, count in sorted(totals.stops.items()))
        console.print(f"stopped, alike on all: {causes}" if not totals.failures else causes)


def _print_coverage(coverage: Coverage) -> None:
    """How many goals of each group were reached, and which never."""
    table = Table(title="reached")
    for heading in ("group", "goals", "reached", "never"):
        table.add_column(heading, justify="left" if heading in ("group", "never") else "right")
    groups: dict[str, list[tuple[str, int]]] = {}
    for (group, thing, name), count in coverage.reached().items():
        groups.setdefault(group, []).append((f"{thing} {name}", count))
    for group, found in groups.items():
        never = [name for name, count in found if not count]
        table.add_row(group, str(len(found)), str(len(found) - len(never)), ", ".join(never))
    Console().print(table)


@click.command()
@click.option(
    "--config",
    default="tiny",
    show_default=True,
    help=f"One of {', '.join((*CONFIGS, *VARIANTS))}, or FILE.toml.",
)
@click.option("--programs", default=200, show_default=True, help="Sound programs.")
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--backends",
    default=",".join(BACKENDS),
    show_default=True,
    help="Those to compare, at least two.",
)
@click.option(
    "--reached",
    type=click.Path(path_type=Path),
    help="Write as JSON how often each class of values, each pair and each hazard was reached.",
)
def main(config: str, programs: int, seed: int, backends: str, reached: Path | None) -> None:
    """Run random programs on semantics, simulator and RTL; exit 1 when they differ anywhere.

    Every fifth program runs again with a fault, which must stop simulator and RTL alike.
    """
    chosen = backends.split(",")
    if len(chosen) < 2 or not set(chosen) <= set(BACKENDS):
        raise click.BadParameter(f"{backends!r}; required two or more of {','.join(BACKENDS)}")
    hardware = differential_config(config)
    console = Console(stderr=True)
    totals, coverage = Totals(), Coverage(hardware)
    batches = range(0, programs, BATCH)
    for start in track(batches, description=f"{config}, seed {seed}", console=console):
        numbers = range(start, min(programs, start + BATCH))
        cases = _cases(hardware, seed, numbers, chosen)
        for case, found in zip(cases, compare(cases, chosen, coverage.add), strict=True):
            totals.add(case, found)
    _print(totals, f"{' = '.join(chosen)}, {config}, seed {seed}")
    if "sim" in chosen:
        _print_coverage(coverage)
        if reached:
            rows = [[*goal, count] for goal, count in coverage.reached().items()]
            reached.write_text(json.dumps(rows, indent=0) + "\n")
    if totals.failures:
        case, found = totals.failures[0]
        console.print(f"{len(totals.failures)} programs differ; the first: {found.first}")
        console.print("looking for the smallest part of it that differs")
        small = minimise(case, chosen)
        (found,) = compare([small], chosen)
        console.print(f"{found.first}; {small.timing}; watchdog {small.watchdog}")
        console.print(f"window {small.window[0]:#x} to {small.window[1]:#x}")
        for index, word in small.damage.items():
            console.print(f"instruction {index} is in DRAM as {word[::-1].hex()}")
        click.echo(disassemble(small.instructions), nl=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
