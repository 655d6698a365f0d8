"""Converters of Resize and Upsample: weighted sums of gathered slices, an axis at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.taps import along
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, term
from .node import OnnxNode

__all__ = ["RESIZE"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def convert_resize(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Nearest, linear or cubic.  Source: the ONNX operator, opsets 10 to 19."""
    x = term(context, node, inputs, 0)
    axes = [axis % x.rank for axis in node.integers("axes", tuple(range(x.rank)))]
    places = (1,) if context.opset < 11 else (2, 3)
    scales = _numbers(context, inputs, places[0])
    sizes = _numbers(context, inputs, places[1]) if len(places) > 1 else None
    if sizes is not None and sizes.size == len(axes):
        shape, scales = _sizes(node, x, axes, [int(size) for size in sizes])
    elif scales is not None and scales.size == len(axes):
        shape = [int(np.floor(x.shape[a] * s)) for a, s in zip(axes, scales, strict=True)]
    else:
        raise ModelError(f"{node}: required scales or sizes, one for each of {len(axes)} axes")
    mode = node.text("coordinate_transformation_mode", "half_pixel")
    if context.opset < 11:
        mode = "asymmetric"
    roi = _numbers(context, inputs, 1) if mode == "tf_crop_and_resize" else None
    outside: Term | None = None
    result = x.cast(DType.FLOAT32) if _blends(node) and x.dtype != DType.FLOAT64 else x
    for place, axis in _in_order(node, axes):
        size, scale = shape[place], scales[place]
        region = (0.0, 1.0)
        if roi is not None and roi.size:
            region = (float(roi[place]), float(roi[place + len(axes)]))
        if size == x.shape[axis] and scale == 1 and roi is None:
            continue
        context.require_room(size)
        at = _coordinates(node, mode, size, x.shape[axis], float(scale), region)
        result = along(result, axis, *_taps(context, node, at, x.shape[axis], float(scale)))
        beyond = (at < 0) | (at > x.shape[axis] - 1)
        if roi is not None and beyond.any():
            line = [1] * x.rank
            line[axis] = size
            mask = x.constant(beyond.reshape(line), DType.BOOL)
            outside = mask if outside is None else outside | mask
    if outside is not None:
        fill = node.real("extrapolation_value", 0.0)
        result = outside.where(result.constant(fill, result.dtype), result, result.dtype)
    if result.dtype != x.dtype and not x.dtype.is_float:
        limits = np.iinfo(str(x.dtype))
        result = result.rint().clip(float(limits.min), float(limits.max))
    return (result.cast(x.dtype).tensor,)


def _in_order(node: OnnxNode, values: Sequence[Any]) -> list[tuple[int, Any]]:
    """Values with their places; those that only repeat elements begin with the smallest stride."""
    placed = list(enumerate(values))
    return placed if _blends(node) else placed[::-1]


def _blends(node: OnnxNode) -> bool:
    return node.text("mode", "nearest") != "nearest"


def _numbers(context: ImportContext, inputs: Inputs, place: int) -> Floats | None:
    value = optional_term(context, inputs, place)
    return None if value is None else context.value(value.tensor).astype(np.float64)


def _sizes(
    node: OnnxNode, x: Term, axes: Sequence[int], sizes: list[int]
) -> tuple[list[int], Floats]:
    """Output sizes and scales; one scale for all where the aspect ratio is kept."""
    scales = np.array([s / max(x.shape[a], 1) for a, s in zip(axes, sizes, strict=True)])
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return sizes, scales
    scale = scales.min() if policy == "not_larger" else scales.max()
    kept = [int(np.floor(x.shape[a] * scale + 0.5)) for a in axes]
    return kept, np.full(len(axes), scale)


