"""Groups without an anchor: the elements are NumPy's, in vectors where that pays."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Unary, UnaryFunction
from dovetail.compiler.graph.operators.movement import Concatenate, PadTensor, Transpose
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, LoopKind
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.cpu.machine import Machine
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget
from dovetail.compiler.targets.cpu.recorded import schedule_kernel


@pytest.mark.parametrize("dtype", [DType.UINT8, DType.FLOAT32])
@pytest.mark.parametrize("channels", [2, 3, 4, 5, 20])
@pytest.mark.parametrize("size", [(17, 33), (3, 40), (32, 32)])
def test_pixels_of_planes_with_a_border(dtype: DType, channels: int, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(channels)
    x = rng.integers(0, 100, (1, channels, *size)).astype(dtype.numpy)
    builder = GraphBuilder()
    name = builder.input("x", TensorType(x.shape, dtype))
    fill = builder.constant("fill", np.asarray(7, dtype.numpy))
    y = builder.node(Transpose((0, 2, 3, 1)), (name,), "t", "t")
    y = builder.node(PadTensor((0, 1, 2, 0), (0, 0, 1, 1)), (y, fill), "p", "p")
    graph = builder.build((y,))
    function = schedule_kernel(graph, graph.nodes, Machine()).function
    verify(function)
    expected = np.pad(x.transpose(0, 2, 3, 1), ((0, 0), (1, 0), (2, 1), (0, 1)), constant_values=7)
    np.testing.assert_array_equal(
        interpret(function, {"in0": x}, intrinsics=INTRINSICS)["out0"], expected
    )
    np.testing.assert_array_equal(compile_functions([function]).run("group", [x])[0], expected)
    kinds = {each.kind for each in walk(function.body) if isinstance(each, For)}
    assert LoopKind.VECTOR in kinds or expected.size < 1 << 10


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
    kernel = schedule_kernel(graph, graph.nodes, machine)
    function, expected = kernel.function, -np.concatenate(parts, axis)
    verify(function)
    arrays = [parts[names.index(name)] for name in kernel.definition.inputs]
    given = {b.name: each for b, each in zip(function.inputs, arrays, strict=True)}
    np.testing.assert_array_equal(interpret(function, given)["out0"], expected)
    code = compile_functions([function], LlvmOptions(level))
    np.testing.assert_array_equal(code.run("group", arrays)[0], expected)
    kinds = {each.kind for each in walk(function.body) if isinstance(each, For)}
    whole = expected.shape[-1] * 4 == machine.vector_bytes
    assert (LoopKind.VECTOR in kinds) == whole
