"""Attributes that are easily misread, in quantised models, against ONNX Runtime."""

from typing import Any

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.runtime import run

from .models import F32, Array, ModelBuilder, reference

SHAPE = (1, 3, 4, 6)
X = (F32(2**-3), np.int8(-3))
IMAGE = np.random.default_rng(8).integers(-128, 128, SHAPE).astype(np.int8)


def check_targets(model: onnx.ModelProto, wanted: Array) -> None:
    for target in ("cpu", "vta:tiny"):
        found = run(compile(model, target), {"x": IMAGE}).outputs[model.graph.output[0].name]
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, err_msg=target)


def convolved(b: ModelBuilder) -> str:
    """A quantised layer, so that something runs on the accelerator."""
    weights = np.random.default_rng(9).integers(-5, 6, (3, 3, 1, 1)).astype(np.int8)
    w = b.dequantize(b.constant(weights), F32(0.25), np.int8(0))
    return b.node("Conv", [b.dequantize("x", *X), w])


@pytest.mark.parametrize("axis", [-1, -2, -3, -4, 0, 4])
def test_flatten_counts_axes_from_the_end(axis: int) -> None:
    b = ModelBuilder()
    y = b.node("Flatten", [b.quantize(convolved(b), *X)], axis=axis)
    model = b.build({"x": ("int8", SHAPE)}, y)
    check_targets(model, reference(model, {"x": IMAGE}))


@pytest.mark.parametrize(
    "limits",
    [[(2, None), (None, 1)], [(0, None), (None, -1)], [(2, 1)], [(None, 1), (2, None)]],
)
def test_the_later_of_two_limits_holds(limits: list[tuple[float | None, float | None]]) -> None:
    b = ModelBuilder()
    y = convolved(b)
    for low, high in limits:
        names = ["" if each is None else b.constant(F32(each)) for each in (low, high)]
        y = b.node("Clip", [y, *names])
    y = b.quantize(y, *X)
    model = b.build({"x": ("int8", SHAPE)}, y)
    check_targets(model, reference(model, {"x": IMAGE}))


def resized(opset: int, sizes: list[int] | None = None, **attributes: Any) -> onnx.ModelProto:
    b = ModelBuilder()
    real = b.dequantize(b.quantize(convolved(b), *X), *X)
    scales = "" if sizes else b.constant(np.array([3, 2], F32))
    inputs = [real, "", scales, *([b.constant(np.array(sizes, np.int64))] if sizes else [])]
    way = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    y = b.quantize(b.node("Resize", inputs, mode="nearest", **way, **attributes), *X)
    model = b.build({"x": ("int8", SHAPE)}, y, opset=opset)
    model.ir_version = 9
    return model


def test_scales_belong_to_axes_in_their_order() -> None:
    model = resized(18, axes=[3, 2])
    stored = reference(model, {"x": IMAGE})
    assert stored.shape == (1, 3, 8, 18)
    check_targets(model, stored)


@pytest.mark.parametrize(("policy", "shape"), [("not_larger", (8, 12)), ("not_smaller", (12, 18))])
def test_the_aspect_ratio_is_kept(policy: str, shape: tuple[int, int]) -> None:
    model = resized(18, [8, 18], axes=[2, 3], keep_aspect_ratio_policy=policy)
    stored = reference(model, {"x": IMAGE})
    assert stored.shape[2:] == shape
    check_targets(model, stored)


def test_an_output_type_without_a_zero_point_is_kept() -> None:
    """ONNX Runtime, which does not know it, is given the zero point."""

    def model(given: bool) -> onnx.ModelProto:
        b = ModelBuilder()
        zero = [b.constant(np.int8(0))] if given else []
        attributes = {} if given else {"output_dtype": onnx.TensorProto.INT8}
        inputs = [convolved(b), b.constant(F32(0.5)), *zero]
        y = b.node("QuantizeLinear", inputs, **attributes)
        found = b.build({"x": ("int8", SHAPE)}, y, opset=21)
        found.ir_version = 10
        return found

    check_targets(model(False), reference(model(True), {"x": IMAGE}))
