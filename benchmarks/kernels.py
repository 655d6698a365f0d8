"""Time of each call of a network's program, at several numbers of threads.

    python benchmarks/kernels.py resnet18 --threads 1 --threads 2

The program reads the clock after each of its calls.  Each number of threads is measured in fresh
processes that take turns; times are lower quartiles of all runs, in microseconds.
"""

import ctypes
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from cpu_models import model_file, random_inputs
from numpy.typing import NDArray

from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.program.ir import Program, all_calls
from dovetail.compiler.targets.cpu.llvm.build import LlvmOptions, build_functions
from dovetail.compiler.targets.cpu.llvm.link import link
from dovetail.compiler.targets.cpu.llvm.main import main_text, memory_bytes
from dovetail.compiler.targets.cpu.llvm.optimize import Effort, to_object
from dovetail.compiler.targets.cpu.llvm.pool import POOL_SYMBOLS, pool_code, pool_object
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget
from dovetail.compiler.targets.cpu.native import prepared_graph
from dovetail.compiler.targets.cpu.segment import lower_graph
from dovetail.isa.cache import cache_directory
from dovetail.runtime.module import Module
from dovetail.runtime.native.content import load_program, pack_constants
from dovetail.runtime.native.part import CpuPart
from dovetail.runtime.native.program import ProgramCode
from dovetail.runtime.tensors import TensorSignature

WARMUP = 3
CALL = re.compile(r"^  call void @(?!dovetail_pool)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Timed:
    """A module whose program writes the clock's value before its first call and after each to the
    end of its memory.  names: of its calls.
    """

    module: Module
    names: list[str]


def timed(path: Path, threads: int) -> Timed:
    """The network of a model file."""
    graph, passes = prepared_graph(SourceModel.of(path), {})
    options = LlvmOptions(threads=threads, cache=cache_directory())
    program = lower_graph(passes.run(graph), options)
    code, count = _code(program, options)
    target = CpuTarget.at_level(options.level)
    constants, data = pack_constants(list(program.constants.values()))
    inputs, outputs = (
        tuple(TensorSignature(b.name, b.shape, str(b.dtype)) for b in buffers)
        for buffers in (program.inputs, program.outputs)
    )
    names = [f"{call.function} {', '.join(call.origins)}" for call in all_calls(program.calls)]
    assert len(names) == count, (names, count)
    flags = tuple(target.flags)
    part = CpuPart(inputs, outputs, code, constants, data, target.cpu, flags, (), ())
    return Timed(Module("cpu", inputs, outputs, (part,)), names)


def _code(program: Program, options: LlvmOptions) -> tuple[ProgramCode, int]:
    """Machine code with clocks, and the number of calls."""
    target, main = CpuTarget.at_level(options.level), "dovetail_main"
    built = build_functions(program.functions, options)
    memory = memory_bytes(program, built)
    lines = main_text(program, built, target, main).splitlines()
    found, count = [], 0
    for line in lines:
        if line.startswith("  %rest = alloca"):
            found.append(_stamp(0, memory))
        found.append(line)
        if CALL.match(line):
            count += 1
            found.append(_stamp(count, memory))
    text = "\n".join([*found, "declare i64 @llvm.readcyclecounter()"])
    objects = [*(each.code for each in built), to_object(text, target, Effort.LIGHT)]
    symbols = [main]
    if options.threads > 1:
        objects, symbols = [*objects, pool_object(target.arch)], [*symbols, *POOL_SYMBOLS]
    size = memory + 8 * (count + 1)
    pool = pool_code(target.arch, options.threads)
    image = link(target.arch, objects, symbols)
    return ProgramCode(
        image, main, size, options.threads, pool, program.most_work, program.stops
    ), count


def _stamp(number: int, memory: int) -> str:
    return (
        f"  %stamp.{number} = call i64 @llvm.readcyclecounter()\n"
        f"  %stamp.at.{number} = getelementptr i8, ptr %memory, i64 {memory + 8 * number}\n"
        f"  store i64 %stamp.{number}, ptr %stamp.at.{number}"
    )


def measure(
    module: Module, inputs: dict[str, NDArray[Any]], count: int, runs: int
) -> NDArray[np.int64]:
    """Ticks of each of ``count`` calls in each run: int64[runs, calls]."""
    (part,) = module.parts
    assert isinstance(part, CpuPart)
    program = load_program(part)
    given = [inputs[each.name] for each in module.inputs]
    results = [np.empty(each.shape, each.dtype) for each in module.outputs]
    start = program._memory_address + program.code.memory_bytes - 8 * (count + 1)
    stamps = np.ctypeslib.as_array((ctypes.c_int64 * (count + 1)).from_address(start))
    found = []
    for _ in range(WARMUP + runs):
        program.run(given, results)
        found.append(np.diff(stamps))
    return np.array(found[WARMUP:])


def _ticks() -> float:
    """Ticks of the clock in a microsecond."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("bogomips"):
            return float(line.split(":")[1]) / 2
    return 1e3


def _child(module: str, inputs: str, outputs: str, count: int, runs: int) -> None:
    np.save(outputs, measure(Module.load(Path(module)), dict(np.load(inputs)), count, runs))


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
        ticks: dict[int, list[NDArray[np.int64]]] = {count: [] for count in threads}
        for _ in range(rounds):
            for count in threads:
                given = [place / f"{count}.dvt", place / "inputs.npz", place / "ticks.npy"]
                command = [sys.executable, __file__, "--child"]
                command += map(str, (*given, len(names), runs))
                subprocess.run(command, check=True)
                ticks[count].append(np.load(place / "ticks.npy"))
    rate = _ticks()
    times = {n: np.quantile(np.concatenate(each), 0.25, axis=0) / rate for n, each in ticks.items()}
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
