"""The ONNX importer: operators against ONNX Runtime, whole models against golden files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.operators.integer.products import Conv2d, Dense
from dovetail.compiler.graph.operators.integer.values import Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, Pad
from dovetail.compiler.graph.operators.movement import PadTensor, Transpose
from dovetail.compiler.graph.passes.integer_layers.recognition import integer_layers
from dovetail.compiler.graph.passes.simplify import simplify

from .models import F32, Array, ModelBuilder, check, integer_graph, reference

ALL_INT8 = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
X = (F32(0.05), np.int8(-3))
Y = (F32(0.031), np.int8(7))


def image(seed: int, shape: tuple[int, ...] = (1, 3, 8, 6)) -> Array:
    """Random int8 of ``shape``."""
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def convolved(b: ModelBuilder, x: str, outputs: int = 4, channels: int = 3) -> str:
    """A 3x3 convolution of the float tensor ``x``, padded by 1."""
    weights = np.random.default_rng(outputs).integers(-127, 128, (outputs, channels, 3, 3))
    w = b.dequantize(b.constant(weights.astype(np.int8)), F32(0.01), np.int8(0))
    return b.node("Conv", [x, w], pads=[1, 1, 1, 1])


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("Relu", {}),
        ("Sigmoid", {}),
        ("Tanh", {}),
        ("HardSigmoid", {}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("HardSwish", {}),
        ("LeakyRelu", {}),
        ("LeakyRelu", {"alpha": 0.3}),
        ("Elu", {}),
        ("Abs", {}),
        ("Neg", {}),
        ("Identity", {}),
    ],
)
def test_unary_functions_equal_onnxruntime_on_every_value(
    kind: str, attributes: dict[str, Any]
) -> None:
    b = ModelBuilder()
    y = b.quantize(b.node(kind, [b.dequantize("x", *X)], **attributes), *Y)
    check(b.build({"x": ("int8", (1, 256))}, y, opset=14), {"x": ALL_INT8})


@pytest.mark.parametrize(("kind", "attributes"), [("Sigmoid", {}), ("LeakyRelu", {"alpha": 0.2})])
def test_qlinear_functions_equal_onnxruntime(kind: str, attributes: dict[str, Any]) -> None:
    b = ModelBuilder()
    constants = [b.constant(value) for value in (*X, *Y)]
    y = b.node(f"QLinear{kind}", ["x", *constants], domain="com.microsoft", **attributes)
    check(b.build({"x": ("int8", (1, 256))}, y), {"x": ALL_INT8})


def test_a_product_of_functions_of_one_tensor_is_one_table() -> None:
    b = ModelBuilder()
    x = b.dequantize("x", *X)
    y = b.quantize(b.node("Mul", [x, b.node("Sigmoid", [x])]), *Y)
    model = b.build({"x": ("int8", (1, 256))}, y)
    check(model, {"x": ALL_INT8})
    assert [type(node.operator) for node in integer_graph(model).nodes] == [Lookup]


@pytest.mark.parametrize("limits", [(0.0, None), (0.0, 6.0), (-1.0, 1.0), (None, 0.5)])
def test_clip_after_a_convolution_becomes_limits(limits: tuple[float | None, ...]) -> None:
    b = ModelBuilder()
    names = ["" if value is None else b.constant(F32(value)) for value in limits]
    clipped = b.node("Clip", [convolved(b, b.dequantize("x", *X)), *names])
    y = b.quantize(clipped, 0.05, np.int8(-3))
    graph = integer_graph(b.build({"x": ("int8", (1, 3, 8, 6))}, y))
    last = next(n.operator for n in graph.nodes if isinstance(n.operator, Requantize))
    low, high = limits
    assert last.low == (-128 if low is None else round(low / 0.05) - 3)
    assert last.high == (127 if high is None else min(127, round(high / 0.05) - 3))


@pytest.mark.parametrize("keepdims", [0, 1])
def test_means_over_height_and_width_are_pools(keepdims: int) -> None:
    b = ModelBuilder()
    mean = b.node("ReduceMean", [b.dequantize("x", *X)], axes=[2, 3], keepdims=keepdims)
    model = b.build({"x": ("int8", (1, 3, 8, 6))}, b.quantize(mean, *Y))
    check(model, {"x": image(1)})


def test_a_mean_may_be_flattened_before_it_is_quantised() -> None:
    b = ModelBuilder()
    mean = b.node("GlobalAveragePool", [b.dequantize("x", *X)])
    y = b.quantize(b.node("Flatten", [mean]), *Y)
    check(b.build({"x": ("int8", (1, 3, 8, 6))}, y), {"x": image(1)})


def test_means_of_channels_last_tensors_are_pools() -> None:
    b = ModelBuilder()
    mean = b.node("ReduceMean", [b.dequantize("x", *X)], axes=[1, 2], keepdims=0)
    model = b.build({"x": ("int8", (1, 8, 6, 3))}, b.quantize(mean, *Y))
    check(model, {"x": image(2, (1, 8, 6, 3))})
    assert not any(isinstance(n.operator, Transpose) for n in integer_graph(model).nodes)


def test_a_mean_of_what_a_convolution_of_rows_makes_is_a_pool() -> None:
    b = ModelBuilder()
    w = b.dequantize(b.constant(np.ones((4, 3, 2), np.int8)), F32(0.1), np.int8(0))
    rows = b.quantize(b.node("Conv", [b.dequantize("x", *X), w]), *Y)
    mean = b.node("ReduceMean", [b.dequantize(rows, *Y)], axes=[2], keepdims=0)
    model = b.build({"x": ("int8", (1, 3, 8))}, b.quantize(mean, *Y))
    check(model, {"x": image(3, (1, 3, 8))})
    assert any(isinstance(n.operator, AveragePool2d) for n in integer_graph(model).nodes)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("scale", [1 / 256, 0.0045])
def test_softmax_equals_onnxruntime(dtype: str, scale: float) -> None:
    b = ModelBuilder()
    kind, zero = (np.int8, -128) if dtype == "int8" else (np.uint8, 0)
    y = b.quantize(b.node("Softmax", [b.dequantize("x", 0.11, kind(5))]), scale, kind(zero))
    x = (image(3, (1, 33)).astype(np.int16) - zero - 128).astype(kind)
    check(b.build({"x": (dtype, (1, 33))}, y, dtype), {"x": x})


def test_padding_with_the_zero_point_goes_into_the_convolution() -> None:
    b = ModelBuilder()
    pads = b.constant(np.array([0, 0, 1, 2, 0, 0, 0, 1], np.int64))
    padded = b.node("Pad", [b.dequantize("x", *X), pads])
    y = b.quantize(convolved(b, padded), *Y)
    model = b.build({"x": ("int8", (1, 3, 8, 6))}, y)
    graph = integer_graph(model)
    assert any(isinstance(node.operator, Pad) for node in graph.nodes)
    nodes = simplify(graph).nodes
    assert not any(isinstance(node.operator, Pad) for node in nodes)
    assert next(n.operator.pads for n in nodes if isinstance(n.operator, Conv2d)) == (2, 3, 1, 2)
    check(model, {"x": image(4)})


def test_what_stays_in_float_is_padded_as_the_model_has_it() -> None:
    """Results of the CPU between layers are stored channels first."""
    b = ModelBuilder()
    x = b.node("CumSum", [b.dequantize("x", 0.05, np.int8(0)), b.constant(np.int64(3))])
    stored = b.dequantize(b.quantize(x, 0.2, np.int8(3)), 0.2, np.int8(3))
    borders = b.constant(np.array([0, 0, 1, 2, 0, 0, 0, 1]))
    y = b.quantize(b.node("Pad", [stored, borders], mode="reflect"), 0.2, np.int8(3))
    model = b.build({"x": ("int8", (1, 3, 5, 4))}, y)
    imported = open_model(model).to_graph_and_rest(batch=1)
    found = integer_layers(imported.graph, imported.kinds).graph
    assert not any(isinstance(node.operator, PadTensor) for node in found.nodes)
    given = {"x": image(2, (1, 3, 5, 4))}
    np.testing.assert_array_equal(run(found, given)[y], reference(model, given))


def test_a_residual_network_with_flatten_and_dense_equals_onnxruntime() -> None:
    b = ModelBuilder()

    def requantized(real: str, scale: float, zero_point: int) -> str:
        as_int8 = b.quantize(real, scale, np.int8(zero_point))
        return b.dequantize(as_int8, scale, np.int8(zero_point))

    x = requantized("x", 0.05, -3)
    inner = requantized(b.node("Relu", [convolved(b, x, 3)]), 0.2, -128)
    total = requantized(b.node("Add", [x, inner]), 0.21, 4)
    pooled = b.node("MaxPool", [total], kernel_shape=[2, 2], strides=[2, 2])
    flat = b.node("Flatten", [requantized(pooled, 0.21, 4)])
    weights = np.random.default_rng(9).integers(-127, 128, (36, 5)).astype(np.int8)
    w = b.dequantize(b.constant(weights), 0.01, np.int8(0))
    y = requantized(b.node("MatMul", [flat, w]), 0.3, 0)
    model = b.build({"x": ("float32", ("N", 3, 8, 6))}, y, "float32")
    check(model, {"x": np.random.default_rng(5).normal(0, 4, (1, 3, 8, 6)).astype(F32)})


@pytest.mark.parametrize(
    ("kind", "attributes", "operand"),
    [
        ("Transpose", {"perm": [0, 2, 3, 1]}, None),
        ("Reshape", {}, [0, -1, 6]),
        ("Reshape", {}, [1, 144]),
        ("Flatten", {"axis": 2}, None),
        ("Squeeze", {}, [0]),
        ("Unsqueeze", {}, [1]),
    ],
)
def test_movement_equals_onnxruntime(
    kind: str, attributes: dict[str, Any], operand: list[int] | None
) -> None:
    b = ModelBuilder()
    extra = [] if operand is None else [b.constant(np.array(operand, np.int64))]
    pooled = b.quantize(b.node("MaxPool", [b.dequantize("x", *X)], kernel_shape=[1, 1]), *X)
    y = b.node(kind, [pooled, *extra], **attributes)
    check(b.build({"x": ("int8", (1, 3, 8, 6))}, y), {"x": image(6)})


def test_an_input_that_is_also_an_output_keeps_both_names() -> None:
    b = ModelBuilder()
    model = b.build({"x": ("uint8", (1, 4))}, b.node("Identity", ["x"]), "uint8")
    check(model, {"x": np.array([[0, 1, 128, 255]], np.uint8)})


def test_unsigned_weights_whose_differences_fit_int8_are_taken() -> None:
    b = ModelBuilder()
    weights = np.random.default_rng(2).integers(10, 250, (4, 3, 1, 1)).astype(np.uint8)
    x_zero = np.uint8(120)
    w = b.dequantize(b.constant(weights), 0.01, np.uint8(128))
    real = b.node("Conv", [b.dequantize("x", 0.05, x_zero), w])
    model = b.build({"x": ("uint8", (1, 3, 5, 5))}, b.quantize(real, 0.1, np.uint8(99)), "uint8")
    check(model, {"x": np.random.default_rng(3).integers(0, 256, (1, 3, 5, 5)).astype(np.uint8)})


@pytest.mark.parametrize(("most", "steps"), [(64, [8, -2]), (8, [8 * 15, -31]), (3, [256, -67])])
def test_a_float_bias_is_whole_steps_finer_ones_where_weights_leave_room(
    most: int, steps: list[int]
) -> None:
    b = ModelBuilder()
    weights = np.array([[[[2]]], [[[-most]]]], np.int8)
    w = b.dequantize(b.constant(weights), 0.5, np.int8(0))
    bias = b.constant(np.array([1.0, -0.26], F32))
    y = b.quantize(b.node("Conv", [b.dequantize("x", 0.25, np.int8(0)), w, bias]), *Y)
    graph = integer_graph(b.build({"x": ("int8", (1, 1, 2, 2))}, y))
    node = next(n for n in graph.nodes if isinstance(n.operator, Conv2d))
    assert graph.constants[node.inputs[2]].tolist() == steps


def test_nodes_keep_the_names_of_the_model() -> None:
    b = ModelBuilder()
    y = b.quantize(convolved(b, b.dequantize("x", *X)), *Y)
    graph = integer_graph(b.build({"x": ("int8", (1, 3, 8, 6))}, y))
    conv = next(node for node in graph.nodes if isinstance(node.operator, Conv2d))
    assert conv.origin.startswith("conv")
    assert graph.outputs == (y,)


@pytest.mark.parametrize(
    "name",
    [
        "mlperf_tiny/ic_resnet8_int8",
        "mlperf_tiny/ad01_int8",
        "mlperf_tiny/kws_dscnn_int8",
        "mlperf_tiny/vww_mbv1_int8",
        "mobilenet_v2/mobilenet_v2_int8",
    ],
)
def test_real_models_give_the_bytes_of_onnxruntime(shared_models: Path, name: str) -> None:
    golden = np.load(shared_models / f"{name}.golden.npz")
    graph = simplify(integer_graph(shared_models / f"{name}.onnx"))
    for x, wanted in zip(golden["input"][:8], golden["onnxruntime"], strict=False):
        result = run(graph, {graph.inputs[0]: x[None]})[graph.outputs[0]]
        np.testing.assert_array_equal(result[0], wanted)


def test_real_models_have_no_transpose_and_every_sum_is_proved(shared_models: Path) -> None:
    graph = simplify(integer_graph(shared_models / "mlperf_tiny/ic_resnet8_int8.onnx"))
    kinds = [type(node.operator) for node in graph.nodes]
    assert Transpose not in kinds
    assert kinds.count(Conv2d) == 9
    assert kinds.count(Dense) == 1


@pytest.mark.parametrize("strides", [[1, 1], [2, 1]])
@pytest.mark.parametrize("dilations", [[2, 1], [2, 3]])
def test_taps_of_transposed_convolutions_lie_apart(
    strides: list[int], dilations: list[int]
) -> None:
    b = ModelBuilder()
    weights = np.random.default_rng(9).integers(-5, 6, (3, 2, 2, 2)).astype(np.int8)
    w = b.dequantize(b.constant(weights), F32(0.25), np.int8(0))
    x = b.dequantize("x", F32(2**-3), np.int8(-3))  # Sums of floats are exact, ties too.
    real = b.node("ConvTranspose", [x, w], strides=strides, dilations=dilations)
    y = b.quantize(real, F32(0.5), np.int8(7))
    check(b.build({"x": ("int8", (1, 3, 8, 6))}, y), {"x": image(4)})
