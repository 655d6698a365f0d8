"""Transposed and grouped convolutions: the plain ones they become compute the same."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d, ConvTranspose2d
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.passes.split_transposed import SPLIT_TRANSPOSED
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.graph.verify import verify
from dovetail.compiler.targets.vta.passes.split_groups import SplitGroups, is_depthwise


def graph_of(
    operator: Conv2d | ConvTranspose2d, shape: tuple[int, ...], weights: tuple[int, ...]
) -> Graph:
    """The operator with random constants, requantised."""
    rng, b = np.random.default_rng(1), GraphBuilder()
    x = b.input("x", TensorType((1, *shape), "int8"))
    w = b.constant("w", rng.integers(-128, 128, weights).astype(np.int8))
    bias = b.constant("b", rng.integers(-999, 999, weights[0]).astype(np.int32))
    total = b.node(operator, (x, w, bias), "sum", "layer")
    scale = b.constant("s", rng.uniform(0.001, 0.01, weights[0]).astype(np.float32))
    y = b.node(Requantize(3, -100, 127), (total, scale), "y", "layer")
    b.export([y], ["out"])
    return b.build(("out",))


def same(before: Graph, after: Graph) -> None:
    verify(after)
    rng = np.random.default_rng(2)
    x = {"x": rng.integers(-128, 128, before.types["x"].shape).astype(np.int8)}
    assert np.array_equal(run(before, x)["out"], run(after, x)["out"])


pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))


@given(
    size=pairs,
    kernel=pairs,
    strides=pairs,
    pads=st.tuples(*[st.integers(0, 4)] * 4),
    added=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    groups=st.sampled_from([1, 2]),
)
def test_a_transposed_convolution_is_plain_ones(
    size: Any, kernel: Any, strides: Any, pads: Any, added: Any, groups: int
) -> None:
    rest = [
        (n - 1) * s + k - before - after + more
        for n, s, k, before, after, more in zip(
            size, strides, kernel, pads[:2], pads[2:], added, strict=True
        )
    ]
    if min(rest) < 1:
        return
    operator = ConvTranspose2d(strides, pads, added, groups, -4, 2)
    before = graph_of(operator, (*size, 4), (6, *kernel, 4 // groups))
    after = SPLIT_TRANSPOSED.run(before)
    assert not any(isinstance(node.operator, ConvTranspose2d) for node in after.nodes)
    same(before, after)


@given(
    groups=st.integers(1, 12),
    channels=st.integers(1, 6),
    outputs=st.integers(1, 6),
    lanes=st.sampled_from([2, 4, 8]),
)
def test_groups_become_blocks(groups: int, channels: int, outputs: int, lanes: int) -> None:
    operator = Conv2d((1, 1), (1, 0, 1, 0), groups, 5, 1)
    before = graph_of(operator, (3, 2, groups * channels), (groups * outputs, 3, 1, channels))
    after = SplitGroups(lanes).run(before)
    for node in after.nodes:
        if isinstance(node.operator, Conv2d) and node.operator.groups > 1:
            weights = after.constants[node.inputs[1]].shape
            block = weights[3] % lanes == 0 and weights[0] == node.operator.groups * lanes
            assert block or is_depthwise(node.operator, weights)
    same(before, after)
