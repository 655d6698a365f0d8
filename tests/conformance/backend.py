"""A target behind ONNX's backend interface, and ONNX's cases of the CPU."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from dovetail.compiler.executor.executor import Executor
from dovetail.compiler.graph import interpreter
from dovetail.compiler.graph.ir import Array, Graph
from dovetail.compiler.options import CompileOptions
from tests.kept_forms import form

__all__ = ["FORMS", "TARGETS", "Case", "cases", "choose_target", "kernel_calls"]


def _on_cpu(model: onnx.ModelProto) -> Executor:
    from dovetail.compiler.targets.cpu.executor.executor import Executor as CpuExecutor
    from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions

    return CpuExecutor(model, LlvmOptions(verify=CompileOptions.from_environment().verify))


def _by_gpu(name: str, model: onnx.ModelProto) -> Executor:
    from dovetail.compiler.targets.gpu.cuda import find_cuda
    from dovetail.compiler.targets.gpu.segment import compile_segment
    from dovetail.compiler.targets.gpu.target import find_opencl, find_webgpu
    from dovetail.runtime.devices import open_device

    target = {"opencl": find_opencl, "webgpu": find_webgpu, "cuda": find_cuda}[name]("")
    device = open_device(name)
    return Executor(model, lambda graph: compile_segment(graph, target, device))


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A graph whose operators are evaluated, nothing compiled; see ``executor.Segment``."""

    graph: Graph
    kernel_calls: int = 0

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs, as the interpreter has them."""
        known = interpreter.run(self.graph, {name: inputs[name] for name in self.graph.inputs})
        return {name: np.array(known[name]) for name in self.graph.outputs}


FORMS: list[str] = []
"""Forms of the graphs that have been interpreted."""


def _meaning(graph: Graph) -> _Meaning:
    FORMS.append(form(graph))
    return _Meaning(graph)


TARGETS: Mapping[str, Callable[[onnx.ModelProto], Executor]] = {
    "cpu": _on_cpu,
    "opencl": partial(_by_gpu, "opencl"),
    "webgpu": partial(_by_gpu, "webgpu"),
    "cuda": partial(_by_gpu, "cuda"),
    "interpreter": lambda model: Executor(model, _meaning),
}
"""Makers of a model's executor, by the name of the target."""

_chosen = "cpu"
_kernel_calls = 0


def choose_target(name: str) -> None:
    """The target of ``TARGETS`` for all models from now on, in this process and its children."""
    global _chosen
    _chosen = name


def kernel_calls() -> int:
    """Calls of kernels so far in this process."""
    return _kernel_calls


class PreparedModel(BackendRep):
    """A model that runs on lists of inputs in the model's order."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._executor = TARGETS[_chosen](model)
        constants = {each.name for each in model.graph.initializer}
        self._inputs = [each.name for each in model.graph.input if each.name not in constants]
        self._all_inputs = [each.name for each in model.graph.input]
        self._outputs = [each.name for each in model.graph.output]

    def run(self, inputs: Sequence[Any], **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in the model's order."""
        names = self._all_inputs if len(inputs) > len(self._inputs) else self._inputs
        results = self._executor.run(dict(zip(names, inputs, strict=False)))
        global _kernel_calls
        _kernel_calls += self._executor.kernel_calls
        return tuple(results[name] for name in self._outputs)


class CompiledBackend(Backend):
    """The backend that ONNX's runner calls."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Nothing is compiled before the model runs."""
        return PreparedModel(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only CPUs."""
        return device == "CPU"


@dataclass(frozen=True, slots=True)
class Case:
    """One of ONNX's tests; ``run`` raises what fails."""

    name: str
    category: str
    run: Callable[[], None]
    operators: Callable[[], tuple[str, ...]]


@cache
def cases(folder: Path) -> dict[str, Case]:
    """Every case for CPUs, by name.

    folder: where models and reference outputs that ONNX's runner makes are kept.
    """
    os.environ["ONNX_HOME"] = str(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.runner import Runner

        runner = Runner(CompiledBackend)
    found = {}
    for category, items in runner._test_items.items():
        for name, item in items.items():
            if name.endswith("_cpu"):
                found[name] = _case(name, category, item)
    return dict(sorted(found.items()))


def _case(name: str, category: str, item: Any) -> Case:
    def run() -> None:
        item.func(None)

    def operators() -> tuple[str, ...]:
        model = item.proto[0]
        return () if model is None else tuple(each.op_type for each in model.graph.node)

    return Case(name, category, run, operators)
