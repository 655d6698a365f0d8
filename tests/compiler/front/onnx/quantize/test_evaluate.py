"""The float evaluator against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.onnx.node import OnnxNode
from dovetail.compiler.front.onnx.quantize.evaluate import Evaluator, _has_kernel
from dovetail.compiler.front.onnx.quantize.model import read_model
from dovetail.compiler.graph.ir import Array

from .floats import onnx_runtime, random, small_model

SIZES = st.integers(1, 3)


def evaluated(model: onnx.ModelProto, x: Array) -> Array:
    return dict(Evaluator(read_model(model)).run({"x": x}))["y"]


@st.composite
def windows(draw: st.DrawFn) -> dict[str, object]:
    """Kernel, strides, dilations and a kind of padding."""
    chosen: dict[str, object] = {
        "kernel_shape": [draw(SIZES), draw(SIZES)],
        "strides": [draw(SIZES), draw(SIZES)],
    }
    match draw(st.sampled_from(["pads", "SAME_UPPER", "SAME_LOWER", "VALID", "none"])):
        case "pads":
            kernel = chosen["kernel_shape"]
            chosen["pads"] = [draw(st.integers(0, k - 1)) for k in [*kernel, *kernel]]
        case "none":
            pass
        case mode:
            chosen["auto_pad"] = mode
            # ONNX Runtime takes the padding of a stride beyond the kernel for negative.
            pairs = zip(chosen["kernel_shape"], chosen["strides"], strict=True)
            chosen["strides"] = [min(pair) for pair in pairs]
    return chosen


@given(windows(), SIZES, SIZES, st.sampled_from(["one", "two", "depthwise"]), st.booleans())
@settings(max_examples=60)
def test_convolutions_are_onnx_runtimes(
    window: dict[str, object], channels: int, multiple: int, grouping: str, has_bias: bool
) -> None:
    groups = {"one": 1, "two": 2, "depthwise": 2 * channels}[grouping]
    inputs, outputs = 2 * channels, 2 * channels * multiple
    weights = random((outputs, inputs // groups, *window["kernel_shape"]), 1)
    constants = {"w": weights} | ({"b": random((outputs,), 2)} if has_bias else {})
    node = helper.make_node("Conv", ["x", *constants], ["y"], group=groups, **window)
    model = small_model([node], [1, inputs, 7, 6], constants)
    x = random((1, inputs, 7, 6))
    np.testing.assert_allclose(evaluated(model, x), onnx_runtime(model, x)[0], atol=1e-4)


@given(windows(), st.booleans(), st.booleans())
@settings(max_examples=60)
def test_pools_are_onnx_runtimes(window: dict[str, object], largest: bool, flag: bool) -> None:
    extra = {"ceil_mode": flag} if largest else {"count_include_pad": flag}
    if largest and "auto_pad" in window:
        extra = {}
    node = helper.make_node(
        "MaxPool" if largest else "AveragePool", ["x"], ["y"], **window, **extra
    )
    model = small_model([node], [1, 3, 7, 6])
    x = random((1, 3, 7, 6))
    np.testing.assert_allclose(evaluated(model, x), onnx_runtime(model, x)[0], atol=1e-5)


def test_dilated_convolution_is_onnx_runtimes() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], dilations=[2, 3], pads=[1, 2, 1, 2])
    model = small_model([node], [1, 3, 9, 9], {"w": random((4, 3, 3, 2), 1)})
    x = random((1, 3, 9, 9))
    np.testing.assert_allclose(evaluated(model, x), onnx_runtime(model, x)[0], atol=1e-5)


def test_batch_normalisation_is_onnx_runtimes() -> None:
    node = helper.make_node("BatchNormalization", ["x", "s", "o", "m", "v"], ["y"], epsilon=0.01)
    constants = {name: random((3,), seed) for seed, name in enumerate("som")}
    constants["v"] = np.abs(random((3,), 9))
    x = random((1, 3, 4, 5))
    model = small_model([node], x.shape, constants)
    np.testing.assert_allclose(evaluated(model, x), onnx_runtime(model, x)[0], atol=1e-5)


def test_values_come_in_order_and_with_their_names() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    model = read_model(small_model(nodes, [1, 2]))
    x = np.array([[1.5, -2]], np.float32)
    found = list(Evaluator(model).run({"x": x}))
    assert [name for name, _ in found] == ["x", "a", "y"]
    np.testing.assert_array_equal(found[-1][1], [[-1.5, 0]])


def test_only_what_follows_from_a_change_is_computed_again() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["x"], ["b"]),
        helper.make_node("Sub", ["a", "b"], ["y"]), helper.make_node("Abs", ["b"], ["z"]),
    ]  # fmt: skip
    model = read_model(small_model(nodes, [1, 2], outputs=("y", "z")))
    evaluator, x = Evaluator(model), np.array([[1.5, -2]], np.float32)
    values = dict(evaluator.run({"x": x}))
    values["b"] = values["b"] + 100  # nobody computes it again
    found = evaluator.again(values, {"a": np.array([[5, 6]], np.float32)})
    np.testing.assert_array_equal(found["y"], [[5 - 98.5, 6 - 102]])
    np.testing.assert_array_equal(found["z"], values["z"])
    found = evaluator.again(values, {"x": -x})
    np.testing.assert_array_equal(found["y"], [[-1.5, 4]])
    np.testing.assert_array_equal(found["z"], [[1.5, 2]])


def test_a_node_that_cannot_be_computed_is_named() -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="odd")
    model = small_model([node], [1, 4], {"shape": np.array([2, 2])})
    with pytest.raises(ModelError, match=r"node 'odd' \(Reshape\) cannot be evaluated"):
        evaluated(model, random((1, 5)))


IMAGE, ROWS = np.zeros((1, 2, 3, 3), np.float32), np.zeros((1, 2, 3), np.float32)


@pytest.mark.parametrize(
    ("kind", "attributes", "outputs", "x", "own"),
    [
        ("AveragePool", {}, 1, IMAGE, True),
        ("AveragePool", {"ceil_mode": 1}, 1, IMAGE, False),
        ("MaxPool", {"ceil_mode": 1}, 1, IMAGE, True),
        ("MaxPool", {}, 2, IMAGE, False),
        ("Conv", {}, 1, ROWS, False),
        ("BatchNormalization", {}, 1, IMAGE, True),
        ("BatchNormalization", {"training_mode": 1}, 1, IMAGE, False),
        ("Hardmax", {}, 1, ROWS, False),
    ],
)
def test_what_onnx_computes_in_its_place_takes_long(
    kind: str, attributes: dict[str, object], outputs: int, x: Array, own: bool
) -> None:
    node = OnnxNode(kind, "n", ("x",), ("y", "z")[:outputs], attributes)
    assert _has_kernel(node, [x]) == own
