"""Integer operators as general ones: the graph interpreter's bytes, interpreted and compiled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Contract
from dovetail.compiler.graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from dovetail.compiler.graph.operators.integer.fixed_point import (
    AddFixed,
    AverageFixed,
    MultiplyFixed,
    RequantizeFixed,
    RequantizeReal,
)
from dovetail.compiler.graph.operators.integer.products import Conv2d, Dense
from dovetail.compiler.graph.operators.integer.values import (
    Add,
    Lookup,
    Multiply,
    Requantize,
    Softmax,
    WeightedAdd,
)
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, MaxPool2d, Pad
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.passes.expand_integers.expand import ExpandIntegers
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget, host_cpu
from dovetail.compiler.targets.cpu.segment import EXACT_PASSES, compile_segment

from ..graphs import convolution, image_builder

IMAGE = (1, 6, 5, 3)
RNG = np.random.default_rng(8)


def values(graph: Graph, seed: int) -> dict[str, NDArray[np.generic]]:
    """Random values, some beyond what they are quantised to."""
    rng = np.random.default_rng(seed)
    found: dict[str, NDArray[np.generic]] = {}
    for name in graph.inputs:
        kind = graph.types[name]
        if kind.dtype.is_float:
            found[name] = (3 * rng.standard_normal(kind.shape)).astype(np.float32)
        else:
            limits = np.iinfo(str(kind.dtype))
            drawn = rng.integers(limits.min, limits.max, kind.shape, endpoint=True)
            found[name] = drawn.astype(kind.dtype.numpy)
    return found


def check(graph: Graph, level: str = "native") -> None:
    """Both the expanded graph and its machine code give the graph's bytes."""
    expanded = ExpandIntegers().run(graph)
    assert (expanded.inputs, expanded.outputs) == (graph.inputs, graph.outputs)
    compiled = compile_segment(graph, LlvmOptions(level), EXACT_PASSES)
    for seed in range(3):
        inputs = values(graph, seed)
        wanted, meant, found = run(graph, inputs), run(expanded, inputs), compiled.run(inputs)
        for name in graph.outputs:
            np.testing.assert_array_equal(meant[name], wanted[name])
            np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.parametrize(
    ("operator", "kinds"),
    [
        (Add(0.7, 1.3, 3, -9, 5, -128, 127), ("int8", "int8")),
        (Add(0.031, 0.9, 3, -9, 5, -20, 100, unsigned=True), ("int8", "int8")),
        (WeightedAdd(3_000_001, -700_003, 90_000_001, 2.0**-22, 5, -100, 120), ("int8", "int8")),
        (AddFixed(3, 2**30, 0, -9, 2**31 - 9, -3, 2**30 + 7, -18, 5, -100, 127), ("int8",) * 2),
        (AddFixed(3, 2**30, 0, -9, -(2**30), 0, 2**30 + 7, -17, 5, -128, 9), ("int8",) * 2),
        (MultiplyFixed(3, -128, 2**30 + 99, -5, 7, -128, 127), ("int8",) * 2),
        (MultiplyFixed(3, -128, 2**30 + 99, 2, 7, -128, 127), ("int8",) * 2),
        (AverageFixed((3, 2), (2, 1), (1, 0, 2, 1), -100, 100), ("int8",)),
        (AverageFixed((2, 2), (2, 2), (0, 0, 0, 0), -128, 127, unsigned=True), ("int8",)),
        (MaxPool2d((3, 2), (2, 1), (1, 0, 1, 1)), ("int8",)),
        (AveragePool2d((2, 3), (2, 1), 7, -3, 0.21), ("int8",)),
        (Pad((1, 0, 2, 1), -7), ("int8",)),
        (Shift128("uint8"), ("int8",)),
        (Shift128("int8"), ("uint8",)),
        (Quantize(0.03, 4), ("float32",)),
        (Dequantize(0.03, 4), ("int8",)),
        (Softmax(0.11, 3, 1 / 256, -128), ("int8",)),
        (Reshape((5, 18)), ("int8",)),
        (Transpose((0, 3, 1, 2)), ("int8",)),
    ],
)
def test_an_operator_keeps_its_bytes(operator: TensorOperator, kinds: tuple[str, ...]) -> None:
    builder = GraphBuilder()
    names = [builder.input(f"x{n}", TensorType(IMAGE, kind)) for n, kind in enumerate(kinds)]
    check(builder.build((builder.node(operator, tuple(names), "y", "n"),)))


