"""Graphs of convolutions compute the same in blocks of channels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Contract, Convolution
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction, Unary
from dovetail.compiler.graph.operators.elementwise import UnaryFunction as U
from dovetail.compiler.graph.operators.indexing import Gather
from dovetail.compiler.graph.operators.movement import (
    Concatenate,
    PadMode,
    PadTensor,
    Reshape,
    Transpose,
)
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.operators.reductions import Reduce, ReduceFunction
from dovetail.compiler.graph.operators.windows import WindowFunction, WindowReduce
from dovetail.compiler.graph.passes.fold_scales import FoldScales
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.cpu.layouts.block_channels import BlockChannels
from dovetail.compiler.targets.cpu.layouts.expand_convolutions import ExpandConvolutions

F32 = DType.FLOAT32
BLOCK = BlockChannels(block=4)


def layer(
    builder: GraphBuilder, rng: np.random.Generator, x: str, outputs: int, groups: int = 1
) -> str:
    """A convolution of 3x3 with random integer weights."""
    channels = builder.types[x].shape[1]
    shape = (outputs, channels // groups, 3, 3)
    w = builder.constant("w", rng.integers(-2, 3, shape).astype(np.float32))
    operator = Convolution((1, 1), (1, 1), ((1, 1), (1, 1)), (1, 1), groups, F32)
    return builder.node(operator, (x, w), "y", "conv")


STEPS = ("conv", "depthwise", "bias", "relu", "exp", "pool", "sum", "mean", "concat", "log", "pad")


def follow(builder: GraphBuilder, rng: np.random.Generator, kind: str, x: str, first: str) -> str:
    """One more node."""
    shape = builder.types[x].shape
    match kind:
        case "conv":
            return layer(builder, rng, x, int(rng.integers(3, 9)))
        case "depthwise":
            return layer(builder, rng, x, shape[1], shape[1])
        case "bias":
            values = rng.integers(-3, 4, (shape[1], 1, 1)).astype(np.float32)
            operands = (x, builder.constant("b", values))
            return builder.node(Binary(BinaryFunction.ADD), operands, "y", "bias")
        case "relu":
            zero = builder.constant("zero", np.float32(0))
            return builder.node(Binary(BinaryFunction.MAX), (x, zero), "y", "relu")
        case "exp":
            small = builder.node(Unary(U.TANH), (x,), "y", "tanh")
            return builder.node(Unary(U.EXP), (small,), "y", "exp")
        case "log":
            squared = builder.node(Binary(BinaryFunction.MUL), (x, x), "y", "square")
            return builder.node(Unary(U.SQRT), (squared,), "y", "root")
        case "pool":
            pads = ((1, 0), (0, 1))
            window = WindowReduce((2, 3), (2, 2), (1, 1), (1, 1), pads, WindowFunction.MAX)
            return builder.node(window, (x,), "y", "pool")
        case "sum":
            if builder.types[first].shape != shape:
                return x
            return builder.node(Binary(BinaryFunction.DIV), (x, first), "y", "quotient")
        case "pad":
            modes = (PadMode.CONSTANT, PadMode.CONSTANT, PadMode.EDGE)
            mode = modes[int(rng.integers(3))]
            value = builder.constant("value", np.float32(rng.integers(0, 2) * 5))
            pad = PadTensor((0, 0, 1, 0), (0, 0, 0, 2), mode)
            return builder.node(pad, (x, value), "y", "pad")
        case "mean":
            return builder.node(Reduce(ReduceFunction.SUM, (2, 3), True), (x,), "y", "mean")
        case _:
            return builder.node(Concatenate(1), (x, x), "y", "concat")


@settings(max_examples=40, deadline=None)
@given(
    channels=st.integers(1, 9),
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=6),
    seed=st.integers(0, 999),
)
def test_blocking_changes_no_result(channels: int, steps: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    builder = GraphBuilder()
    builder.input("x", TensorType((1, channels, 4, 3), F32))
    x = first = layer(builder, rng, "x", 4)
    for kind in steps:
        x = follow(builder, rng, kind, x, first)
    graph = builder.build((x, first) if x != first else (x,))
    given = {"x": rng.integers(-2, 3, (1, channels, 4, 3)).astype(np.float32)}
    with np.errstate(all="ignore"):
        expected = run(graph, given)
        for changed in (BLOCK.run(FoldScales().run(graph)), ExpandConvolutions().run(graph)):
            found = run(changed, given)
            assert changed.outputs == graph.outputs
            for name in graph.outputs:
                np.testing.assert_allclose(found[name], expected[name], rtol=2e-4, atol=1e-3)


@pytest.mark.parametrize("kinds", [("conv", "bias", "relu"), ("concat", "pool", "relu")])
def test_a_chain_of_convolutions_is_converted_only_at_its_ends(kinds: Sequence[str]) -> None:
    rng = np.random.default_rng(0)
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 8, 5, 5), F32))
    for kind in kinds:
        x = follow(builder, rng, kind, layer(builder, rng, x, 8), x)
    graph = BLOCK.run(builder.build((x,)))
    assert sum(isinstance(node.operator, Transpose) for node in graph.nodes) == 2
    assert not any(isinstance(node.operator, Convolution) for node in graph.nodes)
    lasts = [n.operator for n in graph.nodes if isinstance(n.operator, Contract)]
    assert all(operator.sizes[operator.kept[-1]] == 4 for operator in lasts)


def test_a_filler_that_would_be_infinite_keeps_the_tensor_plain() -> None:
    rng = np.random.default_rng(0)
    builder = GraphBuilder()
    builder.input("x", TensorType((1, 4, 3, 3), F32))
    x = layer(builder, rng, "x", 3)
    x = builder.node(Unary(U.LOG), (x,), "y", "log")
    graph = BLOCK.run(builder.build((layer(builder, rng, x, 4),)))
    kinds = {n.origin: graph.types[n.output].shape for n in graph.nodes if n.origin == "log"}
    assert kinds == {"log": (1, 3, 3, 3)}


@pytest.mark.parametrize("groups", [2, 3])
def test_groups_and_expansions_become_pads_and_contractions(groups: int) -> None:
    rng = np.random.default_rng(0)
    builder = GraphBuilder()
    builder.input("x", TensorType((2, 2 * groups, 4, 3), F32))
    w = builder.input("w", TensorType((3 * groups, 2, 2, 3), F32))
    operator = Convolution((1, 2), (2, 1), ((1, -1), (2, 2)), (2, 3), groups, F32)
    graph = builder.build((builder.node(operator, ("x", w), "y", "conv"),))
    given = {name: random(rng, graph.types[name].shape) for name in ("x", "w")}
    changed = ExpandConvolutions().run(graph)
    kinds = {type(node.operator) for node in changed.nodes}
    assert Convolution not in kinds
    assert {Contract, PadTensor, Reshape} <= kinds
    np.testing.assert_allclose(run(changed, given)["y"], run(graph, given)["y"], rtol=1e-5)


def random(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    return rng.integers(-4, 5, shape).astype(np.float32)


def normalised(factors: list[tuple[BinaryFunction, int]], seed: int) -> Graph:
    """A convolution, and sums and products of its channels."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder()
    builder.input("x", TensorType((1, 2, 3, 3), F32))
    x = layer(builder, rng, "x", 3)
    for function, size in factors:
        values = random(rng, (size, 1, 1) if size > 1 else ())
        operands = (x, builder.constant("c", values))
        x = builder.node(Binary(function), operands[:: rng.choice([-1, 1])], "y", "scale")
    return builder.build((x,))


