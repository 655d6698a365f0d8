"""Networks and products of matrices on an NVIDIA GPU, beside what else can use it.

``ms`` are medians of single runs, after a few that are not counted, with the copies of inputs and
outputs; engines take turns.  ``device ms`` are of runs one after the other without copies, where an
engine can be asked for them; the ratio is to the best other engine, in these if there are any.
Errors are the largest difference from this project's CPU target, over its largest output.

``gemm_N`` is a row of eight products of N x N matrices in float32, ``gemm_fp16_N`` in float16,
``gemm_bf16_N`` in bfloat16, and ``gemm_int8_N`` of quantised bytes, requantised after each product.
``attention_N`` is a row of eight attentions of 16 heads of 64, N queries and N keys.  Their results
are compared in the first rows alone.  ``bert_base_N`` has twelve layers and N tokens.  A network
may be a model's file; ``NETWORK:N`` has N images or texts a run.  ``@fp16`` behind a name compiles
a float32 model so; the others compute as the model says.

On Hopper GPUs (sm_90) modules are for ``cuda:sm_90a``.  With ``--tiles`` products and ``bert`` are
also compiled with each tile of warpgroups (``wgmma``) in ``gpu_warpgroups.py``: it is measured in a
process of its own, its results compared with those of the rule's tile, and the fastest of the right
ones recorded.  Prints a table, and with ``--json FILE``
writes the figures.
"""

import fcntl
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from cpu_models import random_inputs
from gpu_models import ROWS, fewer_rows, gpu_model
from gpu_peers import PEERS, Engine, UnavailableError
from gpu_warpgroups import TARGET, warpgroup_records
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, Precision
from dovetail.isa.errors import DovetailError
from dovetail.runtime.devices import open_device
from dovetail.runtime.gpu.run import ReadyPart
from dovetail.runtime.session import Session

NETWORKS = (
    *("resnet18", "mobilenet_v2", "squeezenet", "bert", "gemm_1024", "gemm_2048"),
    *("resnet50@fp16", "resnet50:32@fp16"),
    *(f"bert_base_{size}@fp16" for size in ("128", "128:8", "384", "384:8")),
    *("attention_1024@fp16", "attention_4096@fp16"),
    *(f"gemm_{kind}_{size}" for kind in ("fp16", "bf16", "int8") for size in (4096, 8192)),
)
WARM, CHECKED_ROWS = 3, 16
Arrays = dict[str, NDArray[Any]]
HOPPER, GROUPED = "sm_90", ("gemm_", "bert")


@dataclass(slots=True)
class Measured:
    """One engine on one network: milliseconds of single runs, of runs without copies, the error."""

    network: str
    engine: str
    milliseconds: list[float] = field(default_factory=list)
    device_milliseconds: float | None = None
    error: float = 0.0
    compile_seconds: float = 0.0

    @property
    def median(self) -> float:
        """The median of all runs."""
        return statistics.median(self.milliseconds)


def of_dovetail(path: Path, target: str, device: str, options: CompileOptions) -> Engine:
    """This project's run."""
    begin = time.perf_counter()
    module = compile(path, target, options)
    opened = open_device(device)
    parts = [opened.prepare(each) for each in module.parts]
    seconds = time.perf_counter() - begin
    if len(parts) == 1 and isinstance(parts[0], ReadyPart):
        ready = parts[0]
        return Engine(lambda inputs: list(ready.run(inputs).outputs.values()), ready.time, seconds)
    session = Session(module, opened)
    return Engine(lambda inputs: session.run(None, inputs), None, seconds)


def default_target(device: str) -> str:
    """The target for a device: its kind, and its architecture where that has a target."""
    hopper = getattr(open_device(device), "architecture", "") == HOPPER
    return TARGET if hopper else device.partition(":")[0]


def engines_of(
    name: str, target: str, device: str, precision: Precision, folder: Path, tiles: bool = False
) -> dict[str, Engine]:
    """Every engine that there is; says which are not, and why.  tiles: see the command."""
    network, _, own = name.partition("@")
    path = gpu_model(network, folder)
    options = CompileOptions.from_environment()
    options = replace(options, precision=Precision(own) if own else precision)
    what = f"dovetail {device} {options.precision.value}"
    engines = {what: of_dovetail(path, target, device, options)}
    if tiles and default_target(device) == TARGET and network.startswith(GROUPED):
        records = warpgroup_records(path, device, options, folder)
        if records:
            grouped = replace(options, records=(*options.records, records))
            engines[f"{what} tiles"] = of_dovetail(path, TARGET, device, grouped)
    for peer, make in PEERS.items():
        try:
            engines[peer] = make(path, network, options.precision)
        except UnavailableError as reason:
            click.echo(f"{name}: without {peer}: {reason}")
        except Exception as error:
            # Engines raise errors of many unrelated classes.
            click.echo(f"{name}: without {peer}: {first_line(error)}")
    return engines


def first_line(error: Exception) -> str:
    """An engine's error in one line."""
    said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said}"[:200]


