"""Constants added to integer sums, against ONNX Runtime; scales are powers of two: no rounding."""

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
import pytest

from dovetail.compiler import compile
from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.runtime import run

from .models import F32, Array, ModelBuilder

C = 6
SHAPE = (1, 3, C, C)
SCALE = F32(2**-4)
RNG = np.random.default_rng(5)
WEIGHTS = RNG.integers(-9, 9, (C, 3, 1, 1)).astype(np.int8)
BIAS = (RNG.integers(-200, 200, C) * 16).astype(np.int32)
IMAGE = RNG.integers(-128, 128, SHAPE).astype(np.int8)


def convolution(b: ModelBuilder) -> str:
    w = b.dequantize(b.constant(WEIGHTS), SCALE, np.int8(0))
    return b.node("Conv", [b.dequantize("x", SCALE, np.int8(3)), w])


def biased(b: ModelBuilder, real: str, bias: Array) -> str:
    return b.node("Add", [real, b.dequantize(b.constant(bias), SCALE * SCALE, np.int32(0))])


def stored(b: ModelBuilder, real: str) -> str:
    return b.quantize(real, F32(0.5), np.int8(-5))


def expected(model: onnx.ModelProto) -> list[Array]:
    """By float arithmetic: ONNX Runtime's own fusions off."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {"x": IMAGE}))


def check_all(model: onnx.ModelProto, outputs: Sequence[str], targets: Sequence[str]) -> None:
    for target in targets:
        found = run(compile(model, target), {"x": IMAGE}).outputs
        for name, wanted in zip(outputs, expected(model), strict=True):
            np.testing.assert_array_equal(found[name], wanted, err_msg=f"{name} on {target}")


@pytest.mark.parametrize("shape", [(C, 1, 1), (1, C, 1, 1), (1, 1, 1), ()])
def test_one_number_a_channel_is_a_bias(shape: tuple[int, ...]) -> None:
    b = ModelBuilder()
    y = stored(b, biased(b, convolution(b), BIAS[: int(np.prod(shape))].reshape(shape)))
    check_all(b.build({"x": ("int8", SHAPE)}, y), [y], ["cpu", "vta:tiny"])


@pytest.mark.parametrize("shape", [(C,), (1, 1, 1, C), (1, 1, C, 1), (C, 1)])
def test_numbers_along_another_axis_are_none(shape: tuple[int, ...]) -> None:
    b = ModelBuilder()
    y = stored(b, biased(b, convolution(b), BIAS.reshape(shape)))
    model = b.build({"x": ("int8", SHAPE)}, y)
    check_all(model, [y], ["cpu"])
    with pytest.raises(UnsupportedOperatorError, match=r"adds a constant of shape .* 6 channels"):
        compile(model, "vta:tiny")


@pytest.mark.parametrize("second", [None, -BIAS])
def test_readers_of_a_sum_have_biases_of_their_own(second: Array | None) -> None:
    b = ModelBuilder()
    total = convolution(b)
    channels = BIAS.reshape(C, 1, 1)
    other = total if second is None else biased(b, total, second.reshape(C, 1, 1))
    outputs = [stored(b, biased(b, total, channels)), stored(b, other)]
    model = b.build({"x": ("int8", SHAPE)}, outputs[0])
    model.graph.output.append(
        onnx.helper.make_tensor_value_info(outputs[1], onnx.TensorProto.INT8, None)
    )
    check_all(model, outputs, ["cpu"])


def test_two_biases_add_up() -> None:
    b = ModelBuilder()
    channels = BIAS.reshape(C, 1, 1)
    y = stored(b, biased(b, biased(b, convolution(b), channels), channels[::-1]))
    check_all(b.build({"x": ("int8", SHAPE)}, y), [y], ["cpu", "vta:tiny"])


def test_zeros_are_a_bias_in_any_units() -> None:
    """As where layers share a bias of zeros."""
    b = ModelBuilder()
    zeros = np.zeros((C, 1, 1), np.int32)
    steps = b.dequantize(b.constant(zeros), SCALE * SCALE * F32(0.7), np.int32(0))
    y = stored(b, b.node("Add", [convolution(b), steps]))
    check_all(b.build({"x": ("int8", SHAPE)}, y), [y], ["cpu", "vta:tiny"])


@pytest.mark.parametrize("factor", [1.01, 0.99])
def test_an_int32_bias_in_other_units_is_none(factor: float) -> None:
    b = ModelBuilder()
    scale = SCALE * SCALE * F32(factor)
    steps = b.dequantize(b.constant(BIAS.reshape(C, 1, 1)), scale, np.int32(0))
    y = stored(b, b.node("Add", [convolution(b), steps]))
    model = b.build({"x": ("int8", SHAPE)}, y)
    check_all(model, [y], ["cpu"])
    with pytest.raises(UnsupportedOperatorError, match=r"bias scale .* is not the product .* of"):
        compile(model, "vta:tiny")


@pytest.mark.parametrize(
    ("values", "scale"),
    [(BIAS // 2, SCALE * SCALE * F32(2)), ((BIAS // 64).astype(np.int8), SCALE)],
)
def test_a_bias_of_whole_steps_in_other_units_is_one(values: Array, scale: np.float32) -> None:
    b = ModelBuilder()
    steps = b.dequantize(b.constant(values.reshape(C, 1, 1)), scale, values.dtype.type(0))
    y = stored(b, b.node("Add", [convolution(b), steps]))
    check_all(b.build({"x": ("int8", SHAPE)}, y), [y], ["cpu", "vta:tiny"])


@pytest.mark.parametrize("factor", [1.0009, 0.9991])
def test_a_bias_in_nearly_the_units_of_the_sum_is_one(factor: float) -> None:
    b = ModelBuilder()
    scale = SCALE * SCALE * F32(factor)
    steps = b.dequantize(b.constant(BIAS.reshape(C, 1, 1)), scale, np.int32(0))
    y = stored(b, b.node("Add", [convolution(b), steps]))
    assert compile(b.build({"x": ("int8", SHAPE)}, y), "vta:tiny").parts


def test_a_bias_after_a_limit_is_none() -> None:
    b = ModelBuilder()
    limited = b.node("Clip", [convolution(b), b.constant(F32(-1)), b.constant(F32(1))])
    y = stored(b, biased(b, limited, BIAS.reshape(C, 1, 1)))
    model = b.build({"x": ("int8", SHAPE)}, y)
    check_all(model, [y], ["cpu"])
    with pytest.raises(UnsupportedOperatorError, match="adds a constant to what is clipped"):
        compile(model, "vta:tiny")
