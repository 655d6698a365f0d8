"""Whole networks on the accelerator: cycles, what bounds them, utilisation and bytes, layer by
layer, on the simulator.

Prints tables, and with ``--json FILE`` writes the figures.  Layers of ResNet-18 stand beside the
times that VTA's authors published for them.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import onnx
from models import models
from rich.console import Console
from rich.table import Table

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.errors import DovetailError
from dovetail.isa.latency import compute_latency
from dovetail.isa.memories import Unit
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.module import Module
from dovetail.runtime.profile.layers import profile_layers
from dovetail.runtime.result import RunResult

VTA_MILLISECONDS = {
    (56, 64, 64, 3, 1): 5.70,
    (56, 64, 128, 3, 2): 2.97,
    (56, 64, 128, 1, 2): 1.35,
    (28, 128, 128, 3, 1): 5.18,
    (28, 128, 256, 3, 2): 2.67,
    (28, 128, 256, 1, 2): 1.03,
    (14, 256, 256, 3, 1): 4.93,
    (14, 256, 512, 3, 2): 3.99,
    (14, 256, 512, 1, 2): 1.08,
    (7, 512, 512, 3, 1): 7.35,
}
"""Height, channels in and out, kernel, stride: milliseconds at 100 MHz with 16x16 products, layer
by layer.  Source: TVM's TopHub, vta_v0.10, workloads C2 to C11 of ResNet-18.
"""

FILE_WIDTH = 140
"""Columns when standard output is no terminal."""


@dataclass(frozen=True, slots=True)
class Layer:
    """cycles: of the run, as ``profile_layers`` shares them out.

    gemm_cycles, vector_cycles: the unit computes for it.  dram_cycles: its bytes at the bus's
    width.  bound: the largest of the three.  utilization: of the matrix core, over ``cycles``.
    """

    name: str
    kind: str
    cycles: int
    macs: int
    gemm_cycles: int
    vector_cycles: int
    dram_cycles: int
    bound: str
    utilization: float
    dram_bytes: int
    vta_milliseconds: float | None


@dataclass(frozen=True, slots=True)
class Network:
    """One inference; ``error`` says why there are no figures.

    roof_cycles: no program takes less (docs/planner.md).
    """

    name: str
    cycles: int = 0
    roof_cycles: int = 0
    macs: int = 0
    milliseconds: float = 0.0
    utilization: float = 0.0
    dram_bytes: int = 0
    compile_seconds: float = 0.0
    simulate_seconds: float = 0.0
    layers: tuple[Layer, ...] = ()
    error: str = ""


def measure(name: str, path: Path, config: HardwareConfig) -> Network:
    """Compile and run one network on a random input."""
    begin = time.perf_counter()
    try:
        module = compile(path, f"vta:{config.name}")
        compile_seconds = time.perf_counter() - begin
        result = run(module, random_inputs(module))
    except DovetailError as error:
        return Network(name, error=str(error))
    assert result.cycles is not None
    assert result.macs is not None
    return Network(
        name,
        result.cycles,
        accelerator_part(module).roof_cycles,
        result.macs,
        1e3 * result.cycles / config.clock_hz,
        result.gemm_utilization or 0.0,
        (result.dram_bytes_read or 0) + (result.dram_bytes_written or 0),
        compile_seconds,
        result.device_seconds,
        tuple(_layers(module, result, config, _published(path))),
    )


def _layers(
    module: Module, result: RunResult, config: HardwareConfig, published: dict[str, float]
) -> list[Layer]:
    known = accelerator_part(module).layers
    busy = {unit: [0] * len(known) for unit in ("GEMM", "VECTOR")}
    latency = compute_latency(config)
    for entry in result.timeline:
        if entry.unit in busy:
            busy[entry.unit][entry.layer] += entry.end - entry.start - latency[Unit[entry.unit]]
    layers = []
    figures = profile_layers(result, known, config)
    for each, gemm, vector in zip(figures, busy["GEMM"], busy["VECTOR"], strict=True):
        dram = -(-each.dram_bytes // config.bus_bytes)
        bounds = {"gemm": gemm, "vector": vector, "dram": dram}
        layers.append(
            Layer(
                each.name,
                each.kind,
                each.cycles,
                each.macs,
                gemm,
                vector,
                dram,
                max(bounds, key=lambda unit: bounds[unit]),
                each.utilization,
                each.dram_bytes,
                published.get(each.name),
            )
        )
    return layers


def _published(path: Path) -> dict[str, float]:
    """VTA's time for each convolution of the model that is one of ResNet-18's, by node."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*model.graph.value_info, *model.graph.input)
    }
    found = {}
    for node in model.graph.node:
        if node.op_type != "Conv":
            continue
        names = (*node.input[:2], node.output[0])
        shape, kernel, out = (shapes.get(each, []) for each in names)
        if len(shape) == len(out) == len(kernel) == 4 and kernel[1] == shape[1]:
            key = (shape[2], shape[1], out[1], kernel[2], shape[2] // out[2])
            if shape[2] == shape[3] and key in VTA_MILLISECONDS:
                found[node.name] = VTA_MILLISECONDS[key]
    return found


def layer_table(network: Network, config: HardwareConfig) -> Table:
    """One row a layer; where VTA published times, they and ours."""
    table = Table(title=f"{network.name}: {network.cycles:,} cycles, {network.utilization:.1%}")
    compared = any(each.vta_milliseconds for each in network.layers)
    headings = ["layer", "operators", "cycles", "gemm", "vector", "dram", "bound", "util", "bytes"]
    for heading in headings + ["ms", "VTA ms"] * compared:
        left = heading in ("layer", "operators", "bound")
        table.add_column(heading, justify="left" if left else "right")
    for each in network.layers:
        row = [
            each.name if len(each.name) <= 32 else f"…{each.name[-31:]}",
            each.kind,
            *(f"{n:,}" for n in (each.cycles, each.gemm_cycles)),
            *(f"{n:,}" for n in (each.vector_cycles, each.dram_cycles)),
            each.bound,
            f"{each.utilization:.1%}",
            f"{each.dram_bytes:,}",
        ]
        if compared:
            row.append(f"{1e3 * each.cycles / config.clock_hz:.2f}")
            row.append(f"{each.vta_milliseconds:.2f}" if each.vta_milliseconds else "")
        table.add_row(*row)
    return table


def comparison(network: Network, config: HardwareConfig) -> list[str]:
    """One line about the layers that VTA published times for, if there are any."""
    both = [each for each in network.layers if each.vta_milliseconds]
    if not both:
        return []
    ours = sum(1e3 * each.cycles / config.clock_hz for each in both)
    theirs = sum(each.vta_milliseconds or 0.0 for each in both)
    return [f"the {len(both)} layers that VTA published: {ours:.2f} ms, VTA {theirs:.2f} ms"]


def summary(networks: list[Network], config: HardwareConfig) -> Table:
    """One row a network."""
    table = Table(title=f"{config.name}, {config.clock_hz / 1e6:g} MHz")
    headings = (
        "network",
        "MAC",
        "cycles",
        "of roof",
        "ms",
        "utilisation",
        "DRAM bytes",
        "compile",
        "run",
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "network" else "right")
    for each in networks:
        if each.error:
            continue
        table.add_row(
            each.name,
            f"{each.macs / 1e6:,.1f} M",
            f"{each.cycles:,}",
            f"{each.cycles / each.roof_cycles:.2f}",
            f"{each.milliseconds:.2f}",
            f"{each.utilization:.1%}",
            f"{each.dram_bytes:,}",
            f"{each.compile_seconds:.1f} s",
            f"{1e3 * each.simulate_seconds:,.0f} ms",
        )
    return table


@click.command()
@click.argument("names", nargs=-1)
@click.option("--config", "config_name", default="zynq7020", show_default=True)
@click.option("--layers/--no-layers", default=True, help="A table for each network.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here."
)
def main(names: tuple[str, ...], config_name: str, layers: bool, json_path: Path | None) -> None:
    """Measure the networks NAMES, or all."""
    console, known = Console(width=None if sys.stdout.isatty() else FILE_WIDTH), models()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"no network {unknown[0]!r}; known are {', '.join(known)}")
    config = find_config(config_name)
    results = []
    for name in names or known:
        with console.status(f"quantising {name}"):
            path = known[name].path()
        with console.status(f"running {name}"):
            results.append(measure(name, path, config))
        if layers and not results[-1].error:
            console.print(layer_table(results[-1], config))
            console.print(*comparison(results[-1], config))
    console.print(summary(results, config))
    for each in results:
        if each.error:
            console.print(f"{each.name}: {each.error}")
    if json_path:
        json_path.write_text(json.dumps([asdict(each) for each in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
