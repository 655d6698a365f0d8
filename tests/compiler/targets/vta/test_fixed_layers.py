"""TensorFlow Lite's integer layers on the accelerator: its bytes, or a reason why not."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.front.source import Imported
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.fixed_point import (
    AddFixed,
    AverageFixed,
    MultiplyFixed,
    RequantizeFixed,
    RequantizeReal,
)
from dovetail.compiler.graph.operators.integer.products import Conv2d, Dense
from dovetail.compiler.graph.operators.integer.values import Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.compiler.targets.vta.layers.fixed_point_add import find_fixed_point
from dovetail.compiler.targets.vta.passes.fixed_averages import FIXED_AVERAGES
from dovetail.compiler.targets.vta.passes.real_finishes import REAL_FINISHES, find_scales
from dovetail.compiler.targets.vta.target import Vta
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Finish, Rounding, Vector
from dovetail.isa.program import program_from_bytes
from dovetail.runtime import run
from dovetail.runtime.module import Module
from dovetail.vta_sim.timing import time_program
from tests.kept_costs import check_costs

TINY = find_config("tiny")
Rng = np.random.Generator


def quantized(ratio: float) -> tuple[int, int]:
    """``QuantizeMultiplier`` of TensorFlow Lite."""
    fraction, shift = np.frexp(ratio)
    multiplier = round(float(fraction) * (1 << 31))
    return (multiplier, int(shift)) if multiplier < 1 << 31 else (1 << 30, int(shift) + 1)


def requantized(builder: GraphBuilder, sums: str, ratios: np.ndarray, rng: Rng, name: str) -> str:
    pairs = np.array([quantized(each) for each in ratios])
    parameters = [builder.constant(f"{name}/{k}", pairs[:, k].astype(np.int32)) for k in range(2)]
    operator = RequantizeFixed(int(rng.integers(-128, 128)), -128, 127)
    return builder.node(operator, (sums, *parameters), name, name)


def conv(builder: GraphBuilder, x: str, outputs: int, rng: Rng, depthwise: bool = False) -> str:
    name, channels = f"conv{len(builder.nodes)}", builder.types[x].shape[3]
    shape = (channels, 3, 3, 1) if depthwise else (outputs, 3, 3, channels)
    weights = builder.constant(f"{name}/w", rng.integers(-127, 128, shape).astype(np.int8))
    bias = builder.constant(f"{name}/b", rng.integers(-9000, 9000, shape[0]).astype(np.int32))
    zero_point = int(rng.integers(-128, 128))
    operator = Conv2d((1, 1), (1, 1, 1, 1), channels if depthwise else 1, zero_point)
    sums = builder.node(operator, (x, weights, bias), f"{name}/sum", name)
    return requantized(builder, sums, np.exp(rng.uniform(-9, -5, shape[0])), rng, name)


def add(rng: Rng, low: int = -128) -> AddFixed:
    """As ``ADD`` of the reference kernels prepares it."""
    a, b = np.exp(rng.uniform(-4, -2, 2))
    twice, out = 2 * max(a, b), max(a, b) * rng.uniform(0.7, 2)
    (a_multiplier, a_shift), (b_multiplier, b_shift) = quantized(a / twice), quantized(b / twice)
    multiplier, shift = quantized(twice / (out * (1 << 20)))
    points = [int(each) for each in rng.integers(-128, 128, 3)]
    left, right = (points[0], a_multiplier, a_shift), (points[1], b_multiplier, b_shift)
    return AddFixed(*left, *right, multiplier, shift, points[2], low, 127)


def network(seed: int, channels: int = 6) -> Graph:
    """Convolutions, a residual sum, a product of two tensors, an average."""
    rng, builder = np.random.default_rng(seed), GraphBuilder()
    x = builder.input("x", TensorType((1, 5, 4, channels), "int8"))
    first = conv(builder, x, channels, rng)
    second = conv(builder, first, channels, rng, depthwise=True)
    total = builder.node(add(rng), (second, first), "total", "total")
    third = conv(builder, total, channels, rng)
    points = [int(each) for each in rng.integers(-128, 128, 3)]
    multiplier, shift = quantized(float(np.exp(rng.uniform(-6, -3))))
    product = MultiplyFixed(*points[:2], multiplier, shift, points[2], -128, 100)
    scaled = builder.node(product, (third, total), "product", "product")
    average = AverageFixed((5, 2), (1, 2), (0, 0, 0, 0), -50, 90, unsigned=bool(seed % 2))
    return builder.build((builder.node(average, (scaled,), "mean", "mean"),))


@pytest.mark.parametrize("seed", range(4))
def test_layers_give_the_bytes_of_their_operators(seed: int) -> None:
    graph = network(seed)
    trace = Trace(CompileOptions())
    part = compile_accelerated(graph, TINY, CompileOptions(), trace, time_program)
    check_costs([part])
    x = {"x": np.random.default_rng(seed).integers(-128, 128, (1, 5, 4, 6)).astype(np.int8)}
    (found,) = run(Module.of_part(part), x).outputs.values()
    np.testing.assert_array_equal(found, interpret(graph, x)["mean"])
    code = part.dram[part.program_address :][: part.program_bytes]
    vectors = [each for each in program_from_bytes(code) if isinstance(each, Vector)]
    roundings = {each.rounding for each in vectors if each.finish is Finish.REQUANTIZE}
    assert roundings == {Rounding.FLOAT, Rounding.FIXED}


@pytest.mark.parametrize("seed", range(12))
def test_a_sum_is_exact_for_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert find_fixed_point(add(rng, int(rng.integers(-128, 0)))).inexact_pairs == 0


def one_layer(bias: int, ratio: float, weights: np.ndarray) -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 1, 1, weights.shape[1]), "int8"))
    kernel = builder.constant("w", weights.astype(np.int8)[:, None, None])
    offset = builder.constant("b", np.full(len(weights), bias, np.int32))
    conv = Conv2d((1, 1), (0, 0, 0, 0), 1, 0)
    sums = builder.node(conv, (x, kernel, offset), "sums", "dense")
    parameters = [
        builder.constant(f"p{k}", np.full(len(weights), each, np.int32))
        for k, each in enumerate(quantized(ratio))
    ]
    operator = RequantizeFixed(3, -128, 127)
    return builder.build((builder.node(operator, (sums, *parameters), "y", "dense"),))


def refusal(graph: Graph, config: HardwareConfig = TINY) -> str:
    with pytest.raises(UnsupportedOperatorError) as found:
        Vta(config).plan(Imported(graph, {}))
    return str(found.value)


MANY = np.full((4, 2048), 127)


def test_sums_that_would_lose_bits_are_refused() -> None:
    assert "a bias of 67108864; required less than 67108864" in refusal(
        one_layer(1 << 26, 2.0**-20, MANY)
    )
    assert "required less than 2^24, or that larger ones are clipped" in refusal(
        one_layer(0, 2.0**-19, MANY)
    )
    assert "a shift of 8; required at most 7" in refusal(one_layer(0, 200.0, np.ones((4, 4))))


@pytest.mark.parametrize("ratio", [2.0**-12, 0.7 * 2.0**-13, 0.9, 100.0, 2.0**-30])
def test_larger_sums_that_are_clipped_in_any_case_are_not(ratio: float) -> None:
    weights = MANY if 2.0**-20 < ratio < 0.5 else np.eye(4) * 127
    graph = one_layer(77, ratio, weights)
    part = compile_accelerated(graph, TINY, CompileOptions(), Trace(CompileOptions()), time_program)
    for value in (-128, -1, 0, 1, 127):
        x = {"x": np.full((1, 1, 1, weights.shape[1]), value, np.int8)}
        (found,) = run(Module.of_part(part), x).outputs.values()
        np.testing.assert_array_equal(found, interpret(graph, x)["y"])


def test_a_configuration_without_the_rounding_refuses_it() -> None:
    config = replace(TINY, name="without", fixed_rounding=False)
    assert "has no fixed_rounding" in refusal(one_layer(0, 0.01, np.ones((4, 4))), config)


def dense(scale: float, rng: Rng, inputs: int = 24, outputs: int = 5) -> Graph:
    """A dense layer that rounds once, in float64."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, inputs), "int8"))
    weights = rng.integers(-127, 128, (outputs, inputs)).astype(np.int8)
    bias = rng.integers(-900, 900, outputs).astype(np.int32)
    constants = (builder.constant("w", weights), builder.constant("b", bias))
    sums = builder.node(Dense(-3), (x, *constants), "sums", "dense")
    scales = builder.constant("s", np.full(outputs, scale))
    operator = RequantizeReal(int(rng.integers(-128, 128)), -128, 127)
    return builder.build((builder.node(operator, (sums, scales), "y", "dense"),))