@settings(max_examples=30, deadline=None)
@given(
    factors=st.lists(
        st.tuples(
            st.sampled_from((BinaryFunction.ADD, BinaryFunction.MUL)), st.sampled_from((1, 3))
        ),
        max_size=5,
    ),
    seed=st.integers(0, 99),
)
def test_scales_fold_into_weights(factors: list[tuple[BinaryFunction, int]], seed: int) -> None:
    graph = normalised(factors, seed)
    folded = FoldScales().run(graph)
    x = {"x": random(np.random.default_rng(seed), (1, 2, 3, 3))}
    name = graph.outputs[0]
    np.testing.assert_allclose(run(folded, x)[name], run(graph, x)[name], rtol=1e-5, atol=1e-3)
    if factors:
        assert len(folded.nodes) <= 3


@pytest.mark.parametrize(
    ("channels", "mode", "value", "blocked"),
    [
        (6, PadMode.CONSTANT, 0, True),
        (6, PadMode.CONSTANT, 5, False),
        (8, PadMode.CONSTANT, 5, True),
        (6, PadMode.EDGE, 5, True),
    ],
)
def test_borders_stay_in_blocks_where_lanes_without_a_channel_stay_0(
    channels: int, mode: PadMode, value: float, blocked: bool
) -> None:
    builder, rng = GraphBuilder(), np.random.default_rng(1)
    builder.input("x", TensorType((1, 4, 4, 3), F32))
    x = layer(builder, rng, "x", channels)
    given = builder.constant("value", np.float32(value))
    x = builder.node(PadTensor((0, 0, 1, 0), (0, 0, 0, 2), mode), (x, given), "y", "pad")
    graph = BLOCK.run(builder.build((layer(builder, rng, x, 4),)))
    (pad,) = (
        each.operator
        for each in graph.nodes
        if isinstance(each.operator, PadTensor) and 2 in each.operator.after[2:]
    )
    assert (len(pad.before) == 5) == blocked


