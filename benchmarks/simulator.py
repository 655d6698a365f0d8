"""The simulator beside the Verilated RTL: the same programs, side by side, in one run.

Prints a table, and with ``--json FILE`` writes the figures.  Times are wall times of the run alone,
medians where a run is repeated; what it takes to build the Verilated model, and to compile the
simulator's machine code, is measured once, in an empty cache, and shown beside.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from layer import convolution_launch
from models import models
from rich.console import Console
from rich.table import Table

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.configs import find_config
from dovetail.isa.launch import Launch
from dovetail.runtime.accelerator.device import prepare_launch
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.devices import open_launcher
from dovetail.vta_hw.build import build_harness
from dovetail.vta_sim.timing import time_program

CONFIG = find_config("zynq7020")
LAYER = "conv 3x3, 56x56x64"
NETWORKS = ("ic_resnet8", "kws_dscnn", "vww_mbv1", "mobilenet_v2_int8", "resnet18")
LONG_SECONDS = 3.0
"""An RTL run as long as this is not repeated."""

FILE_WIDTH = 140
"""Columns when standard output is no terminal."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of each run.

    simulator: all of it; clock: the same run without the data; rtl: without its build.
    """

    program: str
    cycles: int
    instructions: int
    simulator: list[float]
    clock: list[float]
    rtl: list[float]

    @property
    def cycles_per_second(self) -> float:
        """Cycles that the simulator simulates in a second."""
        return self.cycles / statistics.median(self.simulator)

    @property
    def ratio(self) -> float:
        """RTL's median over the simulator's."""
        return statistics.median(self.rtl) / statistics.median(self.simulator)


def measure(name: str, launch: Launch, repetitions: int) -> Measured:
    """Run ``launch`` on both, in turn; DRAM, counters and cycles must be equal."""
    sim_device, rtl_device = open_launcher("sim"), open_launcher("rtl")
    simulator, clock, rtl = [], [], []
    for _ in range(repetitions):
        sim = sim_device.run(launch)
        simulator.append(sim.seconds)
        seconds, counters = time_clock(launch)
        clock.append(seconds)
        if not rtl or rtl[0] < LONG_SECONDS:
            done = rtl_device.run(launch)
            rtl.append(done.seconds)
        for other in (counters, done.counters):
            if sim.counters != other:
                raise SystemExit(f"{name}: counters differ: {sim.counters}, {other}")
        np.testing.assert_array_equal(sim.dram, done.dram)
    cycles, instructions = sim.counters["cycles"], sim.counters["instructions"]
    return Measured(name, cycles, instructions, simulator, clock, rtl)


def time_clock(launch: Launch) -> tuple[float, dict[str, int]]:
    """Seconds and counters of a run without data."""
    first = launch.program_address
    code = launch.dram[first : first + launch.program_count * INSTRUCTION_BYTES]
    begin = time.perf_counter()
    done = time_program(code.reshape(-1, INSTRUCTION_BYTES), launch.config, first)
    return time.perf_counter() - begin, done.counters


def network_launch(path: Path) -> Launch:
    """One inference of a model on a random input; all of DRAM is compared."""
    module = compile(path, target=f"vta:{CONFIG.name}")
    launch = prepare_launch(accelerator_part(module), random_inputs(module))
    return Launch(CONFIG, launch.dram, launch.program_address, launch.program_count)


def time_empty(action: Callable[[], object]) -> float:
    """Seconds ``action`` takes with an empty build cache."""
    before = os.environ.get("DOVETAIL_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DOVETAIL_CACHE"] = folder
        begin = time.perf_counter()
        action()
        seconds = time.perf_counter() - begin
    if before is None:
        del os.environ["DOVETAIL_CACHE"]
    else:
        os.environ["DOVETAIL_CACHE"] = before
    return seconds


def _figures(measured: Measured) -> dict[str, object]:
    return {
        **asdict(measured),
        "ratio": measured.ratio,
        "cycles_per_second": measured.cycles_per_second,
    }


def _spread(times: list[float]) -> str:
    middle = statistics.median(times)
    return f"{1e3 * middle:.1f} ({1e3 * min(times):.1f} to {1e3 * max(times):.1f})"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--repetitions", default=7, show_default=True)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here."
)
def main(names: tuple[str, ...], repetitions: int, json_path: Path | None) -> None:
    """Time both on a large layer and on the networks NAMES, or on a few small and large ones."""
    width = None if sys.stdout.isatty() else FILE_WIDTH
    console, known = Console(highlight=False, width=width), models()
    layer = convolution_launch(CONFIG, 56, 64).launch
    with console.status("compiling the simulator and building the RTL in an empty cache"):
        first_seconds = time_empty(lambda: open_launcher("sim").run(layer))
        build_seconds = time_empty(lambda: build_harness(CONFIG))
    results = []
    for name in (LAYER, *(names or NETWORKS)):
        if name != LAYER and name not in known:
            console.print(f"{name}: skipped, not among {', '.join(known)}")
            continue
        with console.status(f"running {name}"):
            launch = layer if name == LAYER else network_launch(known[name].path())
            results.append(measure(name, launch, repetitions))
    table = Table(title="Simulator and Verilated RTL, medians in ms (smallest to largest)")
    headings = ("program", "cycles", "simulator", "of it time", "RTL", "ratio", "M cycles/s")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "program" else "right")
    for each in results:
        table.add_row(
            each.program,
            f"{each.cycles:,}",
            _spread(each.simulator),
            f"{1e3 * statistics.median(each.clock):.1f}",
            _spread(each.rtl),
            f"{each.ratio:.0f}",
            f"{each.cycles_per_second / 1e6:.0f}",
        )
    console.print(table)
    console.print(
        f"in an empty cache: the simulator's first run {first_seconds:.1f} s, "
        f"building the RTL {build_seconds:.1f} s"
    )
    if json_path:
        json_path.write_text(json.dumps([_figures(each) for each in results], indent=2))


if __name__ == "__main__":
    main()