@pytest.mark.parametrize("scale", [0.5, 0.25, 1 / 3, 0.0171, 0.000731])
def test_a_float32_scale_gives_the_bytes_of_one_product_in_float64(scale: float) -> None:
    graph = dense(scale, np.random.default_rng(3))
    operator = graph.nodes[1].operator
    assert isinstance(operator, RequantizeReal)
    limits = np.full(5, -60_000), np.full(5, 60_000)
    scales = find_scales(operator, limits, np.full(5, scale))
    assert scales is not None
    sums = np.repeat(np.arange(-60_000, 60_001, dtype=np.int32)[:, None], 5, axis=1)
    finish = Requantize(operator.zero_point, -128, 127)
    np.testing.assert_array_equal(
        finish.evaluate((sums, scales))[0], operator.evaluate((sums, np.full(5, scale)))[0]
    )
    (rewritten,) = REAL_FINISHES.run(graph).nodes[1:]
    assert isinstance(rewritten.operator, Requantize)


@pytest.mark.parametrize("unsigned", [False, True])
def test_means_of_any_number_of_bytes_have_a_scale(unsigned: bool) -> None:
    for count in (1, 2, 4, 6, 9, 12, 16, 49, 64, 125):
        totals = np.arange(-128 * count, 127 * count + 1)[:, None]
        values = totals // count + (np.arange(count) < totals % count)
        given = {"x": values.astype(np.int8)[None, :, :, None]}
        builder = GraphBuilder()
        x = builder.input("x", TensorType(given["x"].shape, "int8"))
        mean = AverageFixed((1, count), (1, 1), (0, 0, 0, 0), -128, 127, unsigned)
        graph = builder.build((builder.node(mean, (x,), "y", "mean"),))
        found = FIXED_AVERAGES.run(graph)
        assert not any(isinstance(node.operator, AverageFixed) for node in found.nodes)
        np.testing.assert_array_equal(interpret(found, given)["y"], interpret(graph, given)["y"])