def _coordinates(
    node: OnnxNode, mode: str, size: int, length: int, scale: float, region: tuple[float, float]
) -> Floats:
    """Where each output element is in the input; ``length * scale`` need not be ``size``."""
    at, extent = np.arange(size, dtype=np.float64), length * scale
    match mode:
        case "half_pixel":
            return (at + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            adjustment = size / extent
            return length / 2 * (1 - adjustment) + (at + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (at + 0.5) / scale - 0.5 if size > 1 else np.zeros(size)
        case "align_corners":
            return at * (length - 1) / (extent - 1) if extent != 1 else np.zeros(size)
        case "asymmetric":
            return at / scale
        case "tf_half_pixel_for_nn":
            return (at + 0.5) / scale
        case "tf_crop_and_resize":
            start, end = region
            if extent == 1:
                return np.full(1, 0.5 * (start + end) * (length - 1))
            return start * (length - 1) + at * (end - start) * (length - 1) / (extent - 1)
        case _:
            raise UnsupportedOperatorError(f"{node}: coordinate transformation {mode!r}")


def _taps(
    context: ImportContext, node: OnnxNode, at: Floats, length: int, scale: float
) -> tuple[Ints, Floats]:
    """Indices and weights of the input elements of each output element: [taps, size] each."""
    mode = node.text("mode", "nearest")
    if mode == "nearest":
        return np.clip(_nearest(context, node, at), 0, length - 1)[None], np.ones((1, at.size))
    stretch = min(scale, 1.0) if node.integer("antialias", 0) else 1.0
    if mode == "linear":
        reach = 1 / stretch

        def weigh(distance: Floats) -> Floats:
            return np.maximum(0, 1 - np.abs(distance) * stretch)
    elif mode == "cubic":
        reach, a = 2 / stretch, node.real("cubic_coeff_a", -0.75)

        def weigh(distance: Floats) -> Floats:
            t = np.abs(distance) * stretch
            near = ((a + 2) * t - (a + 3)) * t * t + 1
            far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
            return np.where(t <= 1, near, np.where(t < 2, far, 0))
    else:
        raise UnsupportedOperatorError(f"{node}: mode {mode!r}")
    first = np.floor(at).astype(np.int64) - int(np.ceil(reach)) + 1
    count = 2 * int(np.ceil(reach))
    context.require_room(count, at.size)
    indices = first + np.arange(count)[:, None]
    weights = weigh(indices - at)
    inside = (indices >= 0) & (indices < length)
    if node.integer("exclude_outside", 0):
        weights = np.where(inside, weights, 0)
    weights = weights / weights.sum(axis=0)
    used = np.abs(weights).max(axis=1) > 0
    return np.clip(indices, 0, length - 1)[used], weights[used]


def _nearest(context: ImportContext, node: OnnxNode, at: Floats) -> Ints:
    mode = node.text("nearest_mode", "round_prefer_floor" if context.opset >= 11 else "floor")
    match mode:
        case "round_prefer_floor":
            found = np.ceil(at - 0.5)
        case "round_prefer_ceil":
            found = np.floor(at + 0.5)
        case "floor":
            found = np.floor(at)
        case "ceil":
            found = np.ceil(at)
        case _:
            raise UnsupportedOperatorError(f"{node}: nearest_mode {mode!r}")
    return found.astype(np.int64)


def convert_upsample(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Nearest or linear with scales, output element i from ``i / scale``."""
    x = term(context, node, inputs, 0)
    scales = np.array(node.attributes.get("scales", ()), np.float64)
    if len(inputs) > 1:
        scales = context.value(term(context, node, inputs, 1).tensor).astype(np.float64)
    if scales.size != x.rank:
        raise ModelError(f"{node}: {scales.size} scales for {x.rank} dimensions")
    result = x
    for axis, scale in _in_order(node, list(scales)):
        size = int(np.floor(x.shape[axis] * scale))
        if scale == 1:
            continue
        context.require_room(size)
        at = np.arange(size) / scale
        low = np.floor(at).astype(np.int64)
        if node.text("mode", "nearest") == "nearest":
            result = result.take(low, axis)
            continue
        last = x.shape[axis] - 1
        taps = np.stack([np.minimum(low, last), np.minimum(low + 1, last)])
        result = along(result, axis, taps, np.stack([1 - (at - low), at - low]))
    return (result.tensor,)


RESIZE: dict[str, Converter] = {"Resize": convert_resize, "Upsample": convert_upsample}