def window(axes: tuple[int, int], function: WindowFunction) -> WindowReduce:
    return WindowReduce(axes, (2, 2), (1, 1), (1, 1), ((0, 0), (0, 0)), function)


SUMS, MAXIMA = WindowFunction.ADD, WindowFunction.MAX
ROWS, FIRST, BATCH = ((0,) * n + (1,) + (0,) * (3 - n) for n in (2, 1, 0))


@pytest.mark.parametrize(
    ("channels", "filled", "operator", "blocked"),
    [
        (8, False, Gather(2), True),
        (8, False, Gather(3), True),
        (8, False, Gather(1), False),
        (8, False, Gather(0), False),
        (8, False, PadTensor(ROWS, (0,) * 4, PadMode.CONSTANT), True),
        (8, False, PadTensor((0,) * 4, ROWS, PadMode.CONSTANT), True),
        (8, False, PadTensor(FIRST, (0,) * 4, PadMode.CONSTANT), False),
        (8, False, PadTensor((0,) * 4, BATCH, PadMode.CONSTANT), False),
        (8, True, Reduce(ReduceFunction.SUM, (2, 3), True), True),
        (6, False, Reduce(ReduceFunction.SUM, (2, 3), True), True),
        (6, True, Reduce(ReduceFunction.SUM, (2, 3), True), False),
        (8, False, Reduce(ReduceFunction.SUM, (3,), True), True),
        (8, False, Reduce(ReduceFunction.SUM, (2, 3), False), False),
        (8, False, Reduce(ReduceFunction.SUM, (1, 3), True), False),
        (6, False, window((2, 3), SUMS), True),
        (6, True, window((2, 3), SUMS), False),
        (6, True, window((2, 3), MAXIMA), True),
        (8, False, window((1, 2), MAXIMA), False),
    ],
)
def test_what_moves_along_rows_and_columns_stays_in_blocks(
    channels: int, filled: bool, operator: TensorOperator, blocked: bool
) -> None:
    """filled: lanes without a channel hold 1."""
    builder, rng = GraphBuilder(), np.random.default_rng(1)
    builder.input("x", TensorType((1, 4, 4, 3), F32))
    x = layer(builder, rng, "x", channels)
    if filled:
        x = builder.node(Unary(U.EXP), (x,), "y", "exp")
    more = {Gather: np.zeros(2, np.int64), PadTensor: np.float32(0)}.get(type(operator))
    inputs = (x,) if more is None else (x, builder.constant("c", np.asarray(more)))
    graph = builder.build((builder.node(operator, inputs, "y", "moved"),))
    found = BLOCK.run(graph)
    ranks = [found.types[node.output].rank for node in found.nodes if node.origin == "moved"]
    assert (5 in ranks) == blocked
