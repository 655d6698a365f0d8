"""Networks on the CPU beside ONNX Runtime, and OpenVINO and TVM where they are installed.

Engines take turns, each round in a fresh process with one model; latencies are of single runs at
batch 1, after a few that are not counted.  Prints a table of the rounds' medians, their median
and lower quartile, and with ``--json FILE`` writes the figures.

The module is compiled before, as OpenVINO's is kept.  ``first`` is the time in a fresh process
from importing the engine to the first result; MB is the largest resident size of that process.
Errors are the largest difference from the model in float64, over its largest output; of integer
models from ONNX Runtime's outputs.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from cpu_models import FLOAT, INTEGER, exact_outputs, model_file, random_inputs
from engines import ENGINES
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import dovetail.compiler
from dovetail.compiler.options import CompileOptions, CpuOptions

SLOW = {"tvm": ("squeezenet",)}
"""Networks that an engine runs which takes up to a hundred times as long as the others."""
CHILD = Path(__file__).with_name("engines.py")
OWN, TUNED = "dovetail", "dovetail, tuned"
"""This project without and with records of tuning (``--records``)."""


@dataclass(slots=True)
class Measured:
    """One engine on one network; lists have an entry for each round.

    best, median: milliseconds.  megabytes: the largest of all.
    compile_seconds: of this project, nothing compiled before.
    """

    network: str
    engine: str
    threads: int
    median: list[float] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    first_seconds: list[float] = field(default_factory=list)
    megabytes: float = 0.0
    error: float = 0.0
    compile_seconds: float = 0.0

    @property
    def milliseconds(self) -> float:
        """The median of all rounds' medians."""
        return statistics.median(self.median)

    @property
    def quartile(self) -> float:
        """The lower quartile of all rounds' medians: without the rounds that others disturbed."""
        return float(np.quantile(self.median, 0.25))


@dataclass(frozen=True, slots=True)
class Benchmark:
    """How networks are measured; folder: for their files."""

    folder: Path
    engines: list[str]
    rounds: int
    runs: int
    options: CompileOptions

    def measure(self, network: str) -> list[Measured]:
        """All engines on one network, in turn."""
        path, threads = model_file(network, self.folder), self.options.cpu.threads
        inputs = random_inputs(onnx.load(path))
        given = self.folder / "inputs.npz"
        np.savez(given, **{name: array[None] for name, array in inputs.items()})
        found = {engine: Measured(network, engine, threads) for engine in self.engines}
        modules = {}
        for engine in (each for each in self.engines if each in (OWN, TUNED)):
            modules[engine], found[engine].compile_seconds = self._compiled(path, engine)
        results: dict[str, list[NDArray[Any]]] = {}
        for _ in range(self.rounds):
            for engine, own in found.items():
                model = modules.get(engine, path)
                outputs = self.folder / f"{engine}.npz"
                name = engine.split(",")[0]
                command = [sys.executable, str(CHILD), name, *map(str, (model, given))]
                command += [
                    "--outputs",
                    str(outputs),
                    "--runs",
                    str(self.runs),
                    "--threads",
                    str(threads),
                ]
                environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
                figures = json.loads(done.stdout.splitlines()[-1])
                for name in ("median", "best", "first_seconds"):
                    getattr(own, name).append(figures[name])
                own.megabytes = max(own.megabytes, figures["megabytes"])
                results[engine] = [each[0] for each in np.load(outputs).values()]
        integer = any(node.op_type == "QuantizeLinear" for node in onnx.load(path).graph.node)
        exact = results["onnxruntime"] if integer else self._exact(path, inputs)
        for engine, own in found.items():
            own.error = _error(results[engine], exact)
        return list(found.values())

    def _compiled(self, path: Path, engine: str) -> tuple[Path, float]:
        """The module's file, and the seconds it took; with nothing compiled before."""
        target = self.folder / f"{path.stem}{'.tuned' if engine == TUNED else ''}.dvt"
        options = self.options if engine == TUNED else replace(self.options, records=())
        with tempfile.TemporaryDirectory() as cache:
            os.environ["DOVETAIL_CACHE"] = cache
            begin = time.perf_counter()
            dovetail.compiler.compile(path, "cpu", options).save(target)
            return target, time.perf_counter() - begin

    def _exact(self, path: Path, inputs: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        kept = self.folder / f"{path.stem}.exact.npz"
        if not kept.is_file():
            np.savez(kept, *exact_outputs(onnx.load(path), inputs, self.folder / "cache"))
        return list(np.load(kept).values())


def _error(found: list[NDArray[Any]], exact: list[NDArray[Any]]) -> float:
    return max(
        float(np.abs(a.astype(np.float64) - b).max() / max(np.abs(b).max(), 1e-30))
        for a, b in zip(found, exact, strict=True)
    )


def table(measured: list[Measured]) -> Table:
    """One row for each engine on each network; ratios to the better of the other engines."""
    result = Table(title="batch 1")
    for title in ("network", "engine"):
        result.add_column(title)
    for title in ("threads", "ms", "ratio", "lower", "ratio", "first s", "MB", "error", "comp. s"):
        result.add_column(title, justify="right")
    for each in measured:
        others = [
            other
            for other in measured
            if (other.network, other.threads) == (each.network, each.threads)
            and other.engine not in (OWN, TUNED)
        ]
        own = each.engine in (OWN, TUNED)
        compared = own and others
        result.add_row(
            each.network,
            each.engine,
            str(each.threads),
            f"{each.milliseconds:.2f}",
            f"{each.milliseconds / min(o.milliseconds for o in others):.2f}" if compared else "",
            f"{each.quartile:.2f}",
            f"{each.quartile / min(o.quartile for o in others):.2f}" if compared else "",
            f"{statistics.median(each.first_seconds):.3f}",
            f"{each.megabytes:.0f}",
            f"{each.error:.1e}",
            f"{each.compile_seconds:.1f}" if own else "",
            end_section=each.engine == measured[-1].engine,
        )
    return result


@click.command()
@click.argument("networks", nargs=-1)
@click.option("--int8", is_flag=True, help="By default the networks in uint8 instead of float.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--runs", default=20, show_default=True, help="In each round.")
@click.option("--threads", multiple=True, default=(1,), show_default=True)
@click.option("--no-winograd", is_flag=True, help="Direct products only.")
@click.option("--records", multiple=True, type=click.Path(path_type=Path), help="Of tuning.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where models are kept.")
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(
    networks: tuple[str, ...],
    int8: bool,
    rounds: int,
    runs: int,
    threads: tuple[int, ...],
    no_winograd: bool,
    records: tuple[Path, ...],
    folder: Path | None,
    json_path: Path | None,
) -> None:
    """Measure NETWORKS: names of examples/networks, with _uint8 quantised, bert, or files."""
    engines = [name for name in ENGINES if name == OWN or find_spec(name)]
    if records:
        engines.insert(1, TUNED)
    console, measured = Console(width=120), []
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        options = CompileOptions(cpu=CpuOptions(winograd=not no_winograd), records=records)
        for name in networks or (INTEGER if int8 else FLOAT):
            own = [each for each in engines if name in SLOW.get(each, (name,))]
            for count in threads:
                chosen = replace(options, cpu=replace(options.cpu, threads=count))
                measured += Benchmark(place, own, rounds, runs, chosen).measure(name)
                console.print(table(measured[-len(own) :]))
    console.print(table(measured))
    if json_path:
        json_path.write_text(json.dumps([asdict(each) for each in measured], indent=1) + "\n")


if __name__ == "__main__":
    main()