def exact_outputs(path: Path, network: str, inputs: Arrays, folder: Path) -> NDArray[Any]:
    """The CPU target's first output; of a row of products or attentions, its first rows."""
    if network.startswith(ROWS):
        model = fewer_rows(onnx.load(path), CHECKED_ROWS)
        inputs = {name: array[..., :CHECKED_ROWS, :] for name, array in inputs.items()}
        path = folder / f"{path.stem}.rows.onnx"
        onnx.save(model, path)
    reference = of_dovetail(path, "cpu", "cpu", CompileOptions.from_environment())
    return reference.run(inputs)[0].astype(float)


def working(name: str, engines: dict[str, Engine], inputs: Arrays) -> dict[str, NDArray[Any]]:
    """The first output of each engine that can run, after some runs; says which cannot."""
    found = {}
    for engine, each in engines.items():
        try:
            for _ in range(WARM):
                outputs = each.run(inputs)
        except Exception as error:
            if engine.startswith("dovetail"):
                raise
            click.echo(f"{name}: without {engine}: {first_line(error)}")
        else:
            found[engine] = np.asarray(outputs[0]).astype(float)
    return found


def measure(
    name: str,
    target: str,
    device: str,
    precision: Precision,
    runs: int,
    folder: Path,
    tiles: bool = False,
) -> list[Measured]:
    """Every engine that there is, in turn."""
    engines = engines_of(name, target, device, precision, folder, tiles)
    network = name.partition("@")[0]
    path = gpu_model(network, folder)
    inputs = random_inputs(onnx.load(path))
    exact = exact_outputs(path, network, inputs, folder)
    found = []
    for engine, output in working(name, engines, inputs).items():
        rows = output[..., : exact.shape[-2], :] if network.startswith(ROWS) else output
        error = np.abs(rows - exact).max() / np.abs(exact).max()
        seconds = engines[engine].compile_seconds
        found.append(Measured(name, engine, [], None, float(error), seconds))
    with alone():
        for _ in range(runs):
            for measured in found:
                begin = time.perf_counter()
                engines[measured.engine].run(inputs)
                measured.milliseconds.append(1e3 * (time.perf_counter() - begin))
        for measured in found:
            seconds = engines[measured.engine].seconds
            if seconds is not None:
                times = [seconds(runs) for _ in range(3)]
                measured.device_milliseconds = 1e3 * statistics.median(times)
    return found


@contextmanager
def alone() -> Iterator[None]:
    """While others that measure on this machine wait: several may compile at a time."""
    with (Path(tempfile.gettempdir()) / "dovetail-benchmark-gpu.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def rows_of(found: list[Measured]) -> list[tuple[str, ...]]:
    """The lines of a table about one network."""
    rows = []
    for each in found:
        ratio = ""
        others = [other for other in found if not other.engine.startswith("dovetail")]
        timed = [other for other in others if other.device_milliseconds]
        if each.device_milliseconds and timed:
            best = min(other.device_milliseconds or 0.0 for other in timed)
            ratio = f"{each.device_milliseconds / best:.2f}"
        elif others:
            ratio = f"{each.median / min(other.median for other in others):.2f}"
        device = f"{each.device_milliseconds:.3f}" if each.device_milliseconds else ""
        compiled = f"{each.compile_seconds:.1f}" if each.compile_seconds else ""
        times = f"{each.median:.3f}", device, f"{each.error:.1e}"
        rows.append((each.network, each.engine, *times, ratio, compiled))
    return rows


@click.command()
@click.argument("networks", nargs=-1)
@click.option("--device", default="cuda", show_default=True, help="cuda, cuda:1, opencl, ...")
@click.option("--target", help="By default the device's kind: cuda:sm_90a on Hopper GPUs.")
@click.option("--precision", type=click.Choice([each.value for each in Precision]), default="fp32")
@click.option("--runs", default=50, show_default=True)
@click.option("--tiles", is_flag=True, help="Try all tiles of warpgroups, on Hopper GPUs.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="For the figures.")
def main(
    networks: tuple[str, ...],
    device: str,
    target: str | None,
    precision: str,
    runs: int,
    tiles: bool,
    output: Path | None,
) -> None:
    """Measure NETWORKS."""
    try:
        open_device(device)
    except DovetailError as error:
        raise click.ClickException(str(error)) from None
    table = Table("network", "engine", "ms", "device ms", "error", "ratio", "compiled in s")
    every: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        for network in networks or NETWORKS:
            kind = target or default_target(device)
            found = measure(network, kind, device, Precision(precision), runs, Path(folder), tiles)
            every += found
            for row in rows_of(found):
                table.add_row(*row)
            if output:
                # Written after each network, so that a run which is cut short leaves figures.
                rows = [{**asdict(each), "median": each.median} for each in every]
                output.write_text(json.dumps(rows, indent=1))
    Console(width=max(Console().width, 110)).print(table)


if __name__ == "__main__":
    main()
