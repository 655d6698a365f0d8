"""Host steps against ONNX Runtime and against their own inverses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dovetail.runtime import host
from dovetail.runtime.accelerator.host_steps import (
    Dequantize,
    Halves,
    Quantize,
    Reshape,
    Shift128,
    Softmax,
    Transpose,
)
from dovetail.runtime.errors import InputError, ModuleError


def session(
    nodes: list[onnx.NodeProto], kinds: tuple[int, int], shape: list[int], **constants: np.generic
) -> onnxruntime.InferenceSession:
    """A model from ``x`` to ``y`` for ONNX Runtime."""
    graph = helper.make_graph(
        nodes,
        "step",
        [helper.make_tensor_value_info("x", kinds[0], shape)],
        [helper.make_tensor_value_info("y", kinds[1], shape)],
        [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


@pytest.mark.parametrize(("scale", "zero_point"), [(0.5, 0), (0.0392, -128), (0.007, 5)])
def test_quantize_equals_onnxruntime(scale: float, zero_point: int) -> None:
    rng = np.random.default_rng(1)
    ties = (np.arange(-300, 300, dtype=np.float32) + np.float32(0.5)) * np.float32(scale)
    x = np.concatenate((rng.normal(0, 200 * scale, 4000).astype(np.float32), ties))
    reference = session(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])],
        (TensorProto.FLOAT, TensorProto.INT8),
        [len(x)],
        s=np.float32(scale),
        z=np.int8(zero_point),
    ).run(None, {"x": x})[0]
    np.testing.assert_array_equal(host.quantize(x, scale, zero_point), reference)


def test_dequantize_equals_onnxruntime() -> None:
    x = np.arange(-128, 128).astype(np.int8)
    reference = session(
        [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"])],
        (TensorProto.INT8, TensorProto.FLOAT),
        [256],
        s=np.float32(0.0392),
        z=np.int8(-7),
    ).run(None, {"x": x})[0]
    np.testing.assert_array_equal(host.dequantize(x, 0.0392, -7), reference)


@pytest.mark.parametrize("classes", [2, 10, 12, 37])
def test_softmax_equals_onnxruntime(classes: int) -> None:
    x = np.random.default_rng(2).integers(-128, 128, (500, classes), dtype=np.int8)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["real"]),
        helper.make_node("Softmax", ["real"], ["share"], axis=-1),
        helper.make_node("QuantizeLinear", ["share", "ys", "yz"], ["y"]),
    ]
    reference = session(
        nodes,
        (TensorProto.INT8, TensorProto.INT8),
        list(x.shape),
        xs=np.float32(0.15),
        xz=np.int8(9),
        ys=np.float32(1 / 256),
        yz=np.int8(-128),
    ).run(None, {"x": x})[0]
    np.testing.assert_array_equal(host.softmax(x, 0.15, 9, 1 / 256, -128), reference)


@pytest.mark.parametrize("steps", [1_000, 1_180, 1_195, 1_500, 2_000])
def test_softmax_of_few_elements_has_all_steps_of_fine_scales(steps: int) -> None:
    """Where the scale is finer than a sum's room, which begins at 1,188 steps of 8 elements."""
    found = host.softmax(np.zeros((1, 8), np.int8), 0.1, 0, 1 / steps, -128)
    assert found.tolist() == [[round(steps / 8) - 128] * 8]


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="NaN"):
        host.quantize(np.array([1.0, np.nan], np.float32), 0.1, 0)


def test_infinities_saturate() -> None:
    x = np.array([-np.inf, np.inf], np.float32)
    assert host.quantize(x, 0.1, 3).tolist() == [-128, 127]


def test_shifting_by_128_and_back_changes_nothing() -> None:
    x = np.arange(256).astype(np.uint8)
    shifted = host.shift128(x, "int8")
    assert shifted.dtype == np.int8
    assert shifted[0] == -128
    np.testing.assert_array_equal(host.shift128(shifted, "uint8"), x)


@given(
    height=st.integers(1, 5),
    width=st.integers(1, 5),
    channels=st.integers(1, 40),
    lanes=st.sampled_from([4, 8, 16, 32]),
)
def test_packing_puts_channel_c_in_block_c_over_lanes(
    height: int, width: int, channels: int, lanes: int
) -> None:
    rng = np.random.default_rng(channels)
    x = rng.integers(-128, 128, (1, height, width, channels), dtype=np.int8)
    packed = host.pack(x, lanes)
    assert packed.shape == (-(-channels // lanes), height, width, lanes)
    for channel in range(packed.shape[0] * lanes):
        found = packed[channel // lanes, :, :, channel % lanes]
        expected = x[0, :, :, channel] if channel < channels else np.zeros_like(found)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(host.unpack(packed, x.shape), x)


def test_packing_takes_a_matrix_of_one_row() -> None:
    x = np.arange(10).astype(np.int8)[None]
    packed = host.pack(x, 4)
    assert packed.shape == (3, 1, 1, 4)
    np.testing.assert_array_equal(host.unpack(packed, x.shape), x)


def test_steps_compute_what_their_functions_do() -> None:
    x = np.arange(6).astype(np.int8).reshape(1, 2, 3)
    for step in (Transpose((0, 2, 1)), Reshape((6,)), Shift128("uint8")):
        x = step.run(x)
    assert x.tolist() == [128, 131, 129, 132, 130, 133]
    y = np.array([[0.5, -0.25]], np.float32)
    z = Quantize(0.25, 3).run(y)
    assert z.tolist() == host.quantize(y, 0.25, 3).tolist() == [[5, 2]]
    np.testing.assert_array_equal(Dequantize(0.25, 3).run(z), y)
    softmax = Softmax(0.25, 0, 1 / 256, -128)
    np.testing.assert_array_equal(softmax.run(z), host.softmax(z, 0.25, 0, 1 / 256, -128))


def test_halves_of_an_image_lie_beside_each_other_one_upside_down() -> None:
    x = np.arange(10).astype(np.int8).reshape(1, 5, 1, 2)
    found = Halves(3, 1, 5, -7).run(x)
    assert found.tolist() == [[[[-7, -7, -7, -7]], [[0, 1, 8, 9]], [[2, 3, 6, 7]]]]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda x: Halves(0, 0, 0, 0), "required 1 to 65535 rows"),
        (lambda x: Halves(1, 0, 1 << 40, 0), "required 1 to 65535 rows"),
        (lambda x: Halves(1, 0, 0, 128), "filled with int8"),
        (lambda x: Halves(1, 0, 0, 0).run(x), r"an image of shape \[1, 2, 3\] has no Halves"),
        (lambda x: Reshape((7,)).run(x), r"cannot reshape \[1, 2, 3\] to \[7\]"),
        (lambda x: Transpose((0, 1)).run(x), r"cannot permute 3 dimensions by \[0, 1\]"),
        (lambda x: Shift128("float32"), "shift128 to 'float32'; required int8 or uint8"),
        (lambda x: Quantize(0.0, 0), "scale 0.0, zero point 0; required scale > 0"),
        (lambda x: Softmax(1.0, 0, 1.0, 1 << 40), "zero point 1099511627776; required"),
    ],
)
def test_a_step_that_cannot_be_is_refused(step: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        step(np.zeros((1, 2, 3), np.int8))
