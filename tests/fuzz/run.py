"""What a mutated model may do: run, or be refused by one of the compiler's errors."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.options import CompileOptions, CpuOptions
from dovetail.compiler.pipeline.limits import Budget, Limits, Watch
from dovetail.compiler.targets.cpu.executor.executor import Executor
from dovetail.compiler.targets.cpu.llvm.build import LlvmOptions
from dovetail.isa.errors import DovetailError
from tests.conformance.backend import Case

from .mutate import mutant

__all__ = ["Mutants", "run_mutant"]

MOST_WORK = 2 * 10**9
"""Work allowed in a run: some seconds."""

LIMITS = Limits(steps=20_000, nodes=10_000, elements=1 << 24, work=1 << 31)
"""What an import may take: some seconds."""

MOST_ELEMENTS = 1_000_000
"""Elements of an input that is made up for a model."""


class Mutants(Mapping[str, Case]):
    """Cases by the number they are drawn from, in base 10."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, name: str) -> Case:
        return Case(name, "mutant", lambda: run_mutant(int(name)), tuple)

    def __iter__(self) -> Iterator[str]:
        return map(str, range(self.count))

    def __len__(self) -> int:
        return self.count


def run_mutant(seed: int) -> None:
    """Run the model on inputs that fit it, or compile it when none can be made up.

    Raises what is none of the compiler's errors.
    """
    model = onnx.ModelProto()
    try:
        model.ParseFromString(mutant(seed))
    except DecodeError:
        return
    try:
        inputs = _inputs(model, seed)
        if inputs is None:
            options = CompileOptions(cpu=CpuOptions(most_work=MOST_WORK), limits=LIMITS)
            compile(model, "cpu", options)
        else:
            source = SourceModel(model, Budget(Watch(LIMITS)))
            Executor(source, LlvmOptions(most_work=MOST_WORK)).run(inputs)
    except DovetailError:
        pass


def _inputs(model: onnx.ModelProto, seed: int) -> dict[str, Any] | None:
    generator = np.random.default_rng(seed)
    constants = {each.name for each in model.graph.initializer}
    inputs: dict[str, Any] = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        sizes = [dim.dim_value if dim.HasField("dim_value") else 2 for dim in tensor.shape.dim]
        if any(size < 0 for size in sizes) or np.prod([float(n) for n in sizes]) > MOST_ELEMENTS:
            return None
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        except KeyError:
            return None
        low, high = (-3, 4) if generator.random() < 0.5 else (0, 2)
        inputs[value.name] = generator.integers(low, high, sizes).astype(dtype)
    return inputs
