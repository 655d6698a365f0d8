"""``python -m tests.isa.manual --count 100000 --seed 1``."""

import sys

import click
from rich.console import Console
from rich.table import Table

from dovetail.isa.configs import CONFIGS
from tests.differential.configs import VARIANTS

from .compare import compare, sizes_of


@click.command()
@click.option("--count", default=100_000, show_default=True, help="Instructions, at least.")
@click.option("--seed", default=1, show_default=True)
def main(count: int, seed: int) -> None:
    """Run random programs on the interpreter of the manual and on the semantics.

    All configurations have the same share; exits 1 when they differ anywhere.
    """
    configs = [*CONFIGS.values(), *VARIANTS.values()]
    table = Table(title=f"docs/isa.md read anew = isa/semantics.py, seed {seed}")
    for heading in ("configuration", "programs", "instructions", "words judged", "differences"):
        table.add_column(heading, justify="right" if heading != "configuration" else "left")
    totals, failures = [0, 0, 0], []
    for config in configs:
        number = instructions = words = 0
        sizes, wrong = sizes_of(config), []
        while instructions * len(configs) < count:
            done = compare(config, sizes, seed, number)
            wrong += [f"{config.name}, program {number}: {each}" for each in done.differences]
            number += 1
            instructions += done.instructions
            words += done.words
        table.add_row(config.name, *map(str, (number, instructions, words, len(wrong))))
        totals = [a + b for a, b in zip(totals, (number, instructions, words), strict=True)]
        failures += wrong
    table.add_row("all", *map(str, (*totals, len(failures))))
    console = Console()
    console.print(table)
    for line in failures[:10]:
        console.print(line)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
