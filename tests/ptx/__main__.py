"""Command line: emit and assemble the kernels of the benchmark networks, on small images."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import onnx

from dovetail.compiler.dtypes import DType
from dovetail.compiler.front.table import open_model
from dovetail.compiler.options import Precision
from dovetail.compiler.schedule.rules.gpu.tensor_cores import on_tensor_cores
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.targets.gpu.llvm.module import ARCHITECTURES, ptx_of
from dovetail.compiler.targets.gpu.lower import launches_of, lower_graph, passes_of
from dovetail.compiler.targets.gpu.tensor_cores import HOPPER, INTRINSICS
from tests.compiler.schedule.rules.gpu.products import by_rows

from .assembler import PACKAGE, assemble, find_ptxas
from .running import program_of
from .test_interpreter import interpret_random

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = ("resnet18", "resnet50", "squeezenet", "mobilenet_v2", "mobilenet_v3", "vgg16", "bert")
"""The networks of ``benchmarks/cpu_models.py``."""
SIZE, LAYERS, TOKENS = 64, 1, 32


sys.path += [str(ROOT / "examples"), str(ROOT / "benchmarks")]


def main() -> None:
    """Print, for each network and architecture, kernels, registers and what spills."""
    parser = argparse.ArgumentParser(prog="ptx")
    parser.add_argument("--networks", nargs="*", default=NETWORKS, metavar="NAME")
    parser.add_argument("--random", type=int, default=300, help="kernels for the interpreter")
    parser.add_argument("--precision", choices=[each.value for each in Precision], default="fp32")
    arguments = parser.parse_args()
    precision = Precision(arguments.precision)
    interpret_random(arguments.random)
    ptxas = find_ptxas()
    if ptxas is None:
        sys.exit(f"no ptxas: pip install {PACKAGE} (47 MB)")
    failed = _warpgroups(ptxas)
    for name in arguments.networks:
        model = open_model(_model(name)).to_graph(batch=1).graph
        print(f"{name}:")
        for architecture in ARCHITECTURES:
            begin = time.monotonic()
            hopper = architecture == "sm_90a"
            graph = passes_of(True, precision, hopper).run(model)
            intrinsics = HOPPER if hopper else INTRINSICS
            program = lower_graph(graph, 10**15, lambda where: None, intrinsics)
            kernels = launches_of(program).kernels
            lowered = time.monotonic() - begin
            begin = time.monotonic()
            text = ptx_of(kernels, architecture)
            seconds = time.monotonic() - begin
            try:
                found = assemble(ptxas, text, architecture)
            except subprocess.CalledProcessError as error:
                failed = True
                print(f"  {architecture}: refused: {error.stderr.strip()[:400]}")
                continue
            most = max(registers for registers, _ in found.values())
            spilled = sum(bytes_ > 0 for _, bytes_ in found.values())
            print(
                f"  {architecture}: {len(found)} of {len(kernels)} assembled, at most {most} "
                f"registers, {spilled} spill; lowered in {lowered:.1f} s, PTX in {seconds:.1f} s",
                flush=True,
            )
            failed = failed or found.keys() != kernels.keys()
    sys.exit(failed)


def _warpgroups(ptxas: Path) -> bool:
    """Print registers and shared memory of products by warpgroups; whether one is not as it should
    be: without spills, and without products that the assembler makes wait for each other.
    """
    from gpu_warpgroups import CHOICES, name_of

    failed = False
    for dtype in (DType.FLOAT16, DType.BFLOAT16, DType.INT8):
        function = by_rows(4096, 4096, 4096, (dtype, dtype)).function
        for each in CHOICES:
            schedule = on_tensor_cores(Schedule.of(function, HOPPER), each)
            launches = launches_of(program_of(schedule.function))
            notes: list[str] = []
            text = ptx_of(launches.kernels, "sm_90a")
            ((registers, spilled),) = assemble(ptxas, text, "sm_90a", notes).values()
            (entry,) = launches.entries
            print(
                f"wgmma {dtype} {name_of(each)}: {registers} registers, "
                f"{entry.shared_bytes} bytes shared, "
                f"{spilled} bytes spill",
                flush=True,
            )
            failed = failed or spilled > 0 or any("wgmma" in note for note in notes)
    return failed


def _model(name: str) -> onnx.ModelProto:
    from networks import Options, bert, build

    if name == "bert":
        return bert(LAYERS, TOKENS)
    return build(name, Options(size=SIZE))


main()
