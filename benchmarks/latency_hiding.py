"""How much of the accelerator's time is hidden latency: whole networks with less and less overlap.

The same network at the four levels of ``dovetail.compiler.options.Overlap``, on the simulator: the
counterpart of the roofline of the TVM paper (OSDI 2018), where hiding latency takes the array from
70 % to 88 % over the convolutions of ResNet-18.  Prints a table; ``--json FILE`` keeps it.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from models import models
from rich.console import Console
from rich.table import Table

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.compiler.options import CompileOptions, Overlap
from dovetail.runtime import run

DEFAULT = ("resnet18", "ic_resnet8", "vww_mbv1", "mobilenet_v2_int8")


@dataclass(frozen=True, slots=True)
class Figures:
    """A network at one level."""

    network: str
    overlap: str
    cycles: int
    utilization: float


def measure(name: str, path: Path, target: str, overlap: Overlap) -> Figures:
    """Compile and run once, on random input."""
    module = compile(path, target=target, options=CompileOptions(overlap=overlap))
    result = run(module, random_inputs(module), device="sim")
    assert result.cycles is not None
    return Figures(name, overlap.value, result.cycles, result.gemm_utilization or 0.0)


@click.command()
@click.argument("networks", nargs=-1)
@click.option("--target", default="vta:zynq7020", show_default=True)
@click.option("--json", "json_file", type=click.Path(path_type=Path))
def main(networks: tuple[str, ...], target: str, json_file: Path | None) -> None:
    """Run NETWORKS (the usual ones, if none is named) with each level of overlap."""
    known = models()
    chosen = networks or tuple(name for name in DEFAULT if name in known)
    table = Table("network", "overlap", "cycles", "utilisation", "of no overlap")
    found = []
    for name in chosen:
        path = known[name].path()
        alone = None
        for overlap in Overlap:
            figures = measure(name, path, target, overlap)
            found.append(figures)
            alone = alone or figures.cycles
            share = f"{figures.cycles / alone:.1%}"
            table.add_row(
                name, overlap.value, f"{figures.cycles:,}", f"{figures.utilization:.1%}", share
            )
    Console().print(table)
    if json_file:
        json_file.write_text(json.dumps([asdict(each) for each in found], indent=2) + "\n")


if __name__ == "__main__":
    main()
