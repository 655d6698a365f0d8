"""Resize and Upsample of quantised images: nearest neighbour, by whole factors."""

from dataclasses import replace

import numpy as np

from ....errors import UnsupportedOperatorError
from ....graph.operators.integer.windows import Upsample2d
from .onnx_state import ImportState, OnnxNode
from .values import NCHW_TO_NHWC, Integer, Real, to_nhwc

__all__ = ["convert_resize"]

REPEATING = {
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
    ("tf_half_pixel_for_nn", "floor"),
}
"""Coordinates and rounding for which a whole factor repeats each pixel that often."""


def convert_resize(state: ImportState, node: OnnxNode) -> None:
    """Resize and Upsample, of an integer or a dequantised tensor."""
    value = state.value(node, 0)
    tensor = value.tensor if isinstance(value, Real) else value
    if not isinstance(tensor, Integer) or len(tensor.permutation) != 4:
        raise UnsupportedOperatorError(
            f"{node}: its input {node.inputs[0]!r} is no quantised image; required "
            "QuantizeLinear and DequantizeLinear in front of it"
        )
    _require_repetition(node)
    name = to_nhwc(state.graph, tensor, node.name)
    _, height, width, channels = state.graph.types[name].shape
    factors = _factors(state, node, (1, channels, height, width))
    if factors[:2] != [1.0, 1.0] or any(each < 1 or each % 1 for each in factors):
        raise UnsupportedOperatorError(
            f"{node}: scales {factors}; required whole factors of height and width"
        )
    for factor in ((1, int(factors[3])), (int(factors[2]), 1)):
        if factor != (1, 1):
            name = state.graph.node(Upsample2d(factor), (name,), node.outputs[0], node.name)
    grown = replace(tensor, name=name, permutation=NCHW_TO_NHWC)
    state.values[node.outputs[0]] = (
        replace(value, tensor=grown) if isinstance(value, Real) else grown
    )


def _require_repetition(node: OnnxNode) -> None:
    if node.text("mode", "nearest") != "nearest":
        raise UnsupportedOperatorError(
            f"{node}: mode {node.text('mode', '')!r}; required 'nearest'"
        )
    if node.kind == "Upsample":
        return
    way = (
        node.text("coordinate_transformation_mode", "half_pixel"),
        node.text("nearest_mode", "round_prefer_floor"),
    )
    if way not in REPEATING:
        raise UnsupportedOperatorError(
            f"{node}: coordinates {way[0]!r} with rounding {way[1]!r}; required one of "
            f"{', '.join(' with '.join(each) for each in sorted(REPEATING))}"
        )


def _factors(state: ImportState, node: OnnxNode, shape: tuple[int, ...]) -> list[float]:
    """Factor of each dimension of the model's tensor, from the scales or the sizes."""
    place = 1 if node.kind == "Upsample" else 2
    if node.has(place):
        scales = state.array(node, place).reshape(-1)
        if scales.size:
            return [float(np.float32(scale)) for scale in scales]
    if node.has(3):
        sizes = state.array(node, 3).reshape(-1)
        return [int(size) / before for size, before in zip(sizes, shape, strict=True)]
    raise UnsupportedOperatorError(f"{node}: has neither scales nor sizes; required one of them")
