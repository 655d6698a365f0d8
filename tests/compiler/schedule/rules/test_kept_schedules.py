"""Steps that the rules choose for layers, and what CPUs get of them: any choice gives the right
results, so a worse one, or merely another, is seen here alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from zlib import crc32

import pytest

from dovetail.compiler.define.definition import Definition
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.loops.intrinsic import Intrinsic
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.options import CompileOptions, Precision
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.schedule.steps.trace import step_record
from dovetail.compiler.targets.cpu import segment
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.llvm.emitter import ModuleText
from dovetail.compiler.targets.cpu.llvm.functions import write_function
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget
from dovetail.compiler.targets.cpu.segment import float_passes
from dovetail.compiler.targets.gpu import lower
from dovetail.compiler.targets.gpu.target import Gpu
from dovetail.compiler.targets.table import find_target
from tests.kept import check_kept

from .layers import LAYERS, layer

FEW = ("dense, many rows", "products", "attention", "softmax across", "norm", "bytes")
"""Layers that tensor cores are tried on: their schedules take long."""
KEPT = Path(__file__).with_name("kept_schedules.json")
TRACE = Trace(CompileOptions())


def imported(name: str) -> Graph:
    return open_model(layer(name)).to_graph().graph


def steps(schedule: Schedule) -> list[str]:
    """One step a line: its name and fields."""
    return [", ".join(map(str, step_record(step).values())) for step in schedule.trace]


def code_of(function: Function, level: str) -> str:
    """Instructions of LLVM by kind, and the checksum of the text."""
    module = ModuleText(CpuTarget.at_level(level))
    write_function(module, function, "f")
    text = module.text()
    counted = Counter(re.findall(r"^ +(?:%\S+ = )?(\w+)", text, re.MULTILINE))
    kinds = " ".join(f"{kind}:{count}" for kind, count in sorted(counted.items()))
    return f"{kinds}; {crc32(text.encode()):08x}"


@pytest.mark.parametrize("level", ["avx512vnni", "armv8dot"])
def test_kernels_of_cpus(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, known = list[str](), segment.tuned_kernel

    def kernel(*given: object, **named: object) -> object:
        made = known(*given, **named)  # type: ignore[arg-type]
        found.extend([f"{made.definition.kind} kernel", *steps(made.schedule)])
        return made

    monkeypatch.setattr(segment, "tuned_kernel", kernel)
    options = LlvmOptions(level)
    for name in LAYERS:
        found.clear()
        graph = float_passes(options.winograd).run(imported(name))
        program = segment.lower_graph(graph, options)
        found.append(f"{len(program.functions)} functions, {program.memory_bytes} bytes")
        found += [code_of(function, level) for function in program.functions]
        check_kept(KEPT, f"{level}, {name}", found)


@pytest.mark.parametrize(
    ("target", "precision", "names"),
    [
        ("opencl", Precision.FP32, LAYERS),
        ("cuda", Precision.FP16, FEW),
        ("cuda:sm_90a", Precision.FP16, FEW[:1]),
    ],
)
def test_kernels_of_gpus(
    target: str, precision: Precision, names: Iterable[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, known = list[str](), lower.schedule_group

    def schedule(definition: Definition, intrinsics: Mapping[str, Intrinsic] | None) -> Schedule:
        made = known(definition, intrinsics)
        found.extend([f"{definition.kind} kernel", *steps(made)])
        return made

    monkeypatch.setattr(lower, "schedule_group", schedule)
    gpu = find_target(target)
    assert isinstance(gpu, Gpu)
    for name in names:
        found.clear()
        graph = gpu.prepared(imported(name), {}, CompileOptions(precision=precision), TRACE)
        program = lower.lower_graph(graph, 10**15, TRACE.check, gpu.backend.intrinsics)
        launches = lower.launches_of(program)
        found += [f"{e.blocks} x {e.threads}, {e.shared_bytes} shared" for e in launches.entries]
        found.append(f"{launches.memory_bytes} bytes")
        check_kept(KEPT, f"{target}, {name}", found)
