"""Tensors in blocks of channels and back."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Unary, UnaryFunction
from dovetail.compiler.graph.rebuild import Rebuilding
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.cpu.layouts.blocked_tensors import Blocked, BlockedTensors


@settings(max_examples=40, deadline=None)
@given(
    channels=st.integers(1, 9),
    spatial=st.lists(st.integers(1, 4), max_size=3),
    block=st.sampled_from((2, 4)),
)
def test_a_tensor_in_blocks_and_back_is_itself(
    channels: int, spatial: list[int], block: int
) -> None:
    shape = (2, channels, *spatial)
    builder = GraphBuilder()
    builder.input("x", TensorType(shape, DType.INT32))
    graph = builder.build((builder.node(Unary(UnaryFunction.NEG), ("x",), "y", "negate"),))
    tensors = BlockedTensors(graph, block, Rebuilding(graph))
    own = tensors.to_blocked("x")
    assert tensors.to_blocked("x") is own
    assert not tensors.is_blocked("x")
    negated = tensors.emit(Unary(UnaryFunction.NEG), (own.name,), graph.nodes[0])
    tensors.blocked["y"] = Blocked(negated, 0.0)
    assert tensors.is_blocked("y")
    assert tensors.plain("y") == tensors.plain("y")
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    found = run(tensors.new.build(), {"x": x})
    np.testing.assert_array_equal(found["y"], -x)
    blocks = -(-channels // block)
    filled = np.zeros((2, blocks * block, *spatial), np.int32)
    filled[:, :channels] = -x
    split = filled.reshape(2, blocks, block, *spatial)
    np.testing.assert_array_equal(found[negated], np.moveaxis(split, 2, -1))
