"""Nearest-neighbour Resize by whole factors, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.front.onnx.integer.onnx import import_onnx
from dovetail.compiler.front.onnx.integer.onnx_resize import REPEATING

from .models import F32, ModelBuilder, check

SHAPE = (1, 3, 4, 5)
X = (F32(0.05), np.int8(-3))


def resized(
    scales: tuple[float, ...] | None, sizes: tuple[int, ...] | None = None, **way: Any
) -> Any:
    b = ModelBuilder()
    x = b.dequantize("x", *X)
    inputs = [x, "", "" if scales is None else b.constant(np.array(scales, F32))]
    if sizes is not None:
        inputs.append(b.constant(np.array(sizes, np.int64)))
    y = b.quantize(b.node("Resize", inputs, mode="nearest", **way), *X)
    return b.build({"x": ("int8", SHAPE)}, y)


@pytest.mark.parametrize("way", sorted(REPEATING))
@pytest.mark.parametrize("factors", [(2, 2), (3, 1), (1, 4), (5, 3)])
def test_whole_factors_equal_onnxruntime(way: tuple[str, str], factors: tuple[int, int]) -> None:
    model = resized((1, 1, *factors), coordinate_transformation_mode=way[0], nearest_mode=way[1])
    image = np.random.default_rng(1).integers(-128, 128, SHAPE).astype(np.int8)
    check(model, {"x": image})


def test_sizes_give_factors() -> None:
    image = np.random.default_rng(2).integers(-128, 128, SHAPE).astype(np.int8)
    check(resized(None, (1, 3, 8, 15)), {"x": image})


@pytest.mark.parametrize(
    ("scales", "way", "message"),
    [
        ((1, 1, 1.5, 2), {}, r"scales \[1.0, 1.0, 1.5, 2.0\]; required whole factors"),
        ((1, 2, 2, 2), {}, "required whole factors of height and width"),
        ((1, 1, 2, 2), {"coordinate_transformation_mode": "align_corners"}, "align_corners"),
    ],
)
def test_other_sizes_are_refused(
    scales: tuple[float, ...], way: dict[str, str], message: str
) -> None:
    with pytest.raises(UnsupportedOperatorError, match=message):
        import_onnx(resized(scales, **way))
