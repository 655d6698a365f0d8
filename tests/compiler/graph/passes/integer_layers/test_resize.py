"""Nearest-neighbour Resize by whole factors, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError

from .models import F32, ModelBuilder, check, integer_graph

SHAPE = (1, 3, 4, 5)
REPEATING = [
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("tf_half_pixel_for_nn", "floor"),
]
"""Coordinates and rounding for which a whole factor repeats each pixel that often."""
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


@pytest.mark.parametrize("way", REPEATING)
@pytest.mark.parametrize("factors", [(2, 2), (3, 1), (1, 4), (5, 3)])
def test_whole_factors_equal_onnxruntime(way: tuple[str, str], factors: tuple[int, int]) -> None:
    model = resized((1, 1, *factors), coordinate_transformation_mode=way[0], nearest_mode=way[1])
    image = np.random.default_rng(1).integers(-128, 128, SHAPE).astype(np.int8)
    check(model, {"x": image})


def test_sizes_give_factors() -> None:
    image = np.random.default_rng(2).integers(-128, 128, SHAPE).astype(np.int8)
    check(resized(None, (1, 3, 8, 15)), {"x": image})


@pytest.mark.parametrize(
    ("scales", "way"),
    [
        ((1, 1, 1.5, 2), {}),
        ((1, 1, 0.5, 0.4), {}),
        ((1, 2, 2, 2), {}),
        ((1, 1, 3, 3), {"coordinate_transformation_mode": "align_corners"}),
    ],
)
def test_other_sizes_pick_rows_columns_and_channels(
    scales: tuple[float, ...], way: dict[str, str]
) -> None:
    image = np.random.default_rng(3).integers(-128, 128, SHAPE).astype(np.int8)
    check(resized(scales, **way), {"x": image})


def test_another_image_is_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match="required whole rows or columns of an"):
        integer_graph(resized((2, 1, 1, 1)))
