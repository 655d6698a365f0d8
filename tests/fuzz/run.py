"""A mutated model may run, or be refused by one of the compiler's errors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
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
from tests.compiler.front.torch import hostile as pt2
from tests.conformance.backend import Case

from .mutate import mutant

__all__ = ["FRONTS", "Mutants", "run_mutant", "runner"]

FRONTS = ("onnx", "tflite", "torch")

MOST_WORK = 2 * 10**9
"""Work allowed in a run: some seconds."""

LIMITS = Limits(steps=20_000, nodes=10_000, elements=1 << 24, work=1 << 31)
"""Limits of an import: some seconds."""

MOST_ELEMENTS = 1_000_000
"""Elements of an input that is made up for a model."""


class Mutants(Mapping[str, Case]):
    """Cases by the number they are drawn from, in base 10."""

    def __init__(self, count: int, run: Callable[[int], object] | None = None) -> None:
        self.count = count
        self.run = run or run_mutant

    def __getitem__(self, name: str) -> Case:
        return Case(name, "mutant", lambda: self.run(int(name)), tuple)

    def __iter__(self) -> Iterator[str]:
        return map(str, range(self.count))

    def __len__(self) -> int:
        return self.count


def run_mutant(seed: int) -> None:
    """Run the model on inputs that fit it, or compile it when none can be made up; compile one in
    four for the accelerator.

    Raises what is none of the compiler's errors.
    """
    model = onnx.ModelProto()
    try:
        model.ParseFromString(mutant(seed))
    except DecodeError:
        return
    try:
        inputs = _inputs(model, seed)
        if inputs is None or seed % 4 == 0:
            options = CompileOptions(cpu=CpuOptions(most_work=MOST_WORK), limits=LIMITS)
            compile(model, "cpu" if seed % 4 else "vta:tiny", options)
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
        if any(size < 0 for size in sizes) or prod(max(n, 1) for n in sizes) > MOST_ELEMENTS:
            return None
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        except KeyError:
            return None
        low, high = (-3, 4) if generator.random() < 0.5 else (0, 2)
        inputs[value.name] = generator.integers(low, high, sizes).astype(dtype)
    return inputs


def runner(front: str, files: Sequence[Path] = ()) -> Callable[[int], object]:
    """A function that runs a damaged file of a front end by its number.

    files: ``.pt2`` files to damage beside the tests' own.
    """
    if front == "tflite":
        from .tflite_mutants import read_mutant  # Its models need the package tflite.

        return read_mutant
    return run_mutant if front == "onnx" else lambda seed: _run_pt2(seed, files or pt2.FILES)


def _run_pt2(seed: int, files: Sequence[Path]) -> None:
    with TemporaryDirectory() as folder:
        pt2.run_mutant(seed, Path(folder) / "model.pt2", files)