@pytest.mark.parametrize(
    ("limits", "kinds"),
    [
        ((-128, 127), [AveragePool2d]),
        ((-127, 127), [AveragePool2d, Lookup]),
        ((-128, 126), [AveragePool2d, Lookup]),
        ((0, 6), [AveragePool2d, Lookup]),
    ],
)
def test_only_means_that_are_limited_have_a_table(
    limits: tuple[int, int], kinds: list[type]
) -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 2, 128, 1), "int8"))
    mean = AverageFixed((2, 1), (1, 1), (0, 0, 0, 0), *limits)
    graph = builder.build((builder.node(mean, (x,), "y", "mean"),))
    found = FIXED_AVERAGES.run(graph)
    assert [type(node.operator) for node in found.nodes] == kinds
    given = {"x": np.arange(-128, 128).astype(np.int8).reshape(1, 2, 128, 1)}
    np.testing.assert_array_equal(interpret(found, given)["y"], interpret(graph, given)["y"])


def test_a_channel_of_one_result_needs_no_weights() -> None:
    """Its bias is beyond what the vector unit keeps; the other channel is left as it is."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 3, 3, 4), "int8"))
    rng = np.random.default_rng(5)
    weights = builder.constant("w", rng.integers(-127, 128, (2, 3, 3, 4)).astype(np.int8))
    bias = builder.constant("b", np.array([1 << 30, 77], np.int32))
    conv = Conv2d((1, 1), (1, 1, 1, 1), 1, 4)
    sums = builder.node(conv, (x, weights, bias), "sums", "conv")
    pairs = np.array([quantized(2.0**-24 * 1.1), quantized(0.003)], np.int32)
    parameters = [builder.constant(f"p{k}", pairs[:, k].copy()) for k in range(2)]
    operator = RequantizeFixed(-20, -128, 127)
    graph = builder.build((builder.node(operator, (sums, *parameters), "y", "conv"),))
    options = CompileOptions()
    part = compile_accelerated(graph, TINY, options, Trace(options), time_program)
    given = {"x": rng.integers(-128, 128, (1, 3, 3, 4)).astype(np.int8)}
    (found,) = run(Module.of_part(part), given).outputs.values()
    np.testing.assert_array_equal(found, interpret(graph, given)["y"])
    assert len(Vta(TINY).plan(Imported(graph, {})).pieces) == 1
