"""One operator, lowered and interpreted, against its NumPy meaning."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.schedule.rules.cpu.machine import Machine
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS
from dovetail.compiler.targets.cpu.recorded import schedule_kernel

__all__ = ["interpreted"]

Array = NDArray[Any]


def interpreted(operator: TensorOperator, *inputs: Array, seed: int = 1) -> Sequence[Array]:
    """The results by the loops, run in an order that ``seed`` shuffles where it is free."""
    builder = GraphBuilder()
    names = [
        builder.input(f"x{place}", TensorType(array.shape, str(array.dtype)))
        for place, array in enumerate(inputs)
    ]
    outputs = builder.node_outputs(operator, tuple(names), "y", "test")
    graph = builder.build(tuple(outputs))
    kernel = schedule_kernel(graph, graph.nodes, Machine())
    arrays = dict(zip(names, inputs, strict=True))
    given = {
        buffer.name: arrays[name]
        for buffer, name in zip(kernel.function.inputs, kernel.definition.inputs, strict=True)
    }
    found = interpret(kernel.function, given, seed=seed, intrinsics=INTRINSICS)
    results = dict(
        zip(
            kernel.definition.outputs, (found[b.name] for b in kernel.function.outputs), strict=True
        )
    )
    return [np.asarray(results[name]) for name in outputs]
