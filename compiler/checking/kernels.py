"""Machine code against the graph interpreter: the outputs, and each kernel separately."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..errors import ModelError
from ..front.table import open_model
from ..graph.interpreter import run
from ..graph.ir import Graph
from ..pipeline.passes import Pipeline
from ..program.ir import Call
from ..targets.cpu.llvm.compile import LlvmOptions, compile_functions
from ..targets.cpu.native import prepared_graph
from ..targets.cpu.segment import Segment, compile_segment

__all__ = ["Difference", "ModelCheck", "check_graph", "check_model", "compare"]

Array = NDArray[Any]


@frozen
class Difference:
    """How a tensor that a kernel, or the whole program, computes differs from what was expected.

    origins: the model's nodes that the kernel stands for; none for outputs.
    unequal: elements that are not the same bits' value.  largest: absolute difference, infinite
    where only one is a number.  relative: ``largest`` by the largest finite magnitude expected.
    """

    tensor: str
    origins: tuple[str, ...]
    dtype: str
    elements: int
    unequal: int
    largest: float
    relative: float


@frozen
class ModelCheck:
    """kernels: each run on what the interpreter gives for its operands, except for those in loops.

    outputs: of the model.
    """

    kernels: tuple[Difference, ...]
    outputs: tuple[Difference, ...]

    @property
    def worst(self) -> float:
        """The largest relative difference."""
        return max((each.relative for each in (*self.kernels, *self.outputs)), default=0.0)


def check_model(
    model: object,
    inputs: Mapping[str, Array],
    dims: Mapping[str, int] | None = None,
    options: LlvmOptions | None = None,
) -> ModelCheck:
    """Compile a model of fixed shapes and compare.

    model: as of ``compile_model``.

    Raises ModelError for a model whose shapes stay open or inputs that do not fit, and what
    importing raises.
    """
    options = options or LlvmOptions()
    return check_graph(
        *prepared_graph(open_model(model), dims or {}, options.winograd), inputs, options
    )


def check_graph(
    graph: Graph,
    passes: Pipeline[Graph],
    inputs: Mapping[str, Array],
    options: LlvmOptions | None = None,
) -> ModelCheck:
    """As ``check_model``, of a graph that goes through ``passes``."""
    options = options or LlvmOptions()
    for name in graph.inputs:
        if name not in inputs:
            raise ModelError(f"input {name!r} is missing; required {graph.types[name]}")
    segment = compile_segment(graph, options, passes)
    expected = run(graph, inputs)
    found = segment.run(inputs)
    outputs = tuple(compare(name, (), found[name], expected[name]) for name in graph.outputs)
    return ModelCheck(_check_kernels(segment, inputs, options), outputs)


def _check_kernels(
    segment: Segment, inputs: Mapping[str, Array], options: LlvmOptions
) -> tuple[Difference, ...]:
    values = run(segment.graph, inputs)
    code = compile_functions(segment.program.functions, options)
    differences = []
    for call in segment.program.calls:
        if not isinstance(call, Call) or not call.origins:
            continue
        function = code.signatures[call.function].function
        names = [operand.tensor for operand in call.arguments]
        operands = [
            np.asarray(values[name], order="C").reshape(buffer.shape)
            for name, buffer in zip(names, function.inputs, strict=False)
        ]
        results = code.run(call.function, operands)
        for name, result in zip(names[len(operands) :], results, strict=True):
            wanted = values[name].reshape(result.shape)
            differences.append(compare(name, call.origins, result, wanted))
    return tuple(differences)


def compare(tensor: str, origins: tuple[str, ...], found: Array, expected: Array) -> Difference:
    """The difference of ``found`` from ``expected``, of the same shape."""
    kind = str(expected.dtype)
    if not expected.size:
        return Difference(tensor, origins, kind, 0, 0, 0.0, 0.0)
    a, b = found.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        distance = np.where(same, 0.0, np.abs(a - b))
    distance = np.where(np.isnan(distance), np.inf, distance)
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max()) if finite.size else 0.0
    largest = float(distance.max())
    relative = largest / scale if scale else largest
    return Difference(tensor, origins, kind, a.size, int((~same).sum()), largest, relative)
