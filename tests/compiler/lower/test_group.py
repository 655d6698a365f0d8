"""Nests of groups without an anchor: blocks of joined tensors are vectors, and NumPy's elements."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Unary, UnaryFunction
from dovetail.compiler.graph.operators.movement import Concatenate
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, LoopKind
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.lower.group import lower_group
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget


@pytest.mark.parametrize("level", ["x86-64", "native"])
@pytest.mark.parametrize("axis", [1, 2, 4])
@pytest.mark.parametrize("lanes", [4, 16, 5])
def test_joined_blocks(level: str, axis: int, lanes: int) -> None:
    rng = np.random.default_rng(axis)
    parts = [rng.standard_normal((1, 3, 4, 5, lanes)).astype(np.float32) for _ in range(3)]
    builder = GraphBuilder()
    names = [
        builder.input(f"x{place}", TensorType(each.shape, DType.FLOAT32))
        for place, each in enumerate(parts)
    ]
    y = builder.node(Concatenate(axis), tuple(names), "y", "y")
    y = builder.node(Unary(UnaryFunction.NEG), (y,), "z", "z")
    graph = builder.build((y,))
    machine = CpuTarget.at_level(level).machine()
    lowered = lower_group(graph, graph.nodes, machine=machine)
    function, expected = lowered.function, -np.concatenate(parts, axis)
    verify(function)
    arrays = [parts[names.index(name)] for name in lowered.inputs]
    given = {b.name: each for b, each in zip(function.inputs, arrays, strict=True)}
    np.testing.assert_array_equal(interpret(function, given)["out0"], expected)
    code = compile_functions([function], LlvmOptions(level))
    np.testing.assert_array_equal(code.run("group", arrays)[0], expected)
    kinds = {each.kind for each in walk(function.body) if isinstance(each, For)}
    whole = expected.shape[-1] * 4 == machine.vector_bytes
    assert (LoopKind.VECTOR in kinds) == whole
