"""Float networks on the CPU beside ONNX Runtime, and OpenVINO where it is installed.

Engines take turns, each round in a fresh process with one model; latencies are of single runs at
batch 1, after a few that are not counted.  Prints a table, and with ``--json FILE`` writes the
figures.  The first result is timed with nothing compiled before, and in later rounds with machine
code in the cache.

Errors are the largest difference from ONNX Runtime's outputs, over its largest output.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "models"
REAL = {
    "mnist": "mnist/mnist.onnx",
    "resnet20": "cifar/resnet20_cifar10.onnx",
    "ultraface": "ultraface/ultraface_rfb_320.onnx",
}
DEFAULT = ("resnet18", "resnet50", "squeezenet", "mobilenet_v2")
WARMUP = 3

Arrays = dict[str, NDArray[Any]]
Run = Callable[[Arrays], list[NDArray[Any]]]


@dataclass(slots=True)
class Measured:
    """One engine on one network.

    milliseconds: of each run, of all rounds; compile_seconds: of each round, until the first
    result is there; megabytes: the largest resident size of the process.
    """

    network: str
    engine: str
    milliseconds: list[float] = field(default_factory=list)
    compile_seconds: list[float] = field(default_factory=list)
    megabytes: float = 0.0
    error: float = 0.0


def dovetail(path: Path, threads: int, cache: Path) -> Run:
    """This project's compiled code, which is kept in ``cache`` from the first round on."""
    from dovetail.compiler.backends.llvm.compile import LlvmOptions
    from dovetail.compiler.executor.executor import Executor

    executor = Executor(onnx.load(path), LlvmOptions(threads=threads, cache=cache))
    return lambda inputs: list(executor.run(inputs).values())


def onnxruntime(path: Path, threads: int, cache: Path) -> Run:
    """ONNX Runtime's CPU provider, all optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda inputs: list(session.run(None, inputs))


def openvino(path: Path, threads: int, cache: Path) -> Run:
    """OpenVINO in float32."""
    import openvino

    properties = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(str(path), "CPU", properties)
    return lambda inputs: [np.array(each) for each in compiled(inputs).values()]


ENGINES = {"dovetail": dovetail, "onnxruntime": onnxruntime, "openvino": openvino}


def random_inputs(path: Path) -> Arrays:
    """Normal numbers; unknown dimensions are 1."""
    rng, found = np.random.default_rng(0), {}
    model = onnx.load(path)
    weights = {each.name for each in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in weights:
            shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            found[value.name] = rng.standard_normal(shape).astype(np.float32)
    return found


def run_child(engine: str, path: Path, runs: int, threads: int, outputs: Path) -> None:
    """One round, in a process of its own; prints JSON."""
    inputs = random_inputs(path)
    start = time.perf_counter()
    run = ENGINES[engine](path, threads, outputs.parent / "cache")
    results = run(inputs)
    compiled = time.perf_counter() - start
    np.savez(outputs, *results)
    milliseconds = []
    for number in range(WARMUP + runs):
        start = time.perf_counter()
        run(inputs)
        if number >= WARMUP:
            milliseconds.append((time.perf_counter() - start) * 1e3)
    status = Path("/proc/self/status").read_text().split()
    peak = int(status[status.index("VmHWM:") + 1]) / 1024
    figures = {"milliseconds": milliseconds, "compile_seconds": compiled, "megabytes": peak}
    print(json.dumps(figures))


def measure(
    network: str, path: Path, engines: list[str], rounds: int, runs: int, threads: int
) -> list[Measured]:
    """All engines on one network, in turn."""
    found = {engine: Measured(network, engine) for engine in engines}
    results: dict[str, list[NDArray[Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for engine in engines:
                outputs = Path(folder) / f"{engine}.npz"
                child = ["--child", engine, str(path), str(outputs)]
                options = ["--runs", str(runs), "--threads", str(threads)]
                command = [sys.executable, __file__, *child, *options]
                environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
                figures = json.loads(done.stdout.splitlines()[-1])
                own = found[engine]
                own.milliseconds += figures["milliseconds"]
                own.compile_seconds.append(figures["compile_seconds"])
                own.megabytes = max(own.megabytes, figures["megabytes"])
                results[engine] = list(np.load(outputs).values())
    for engine, own in found.items():
        own.error = max(
            float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))
            for a, b in zip(results[engine], results["onnxruntime"], strict=True)
        )
    return list(found.values())


def network_path(name: str, folder: Path) -> Path:
    """The model's file; a network of ``examples/networks`` is built with random weights."""
    if name in REAL:
        return SHARED / REAL[name]
    if name.endswith(".onnx"):
        return Path(name)
    sys.path.append(str(ROOT / "examples"))
    from networks import Options, build

    path = folder / f"{name}.onnx"
    onnx.save(build(name, Options()), path)
    return path


def table(measured: list[Measured], threads: int) -> Table:
    """One row for each engine on each network."""
    result = Table(title=f"float32, batch 1, threads: {threads}")
    for title in ("network", "engine"):
        result.add_column(title)
    for title in ("best ms", "median ms", "/ ONNX Runtime", "first result s", "MB", "error"):
        result.add_column(title, justify="right")
    best = {each.network: each for each in measured if each.engine == "onnxruntime"}
    for each in measured:
        reference = min(best[each.network].milliseconds)
        result.add_row(
            each.network,
            each.engine,
            f"{min(each.milliseconds):.2f}",
            f"{statistics.median(each.milliseconds):.2f}",
            f"{min(each.milliseconds) / reference:.2f}",
            f"{max(each.compile_seconds):.2f} / {min(each.compile_seconds):.2f}",
            f"{each.megabytes:.0f}",
            f"{each.error:.1e}",
        )
    return result


@click.command()
@click.argument("networks", nargs=-1)
@click.option("--rounds", default=3, show_default=True)
@click.option("--runs", default=20, show_default=True, help="In each round.")
@click.option("--threads", default=1, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path))
@click.option("--child", nargs=3, hidden=True)
def main(
    networks: tuple[str, ...],
    rounds: int,
    runs: int,
    threads: int,
    json_path: Path | None,
    child: tuple[str, str, str] | None,
) -> None:
    """Measure NETWORKS: names of examples/networks, real ones, or files."""
    if child:
        run_child(child[0], Path(child[1]), runs, threads, Path(child[2]))
        return
    engines = [name for name in ENGINES if name == "dovetail" or find_spec(name)]
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in networks or DEFAULT:
            path = network_path(name, Path(folder))
            measured += measure(name, path, engines, rounds, runs, threads)
    Console(width=120).print(table(measured, threads))
    if json_path:
        json_path.write_text(json.dumps([asdict(each) for each in measured], indent=1) + "\n")


if __name__ == "__main__":
    main()