@pytest.mark.parametrize("shape", [IMAGE, (1, 1, 1, IMAGE[3]), (1, 1, 1, 1)])
@pytest.mark.parametrize("unsigned", [False, True])
def test_products_keep_their_bytes(shape: tuple[int, ...], unsigned: bool) -> None:
    builder = GraphBuilder()
    names = [builder.input(f"x{n}", TensorType(s, "int8")) for n, s in enumerate((IMAGE, shape))]
    pool = builder.node(MaxPool2d((1, 1), (1, 1), (0, 0, 0, 0)), (names[0],), "pool", "pool")
    for operand in (names[0], pool):
        operator = Multiply(0.017, 3, -128, 5, -100, 120, unsigned)
        names.append(builder.node(operator, (operand, names[1]), f"y {operand}", "n"))
    check(builder.build(tuple(names[2:])))


def test_a_table_keeps_its_bytes() -> None:
    builder = image_builder(IMAGE)
    table = builder.constant("t", RNG.integers(-128, 128, 256).astype(np.int8))
    check(builder.build((builder.node(Lookup(), ("x", table), "y", "n"),)))


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("weight_zero_point", [0, -5])
def test_convolutions_keep_their_bytes(groups: int, weight_zero_point: int) -> None:
    builder = image_builder(IMAGE)
    shape = (3, 3, 2, 3 // groups)
    w = builder.constant("w", RNG.integers(-128, 128, shape).astype(np.int8))
    b = builder.constant("b", RNG.integers(-5000, 5000, 3).astype(np.int32))
    s = builder.constant("s", RNG.uniform(0.001, 0.01, 3).astype(np.float32))
    operator = Conv2d((2, 1), (1, 0, 1, 1), groups, 11, weight_zero_point)
    total = builder.node(operator, ("x", w, b), "sum", "conv")
    check(builder.build((builder.node(Requantize(-4, -100, 127), (total, s), "y", "conv"),)))


@pytest.mark.parametrize("outputs", [3, 16])
@pytest.mark.parametrize("shifts", [(-8, -3), (0, 3), (-2, 2), (-5, -5)])
def test_sums_scaled_by_multipliers_and_shifts_keep_their_bytes(
    outputs: int, shifts: tuple[int, int]
) -> None:
    builder = image_builder(IMAGE)
    w = builder.constant("w", RNG.integers(-128, 128, (outputs, 3, 2, 3)).astype(np.int8))
    b = builder.constant("b", RNG.integers(-5000, 5000, outputs).astype(np.int32))
    m = builder.constant("m", RNG.integers(1 << 30, 1 << 31, outputs).astype(np.int32))
    s = builder.constant("s", RNG.integers(*shifts, outputs, np.int32, endpoint=True))
    total = builder.node(Conv2d((2, 1), (1, 0, 1, 1), 1, 11), ("x", w, b), "sum", "conv")
    y = builder.node(RequantizeFixed(-4, -100, 127), (total, m, s), "y", "conv")
    check(builder.build((y,)))


@pytest.mark.parametrize("scale", [1e-4, 0.25])
def test_sums_rounded_once_keep_their_bytes(scale: float) -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((4, 40), "int8"))
    w = builder.constant("w", RNG.integers(-127, 128, (7, 40)).astype(np.int8))
    b = builder.constant("b", RNG.integers(-100, 100, 7).astype(np.int32))
    s = builder.constant("s", scale * RNG.integers(1, 3, 7).astype(np.float64))
    total = builder.node(Dense(-128), (x, w, b), "sum", "dense")
    check(builder.build((builder.node(RequantizeReal(-4, -128, 100), (total, s), "y", "dense"),)))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_convolutions_of_pixels_are_dot_products_and_keep_their_bytes(channels: int) -> None:
    builder = image_builder((1, 6, 5, channels))
    w = builder.constant("w", RNG.integers(-128, 128, (20, 3, 2, channels)).astype(np.int8))
    b = builder.constant("b", RNG.integers(-5000, 5000, 20).astype(np.int32))
    s = builder.constant("s", RNG.uniform(0.001, 0.01, 20).astype(np.float32))
    total = builder.node(Conv2d((2, 1), (1, 0, 1, 1), 1, 11), ("x", w, b), "sum", "conv")
    graph = builder.build((builder.node(Requantize(-4, -100, 127), (total, s), "y", "conv"),))
    check(graph)
    (contraction,) = (
        node for node in EXACT_PASSES.run(graph).nodes if isinstance(node.operator, Contract)
    )
    assert contraction.operator.dtype == DType.INT32
    width = EXACT_PASSES.run(graph).types[contraction.inputs[0]].shape[-1]
    assert width == (8 if channels == 1 else 4)


