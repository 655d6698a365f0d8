"""Groups of channels as a dimension of their own, against ONNX Runtime and on targets."""

import numpy as np
import pytest

from .models import F32, Array, ModelBuilder, check
from .static import check_on_targets, conv, statically_quantized

X = (F32(0.05), np.int8(-3))
Y = (F32(0.031), np.int8(7))
SHAPE = (1, 2, 16, 6, 4)


def image(seed: int, shape: tuple[int, ...]) -> Array:
    """Random int8 of ``shape``."""
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def _summed(b: ModelBuilder, x: str) -> str:
    return b.node("ReduceSum", [x, b.constant(np.array([1]))], keepdims=0)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("then", ["", "GlobalAveragePool", "AveragePool", "within"])
def test_sums_of_groups_equal_onnxruntime(then: str, groups: int) -> None:
    b = ModelBuilder()
    sums = _summed(b, b.dequantize("x", *X))
    if then in ("AveragePool", "within"):
        inside = int(then != "within")
        window = {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 1, 1, 1]}
        sums = b.node("AveragePool", [sums], count_include_pad=inside, **window)
    elif then:
        sums = b.node(then, [sums])
    shape = (1, groups, 5, 7, 4)
    model = b.build({"x": ("int8", shape)}, b.quantize(sums, F32(0.0371), np.int8(7)))
    check(model, {"x": image(groups, shape)})


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_softmax_over_any_dimension_equals_onnxruntime(axis: int) -> None:
    b = ModelBuilder()
    y = b.quantize(b.node("Softmax", [b.dequantize("x", *X)], axis=axis), 1 / 256, np.int8(-128))
    check(b.build({"x": ("int8", (1, 3, 8, 6))}, y), {"x": image(axis, (1, 3, 8, 6))})


def test_what_is_moved_before_it_is_quantised_equals_onnxruntime() -> None:
    b = ModelBuilder()
    rows = b.node("Softmax", [b.dequantize("x", *X)], axis=-1)
    turned = b.node("Transpose", [rows], perm=[0, 2, 1])
    flat = b.node("Reshape", [turned, b.constant(np.array([1, 8, 3]))])
    y = b.quantize(flat, 1 / 256, np.int8(-128))
    check(b.build({"x": ("int8", (1, 4, 6))}, y), {"x": image(1, (1, 4, 6))})


@pytest.mark.parametrize(("strides", "groups"), [([1], 1), ([2], 2)])
def test_convolutions_of_rows_equal_onnxruntime(strides: list[int], groups: int) -> None:
    b = ModelBuilder()
    w = b.dequantize(b.constant(image(1, (4, 4 // groups, 3))), F32(0.01), np.int8(0))
    bias = b.dequantize(b.constant(np.arange(4, dtype=np.int32) * 99), F32(0.0005), np.int32(0))
    inputs = [b.dequantize("x", *X), w, bias]
    y = b.node("Conv", inputs, pads=[2, 1], strides=strides, group=groups, dilations=[2])
    model = b.build({"x": ("int8", (1, 4, 11))}, b.quantize(b.node("Relu", [y]), *Y))
    check(model, {"x": image(2, (1, 4, 11))})


@pytest.mark.parametrize("wanted", [(1, 3, 8, 6), (1, 3, 8, 1), (1, 3, 1, 1)])
def test_expanded_images_equal_onnxruntime(wanted: tuple[int, ...]) -> None:
    b = ModelBuilder()
    shape = (1, 3, 1, 1)
    grown = b.node("Expand", [b.dequantize("x", *X), b.constant(np.array(wanted))])
    check(b.build({"x": ("int8", shape)}, b.quantize(grown, *Y)), {"x": image(3, shape)})


def test_gates_of_rows_run_on_the_accelerator() -> None:
    """As in ECA: a convolution of the channels' means, repeated to the size of the image."""

    def net(b: ModelBuilder, x: str) -> str:
        x = conv(b, x, 3, 16)
        mean = b.node("ReduceMean", [x], axes=[2, 3], keepdims=0)
        row = b.node("Reshape", [mean, b.constant(np.array([1, 1, 16]))])
        taps = b.constant(np.array([[[0.5, 1.0, -0.25]]], F32))
        gate = b.node("Sigmoid", [b.node("Conv", [row, taps], pads=[1, 1])])
        gate = b.node("Reshape", [gate, b.constant(np.array([1, 16, 1, 1]))])
        gate = b.node("Expand", [gate, b.constant(np.array([1, 16, 5, 4]))])
        return conv(b, b.node("Mul", [x, gate]), 16, 5)

    check_on_targets(statically_quantized(net, (1, 3, 5, 4)))


def test_split_attention_runs_on_targets() -> None:
    """As in ResNeSt: groups weighted by a softmax over them, which the CPU computes."""

    def net(b: ModelBuilder, x: str) -> str:
        x = conv(b, x, 3, 32)
        groups = b.node("Reshape", [x, b.constant(np.array([1, 2, 16, 5, 4]))])
        mean = b.node("ReduceMean", [_summed(b, groups)], axes=[2, 3], keepdims=1)
        rows = b.node("Reshape", [conv(b, mean, 16, 32), b.constant(np.array([1, 1, 2, 16]))])
        turned = b.node("Transpose", [rows], perm=[0, 2, 1, 3])
        weights = b.node("Softmax", [turned], axis=1)
        weights = b.node("Reshape", [weights, b.constant(np.array([1, 2, 16, 1, 1]))])
        return conv(b, _summed(b, b.node("Mul", [groups, weights])), 16, 5)

    check_on_targets(statically_quantized(net, (1, 3, 5, 4)), whole=False)
