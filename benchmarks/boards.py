"""MLPerf Tiny on the boards: inferences a second of the accelerator, beside published FPGA entries.

Cycles are the simulator's, which the gateware takes too; the clock is the board's.  Sending the
image and reading the answer over the board's serial line is not in it.  Prints a table, and with
``--json FILE`` writes the figures.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from models import models
from rich.console import Console
from rich.table import Table

from dovetail.bitstreams.boards import BOARDS, ZYNQ_BOARDS
from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.isa.errors import DovetailError
from dovetail.runtime import run

NETWORKS = ("ic_resnet8", "vww_mbv1", "kws_dscnn", "ad01")

PUBLISHED = {
    "ic_resnet8": (
        ("fpgaConvNet, Zynq-7020, 211 DSP", 2431.0),
        ("fpgaConvNet, Zynq-7010", 317.0),
        ("hls4ml, PYNQ-Z2", 131.0),
    ),
    "vww_mbv1": (("fpgaConvNet, Zynq-7020", 105.0),),
    "kws_dscnn": (("fpgaConvNet, Zynq-7020", 3088.0), ("fpgaConvNet, Zynq-7010", 465.0)),
}
"""Inferences a second.  Source: MLPerf Tiny results, open and closed divisions, IC, VWW and KWS."""

FILE_WIDTH = 120
"""Columns when standard output is no terminal."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One network on one board; ``error`` says why there is none."""

    network: str
    board: str
    config: str
    clock_hz: int
    cycles: int = 0
    utilization: float = 0.0
    error: str = ""

    @property
    def inferences(self) -> float:
        """A second, one after the other."""
        return self.clock_hz / self.cycles if self.cycles else 0.0


def measure(network: str, path: Path) -> list[Figure]:
    """The network on every board, once for each configuration."""
    found: dict[str, Figure] = {}
    for board in (*BOARDS.values(), *ZYNQ_BOARDS.values()):
        config = board.config
        if config.name in found:
            continue
        about = (network, board.name, config.name, config.clock_hz)
        try:
            module = compile(path, f"vta:{config.name}")
            result = run(module, random_inputs(module), device="sim")
        except DovetailError as error:
            found[config.name] = Figure(*about, error=str(error))
            continue
        found[config.name] = Figure(*about, result.cycles or 0, result.gemm_utilization or 0.0)
    return list(found.values())


def table(figures: list[Figure]) -> Table:
    """Our boards, and beneath them what others published, network by network."""
    made = Table(title="MLPerf Tiny, int8")
    for heading in ("network", "on", "MHz", "cycles", "utilisation", "inferences/s"):
        made.add_column(heading, justify="left" if heading in ("network", "on") else "right")
    for network in NETWORKS:
        for each in figures:
            if each.network != network or each.error:
                continue
            made.add_row(
                network,
                f"{each.board} ({each.config})",
                f"{each.clock_hz / 1e6:g}",
                f"{each.cycles:,}",
                f"{each.utilization:.1%}",
                f"{each.inferences:,.0f}",
            )
        for who, inferences in PUBLISHED.get(network, ()):
            made.add_row(network, who, "", "", "", f"{inferences:,.0f}")
        made.add_section()
    return made


@click.command()
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here."
)
def main(json_path: Path | None) -> None:
    """Measure all boards."""
    console, known = Console(width=None if sys.stdout.isatty() else FILE_WIDTH), models()
    missing = [name for name in NETWORKS if name not in known]
    if missing:
        raise click.UsageError(f"{', '.join(missing)}: not in ../shared/models/mlperf_tiny")
    figures: list[Figure] = []
    for name in NETWORKS:
        with console.status(f"running {name}"):
            figures += measure(name, known[name].path())
    console.print(table(figures))
    for each in figures:
        if each.error:
            console.print(f"{each.network} on {each.board}: {each.error}")
    if json_path:
        rows = [asdict(each) | {"inferences_per_second": each.inferences} for each in figures]
        json_path.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
