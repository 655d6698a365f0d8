"""``python -m tests.differential --config tiny --programs 200 --seed 1``."""

import sys

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from dovetail.isa.assembly import disassemble
from dovetail.isa.configs import find_config
from tests.differential.compare import Difference, compare
from tests.differential.generate import Case, generate
from tests.differential.minimise import minimise

BATCH = 25


@click.command()
@click.option("--config", default="tiny", show_default=True)
@click.option("--programs", default=200, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(config: str, programs: int, seed: int) -> None:
    """Run random programs on semantics, simulator and RTL; exit 1 when they differ anywhere."""
    hardware = find_config(config)
    console = Console(stderr=True)
    instructions = 0
    failures: list[tuple[Case, Difference]] = []
    total = [0, 0, 0]
    batches = range(0, programs, BATCH)
    for start in track(batches, description=f"{config}, seed {seed}", console=console):
        cases = [generate(hardware, seed, n) for n in range(start, min(programs, start + BATCH))]
        instructions += sum(len(case.instructions) for case in cases)
        for case, found in zip(cases, compare(cases), strict=True):
            counts = (found.bytes_wrong, found.cycles_wrong, found.counters_wrong)
            total = [a + b for a, b in zip(total, counts, strict=True)]
            if found:
                failures.append((case, found))
    table = Table(title=f"semantics = simulator = RTL, {config}, seed {seed}")
    for heading in (
        *("programs", "instructions", "byte differences", "cycle differences"),
        "counter differences",
    ):
        table.add_column(heading, justify="right")
    table.add_row(*map(str, (programs, instructions, *total)))
    Console().print(table)
    if failures:
        case, found = failures[0]
        console.print(f"{len(failures)} programs differ; the first: {found.first}")
        console.print("looking for the smallest part of it that differs")
        small = minimise(case)
        (found,) = compare([small])
        console.print(f"{found.first}; {small.timing}")
        click.echo(disassemble(small.instructions), nl=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
