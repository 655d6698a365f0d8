"""The simulator beside the Verilated RTL: the same programs, side by side, in one run.

Prints a table, and with ``--json FILE`` writes the figures.  Times are wall times of the run alone;
what it takes to build the Verilated model is measured once, in an empty cache, and shown beside.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from layer import convolution_launch
from rich.console import Console
from rich.table import Table

from dovetail.compiler import compile
from dovetail.isa.configs import find_config
from dovetail.isa.launch import Launch
from dovetail.runtime.executor import prepare_launch
from dovetail.runtime.targets import open_device
from dovetail.vta_hw.build import build_harness

ROOT = Path(__file__).resolve().parent.parent
RESNET8 = ROOT.parent / "shared" / "models" / "mlperf_tiny" / "ic_resnet8_int8.onnx"
DIGITS = ROOT / "examples" / "digits" / "digits_int8.onnx"
CONFIG = find_config("zynq7020")


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of each repetition; the RTL's build is not in them."""

    program: str
    cycles: int
    simulator: list[float]
    rtl: list[float]
    rtl_build: float

    @property
    def ratio(self) -> float:
        """RTL's median over the simulator's."""
        return statistics.median(self.rtl) / statistics.median(self.simulator)

    @property
    def ratio_with_build(self) -> float:
        """The same with one build of the RTL counted."""
        return (statistics.median(self.rtl) + self.rtl_build) / statistics.median(self.simulator)


def measure(name: str, launch: Launch, repetitions: int, build_seconds: float) -> Measured:
    """Run ``launch`` on both, in turn; DRAM and cycles must be equal."""
    devices = {name: open_device(name) for name in ("sim", "rtl")}
    times: dict[str, list[float]] = {name: [] for name in devices}
    results = {name: device.run(launch) for name, device in devices.items()}
    for _ in range(repetitions):
        for device_name, device in devices.items():
            results[device_name] = device.run(launch)
            times[device_name].append(results[device_name].seconds)
    sim, rtl = results["sim"], results["rtl"]
    if sim.counters != rtl.counters:
        raise SystemExit(f"{name}: counters differ: {sim.counters}, {rtl.counters}")
    np.testing.assert_array_equal(sim.dram, rtl.dram)
    return Measured(name, sim.counters["cycles"], times["sim"], times["rtl"], build_seconds)


def network_launch(path: Path) -> Launch:
    """One inference of a model on a random input."""
    module = compile(path, target=f"vta:{CONFIG.name}")
    (tensor,) = module.inputs
    rng = np.random.default_rng(1)
    if tensor.dtype == "float32":
        x = rng.random(tensor.shape, np.float32)
    else:
        x = rng.integers(-128, 128, tensor.shape, dtype=np.int8)
    return prepare_launch(module, CONFIG, {tensor.name: x})


def time_build(action: Callable[[], object]) -> float:
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
        "ratio_with_build": measured.ratio_with_build,
    }


def _spread(times: list[float]) -> str:
    middle = statistics.median(times)
    return f"{1e3 * middle:.1f} ({1e3 * min(times):.1f} to {1e3 * max(times):.1f})"


@click.command()
@click.option("--repetitions", default=7, show_default=True)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here."
)
def main(repetitions: int, json_path: Path | None) -> None:
    """Time both on a network and on one large layer."""
    console = Console()
    model = RESNET8 if RESNET8.exists() else DIGITS
    with console.status("building the RTL in an empty cache"):
        build_seconds = time_build(lambda: build_harness(CONFIG))
    programs = {
        model.stem: network_launch(model),
        "conv 3x3, 56x56x64": convolution_launch(CONFIG, 56, 64).launch,
    }
    results = []
    for name, launch in programs.items():
        with console.status(f"running {name}"):
            results.append(measure(name, launch, repetitions, build_seconds))
    table = Table(title="Simulator and Verilated RTL, medians in ms (smallest to largest)")
    for heading in ("program", "cycles", "simulator", "RTL", "ratio", "with the RTL's build"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    for each in results:
        table.add_row(
            each.program,
            f"{each.cycles:,}",
            _spread(each.simulator),
            _spread(each.rtl),
            f"{each.ratio:.1f}",
            f"{each.ratio_with_build:.0f}",
        )
    console.print(table)
    console.print(f"building the RTL: {build_seconds:.1f} s")
    if json_path:
        json_path.write_text(json.dumps([_figures(each) for each in results], indent=2))


if __name__ == "__main__":
    main()
