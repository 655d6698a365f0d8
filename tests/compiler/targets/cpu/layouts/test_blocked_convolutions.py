"""Convolutions on blocks of channels: how the products are arranged."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import Contract, Convolution
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.cpu.layouts.block_channels import BlockChannels


@pytest.mark.parametrize("channels", [16, 24])
def test_convolutions_of_bytes_are_blocked_for_dot_products(channels: int) -> None:
    rng = np.random.default_rng(0)
    builder = GraphBuilder()
    builder.input("x", TensorType((1, channels, 4, 5), DType.UINT8))
    values = rng.integers(-128, 128, (20, channels, 3, 2)).astype(np.int8)
    w = builder.constant("w", values)
    operator = Convolution((2, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1, DType.INT32)
    graph = builder.build((builder.node(operator, ("x", w), "y", "conv"),))
    blocked = BlockChannels().run(graph)
    (product,) = (n.operator for n in blocked.nodes if isinstance(n.operator, Contract))
    assert product.sizes[-2:] == (4, 4)
    x = rng.integers(0, 256, (1, channels, 4, 5)).astype(np.uint8)
    np.testing.assert_array_equal(run(blocked, {"x": x})["y"], run(graph, {"x": x})["y"])