@settings(max_examples=25)
@given(st.data())
def test_layers_of_single_channels_are_dot_products_and_keep_their_bytes(
    data: st.DataObject,
) -> None:
    kernel = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 6)))
    strides = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    dilations = data.draw(st.tuples(st.integers(1, 2), st.just(1)))
    pads = data.draw(st.tuples(*(st.integers(0, 2) for _ in range(4))))
    height, width = (
        (size - 1) * dilation + 1 + data.draw(st.integers(0, 9))
        for size, dilation in zip(kernel, dilations, strict=True)
    )
    channels = data.draw(st.sampled_from((8, 16, 20, 32)))
    zero_point = data.draw(st.integers(-128, 127))
    builder = image_builder((1, height, width, channels))
    w = RNG.integers(-128, 128, (channels, *kernel, 1)).astype(np.int8)
    b = builder.constant("b", RNG.integers(-5000, 5000, channels).astype(np.int32))
    s = builder.constant("s", RNG.uniform(0.001, 0.01, channels).astype(np.float32))
    operator = Conv2d(strides, pads, channels, zero_point, 0, dilations)
    total = builder.node(operator, ("x", builder.constant("w", w), b), "sum", "conv")
    graph = builder.build((builder.node(Requantize(-4, -100, 127), (total, s), "y", "conv"),))
    check(graph)
    (contraction,) = (
        node for node in EXACT_PASSES.run(graph).nodes if isinstance(node.operator, Contract)
    )
    assert contraction.operator.dtype == DType.INT32


@pytest.mark.parametrize("level", ["x86-64", "avx2", "avx512"])
@pytest.mark.parametrize("groups", [1, 32])
@pytest.mark.parametrize("kernel", [1, 3])
def test_cpus_without_dot_products_keep_their_bytes(level: str, groups: int, kernel: int) -> None:
    missing = CpuTarget.at_level(level).features - host_cpu().features
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    builder = image_builder((1, 9, 8, 32))
    w = RNG.integers(-128, 128, (32, kernel, kernel, 32 // groups)).astype(np.int8)
    b = builder.constant("b", RNG.integers(-5000, 5000, 32).astype(np.int32))
    s = builder.constant("s", RNG.uniform(0.001, 0.01, 32).astype(np.float32))
    operator = Conv2d((1, 1), (kernel // 2,) * 4, groups, 11)
    total = builder.node(operator, ("x", builder.constant("w", w), b), "sum", "conv")
    graph = builder.build((builder.node(Requantize(-4, -100, 127), (total, s), "y", "conv"),))
    check(graph, level)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("unsigned", [False, True])
def test_sums_of_layers_keep_their_bytes(last: int, unsigned: bool) -> None:
    builder = image_builder((1, 6, 5, 16))
    layers = [convolution(builder, "x", 16) for _ in range(2)]
    operator = Add(0.7, 1.3, 3, -9, 5, -120, 127, unsigned)
    total = builder.node(operator, (layers[last], layers[1 - last]), "t", "add")
    again = builder.node(operator, (total, convolution(builder, total, 16)), "u", "add")
    check(builder.build((builder.node(operator, (again, again), "y", "add"),)))


@pytest.mark.parametrize("bias", [100, 1 << 28])
def test_sums_beyond_float32_are_exact(bias: int) -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((4, 40), "int8"))
    w = builder.constant("w", RNG.integers(-127, 128, (7, 40)).astype(np.int8))
    b = builder.constant("b", RNG.integers(-bias, bias, 7).astype(np.int32))
    s = builder.constant("s", RNG.uniform(1e-7, 1e-3, 7).astype(np.float32))
    total = builder.node(Dense(-128), (x, w, b), "sum", "dense")
    check(builder.build((builder.node(Requantize(-4, -128, 127), (total, s), "y", "dense"),)))


def test_layers_in_a_row_keep_their_bytes_and_their_order() -> None:
    builder = image_builder(IMAGE)
    y = convolution(builder, convolution(builder, "x", 4), 4)
    pooled = builder.node(MaxPool2d((2, 2), (2, 2), (0, 0, 0, 0)), (y,), "p", "pool")
    flat = builder.node(Reshape((1, 24)), (pooled,), "f", "flat")
    graph = builder.build((y, flat))
    check(graph)
    kinds = [type(node.operator).__name__ for node in ExpandIntegers().run(graph).nodes]
    assert kinds.count("Transpose") == 3, "one on the way in, one for each output"
