"""Groups that read across rows: whatever the sizes, the elements are NumPy's."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.movement import PadTensor, Transpose
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, LoopKind
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.lower.group import lower_group
from dovetail.compiler.targets.cpu.llvm.compile import compile_functions
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS


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
    function = lower_group(graph, graph.nodes).function
    verify(function)
    expected = np.pad(x.transpose(0, 2, 3, 1), ((0, 0), (1, 0), (2, 1), (0, 1)), constant_values=7)
    np.testing.assert_array_equal(
        interpret(function, {"in0": x}, intrinsics=INTRINSICS)["out0"], expected
    )
    np.testing.assert_array_equal(compile_functions([function]).run("group", [x])[0], expected)
    kinds = {each.kind for each in walk(function.body) if isinstance(each, For)}
    assert LoopKind.VECTOR in kinds or expected.size < 1 << 10
