"""Convolutions, pools and resizing as ONNX Runtime computes them."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from .nodes import compare

RNG = np.random.default_rng(0)


def normal(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("constant", [(), (1, 2)])
@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((2, 3, 9, 10), (5, 3, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
        ((1, 4, 11), (6, 2, 3), {"group": 2, "dilations": [2]}),
        ((1, 6, 7, 7), (6, 1, 3, 3), {"group": 6, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ((1, 16, 6, 5), (32, 16, 3, 3), {"auto_pad": "SAME_LOWER"}),
        ((1, 2, 4, 5, 6), (3, 2, 2, 2, 3), {"auto_pad": "VALID"}),
        ((1, 32, 5, 5), (24, 32, 1, 1), {"strides": [2, 2]}),
    ],
)
def test_convolutions(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], constant: tuple[int, ...]
) -> None:
    compare("Conv", [normal(*x), normal(*w), normal(w[0])], constant=constant, **attributes)


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [2, 3], "pads": [1, 1, 0, 2]}),
        ((2, 4, 6), (4, 3, 2), {"group": 2, "strides": [3], "output_padding": [1]}),
        ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [2, 2], "output_shape": [7, 8]}),
        ((1, 2, 3, 3), (2, 2, 2, 2), {"dilations": [2, 2], "auto_pad": "SAME_UPPER"}),
    ],
)
def test_transposed_convolutions(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    bias = normal(w[1] * attributes.get("group", 1))
    compare("ConvTranspose", [normal(*x), normal(*w), bias], **attributes)


POOLS: list[dict[str, Any]] = [
    {"kernel_shape": [3, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 3], "strides": [2, 3], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 2], "dilations": [2, 3]},
]


@pytest.mark.parametrize("attributes", POOLS)
def test_maximum_pools(attributes: dict[str, Any]) -> None:
    compare("MaxPool", [normal(1, 3, 9, 10)], outputs=2, **attributes)


@pytest.mark.parametrize("attributes", POOLS)
@pytest.mark.parametrize("include", [0, 1])
def test_average_pools(attributes: dict[str, Any], include: int) -> None:
    compare("AveragePool", [normal(2, 2, 9, 10)], count_include_pad=include, **attributes)


@pytest.mark.parametrize("kind", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
def test_global_pools(kind: str) -> None:
    compare(kind, [normal(2, 3, 5, 4)])


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norm_pools(p: int) -> None:
    attributes = {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [1, 0, 0, 1]}
    compare("LpPool", [normal(1, 2, 6, 7)], p=p, **attributes)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
)
@pytest.mark.parametrize("scale", [2.0, 0.6])
def test_resizing(mode: str, coordinates: str, scale: float) -> None:
    if coordinates == "align_corners" and scale < 1:
        pytest.skip("ONNX Runtime rounds the output size first, ONNX's own tests do not")
    scales = np.array([1, 1, scale, scale], np.float32)
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    inputs = [normal(1, 2, 7, 9), None, scales]
    compare("Resize", inputs, constant=(2,), tolerance=1e-3, **attributes)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grids(mode: str, padding: str, corners: int) -> None:
    grid = RNG.uniform(-1.3, 1.3, (2, 3, 4, 2)).astype(np.float32)
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    compare("GridSample", [normal(2, 3, 5, 6), grid], tolerance=1e-3, **attributes)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("sizes", [(1, 1, 3, 4), (2, 1, 1, 5), (1, 1, 2, 3, 1)])
def test_grids_of_affine_maps(sizes: tuple[int, ...], corners: int) -> None:
    rank = len(sizes) - 2
    inputs = [normal(sizes[0], rank, rank + 1), np.array(sizes)]
    compare("AffineGrid", inputs, opset=20, constant=(1,), align_corners=corners)


@pytest.mark.parametrize("ratio", [0, 2])
def test_regions(ratio: int) -> None:
    rois = np.array([[0, 0, 6, 5], [1.5, 2, 4.2, 7.7], [2, 1, 2.5, 1.5]], np.float32)
    batch = np.array([0, 1, 1])
    attributes = {"output_height": 3, "output_width": 2, "spatial_scale": 0.8}
    inputs = [normal(2, 3, 8, 9), rois, batch]
    compare("RoiAlign", inputs, sampling_ratio=ratio, **attributes)
