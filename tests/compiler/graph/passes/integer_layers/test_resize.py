"""Resize, to the nearest and linear, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.operators.integer.windows import Upsample2d

from .models import F32, ModelBuilder, check, integer_graph, reference

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


def linear(
    scales: tuple[float, ...], way: str, scale: float, dtype: str, shape: tuple[int, ...] = SHAPE
) -> Any:
    b = ModelBuilder()
    zero = np.int8(-3) if dtype == "int8" else np.uint8(125)
    factors = b.constant(np.array(scales, F32))
    how = {"mode": "linear", "coordinate_transformation_mode": way}
    x = b.node("Resize", [b.dequantize("x", F32(scale), zero), "", factors], **how)
    return b.build({"x": (dtype, shape)}, b.quantize(x, F32(scale), zero), dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("way", ["half_pixel", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("factors", [(2, 2), (4, 2), (1, 8), (0.5, 1)])
def test_linear_sums_equal_onnxruntime(factors: tuple[float, ...], way: str, dtype: str) -> None:
    """By a scale and weights that are powers of two, so that its float sums are exact."""
    model = linear((1, 1, *factors), way, 2**-4, dtype)
    image = np.random.default_rng(4).integers(-128, 128, SHAPE).astype(np.int8)
    check(model, {"x": image if dtype == "int8" else image.view(np.uint8)})


@pytest.mark.parametrize("size", [(2, 1), (1, 3), (1, 1)])
def test_the_only_row_or_column_is_repeated(size: tuple[int, int]) -> None:
    model = linear((1, 1, 2, 4), "half_pixel", 2**-4, "int8", (1, 3, *size))
    image = np.random.default_rng(4).integers(-128, 128, (1, 3, *size)).astype(np.int8)
    check(model, {"x": image})
    operators = [node.operator for node in integer_graph(model).nodes]
    repeats = [each.factors for each in operators if isinstance(each, Upsample2d)]
    assert repeats == [each for each, n in (((2, 1), size[0]), ((1, 4), size[1])) if n == 1]


@pytest.mark.parametrize("factors", [(2, 2), (4, 4)])
def test_other_linear_sums_differ_only_half_way(factors: tuple[float, ...]) -> None:
    model = linear((1, 1, *factors), "half_pixel", 0.05, "int8")
    image = np.random.default_rng(4).integers(-128, 128, SHAPE).astype(np.int8)
    (found,) = run(integer_graph(model), {"x": image})[model.graph.output[0].name]
    wrong = np.abs(found.astype(int) - reference(model, {"x": image})[0])
    assert wrong.max() <= 1
    assert np.count_nonzero(wrong) < 0.1 * wrong.size


def test_weights_that_do_not_come_again_are_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match="required weights that come again after"):
        integer_graph(linear((1, 1, 5, 5), "align_corners", 0.05, "int8"))
