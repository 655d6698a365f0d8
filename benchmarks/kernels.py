"""Time of each call of a network's program, at several numbers of threads.

    python benchmarks/kernels.py resnet18 --threads 1 --threads 2

The program reads the clock after each of its calls.  Each number of threads is measured in fresh
processes that take turns; times are lower quartiles of all runs, in microseconds.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import onnx
from cpu_models import model_file, random_inputs
from numpy.typing import NDArray

from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.targets.cpu.llvm.build import LlvmOptions
from dovetail.compiler.targets.cpu.native import import_fixed
from dovetail.compiler.targets.cpu.timed import timed_part
from dovetail.isa.cache import cache_directory
from dovetail.runtime.module import Module
from dovetail.runtime.native.part import CpuPart
from dovetail.runtime.profile.cpu import measure_calls


@dataclass(frozen=True, slots=True)
class Timed:
    """A module of a timed program; names: of its calls."""

    module: Module
    names: list[str]


def timed(path: Path, threads: int) -> Timed:
    """The network of a model file."""
    source = SourceModel.of(path)
    options = LlvmOptions(threads=threads, cache=cache_directory())
    found = timed_part(import_fixed(source) or source.to_graph(), options)
    part = found.part
    names = [f"{call.kernel} {', '.join(call.nodes)}" for call in found.calls]
    return Timed(Module("cpu", part.inputs, part.outputs, (part,)), names)


def _child(module: str, inputs: str, outputs: str, count: int, runs: int) -> None:
    (part,) = Module.load(Path(module)).parts
    assert isinstance(part, CpuPart)
    np.save(outputs, measure_calls(part, dict(np.load(inputs)), count, runs))


@click.command()
@click.argument("network")
@click.option("--threads", multiple=True, default=(1, 2), show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--runs", default=20, show_default=True, help="In each round.")
@click.option("--least", default=0.0, help="Microseconds at one thread of calls that are shown.")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build/networks"))
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(
    network: str,
    threads: tuple[int, ...],
    rounds: int,
    runs: int,
    least: float,
    folder: Path,
    json_path: Path | None,
) -> None:
    """Measure NETWORK, as of cpu.py."""
    folder.mkdir(parents=True, exist_ok=True)
    path = model_file(network, folder)
    names: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        np.savez(place / "inputs.npz", **random_inputs(onnx.load(path)))
        for count in threads:
            found = timed(path, count)
            names = found.names
            found.module.save(place / f"{count}.dvt")
        seconds: dict[int, list[NDArray[np.float64]]] = {count: [] for count in threads}
        for _ in range(rounds):
            for count in threads:
                given = [place / f"{count}.dvt", place / "inputs.npz", place / "seconds.npy"]
                command = [sys.executable, __file__, "--child"]
                command += map(str, (*given, len(names), runs))
                subprocess.run(command, check=True)
                seconds[count].append(np.load(place / "seconds.npy"))
    times = {
        n: 1e6 * np.quantile(np.concatenate(each), 0.25, axis=0) for n, each in seconds.items()
    }
    first = times[threads[0]]
    for number, name in enumerate(names):
        if first[number] >= least:
            row = " ".join(f"{times[count][number]:9.1f}" for count in threads)
            gain = " ".join(f"{first[number] / times[n][number]:5.2f}" for n in threads[1:])
            print(f"{row}  {gain}  {number:3d} {name[:80]}")
    row = " ".join(f"{times[count].sum():9.1f}" for count in threads)
    gain = " ".join(f"{first.sum() / times[n].sum():5.2f}" for n in threads[1:])
    print(f"{row}  {gain}  all")
    if json_path:
        json_path.write_text(json.dumps({n: list(each) for n, each in times.items()}) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(*sys.argv[2:5], *map(int, sys.argv[5:7]))
    else:
        main()
