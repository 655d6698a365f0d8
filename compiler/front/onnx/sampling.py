"""Converters that read an image between its pixels: grids, regions, deformed kernels."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term, concatenate, einsum
from ...graph.products import accumulator
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, term
from .node import OnnxNode

__all__ = ["SAMPLING"]

Taps = list[tuple[Term, Term]]
"""Pairs of an integral coordinate, still float, and its weight."""


def _linear(at: Term) -> Taps:
    low = at.floor()
    fraction = at - low
    return [(low, 1.0 - fraction), (low + 1.0, fraction)]


def _cubic(at: Term) -> Taps:
    """Keys' kernel with a = -0.75."""
    a, low = -0.75, at.floor()
    t = at - low

    def near(x: Term) -> Term:
        return ((x * (a + 2) - (a + 3)) * x * x) + 1.0

    def far(x: Term) -> Term:
        return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a

    weights = (far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t))
    return [(low + float(k - 1), weight) for k, weight in enumerate(weights)]


def _sample(x: Term, taps: Sequence[Taps], padding: str, corners: bool) -> Term:
    """x[N, C, *spatial] at coordinates [N, points] for each dimension, to [N, C, points]."""
    sizes = x.shape[2:]
    flat = x.reshape(*x.shape[:2], int(np.prod(sizes)))
    total: Term | None = None
    for corner in product(*taps):
        place: Term | None = None
        weight: Term | None = None
        for size, (at, own) in zip(sizes, corner, strict=True):
            if padding == "reflection":
                at = _reflected(at, size, corners)
            elif padding == "zeros":
                own = ((at >= 0.0) & (at <= float(size - 1))).where(own, 0.0, own.dtype)
            at = at.clip(0.0, float(size - 1)).cast(DType.INT64)
            place = at if place is None else place * size + at
            weight = own if weight is None else weight * own
        assert place is not None
        assert weight is not None
        points = place.shape[1]
        wide = place.unsqueeze(1).expand(x.shape[0], x.shape[1], points)
        piece = flat.take_elements(wide, 2) * weight.unsqueeze(1)
        total = piece if total is None else total + piece
    assert total is not None
    return total


def _reflected(at: Term, size: int, corners: bool) -> Term:
    """Mirrored at the centres of the outermost elements, or at their outer edges."""
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return at * 0.0
    distance = (at - low).abs()
    flips = (distance / span).floor()
    rest = distance - flips * span
    odd = (flips % 2.0).equal(1.0)
    return odd.where(high - rest, rest + low, at.dtype)


def convert_grid_sample(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """x[N, C, *spatial] at points of [-1, 1], given in reverse order of dimensions."""
    x, grid = (term(context, node, inputs, place) for place in range(2))
    rank, corners = x.rank - 2, bool(node.integer("align_corners", 0))
    mode, padding = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    if grid.shape[-1] != rank or padding not in ("zeros", "border", "reflection"):
        raise ModelError(f"{node}: grid {grid.shape}, padding {padding!r}")
    points = grid.reshape(grid.shape[0], -1, rank)
    taps: list[Taps] = []
    for i, size in enumerate(x.shape[2:]):
        at = points.slice(2, rank - 1 - i, rank - i).reshape(*points.shape[:2])
        at = (at + 1.0) * ((size - 1) / 2) if corners else ((at + 1.0) * float(size) - 1.0) * 0.5
        if padding != "zeros" and mode not in ("cubic", "bicubic"):
            at = _reflected(at, size, corners) if padding == "reflection" else at
            at = at.clip(0.0, float(size - 1))
        match mode:
            case "nearest":
                taps.append([(at.rint(), at * 0.0 + 1.0)])
            case "linear" | "bilinear":
                taps.append(_linear(at))
            case "cubic" | "bicubic":
                taps.append(_cubic(at))
            case _:
                raise UnsupportedOperatorError(f"{node}: mode {mode!r}")
    result = _sample(x.cast(grid.dtype), taps, padding, corners)
    return (result.cast(x.dtype).reshape(*x.shape[:2], *grid.shape[1:-1]).tensor,)


def convert_affine_grid(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Points of [-1, 1] for GridSample: theta[N, rank, rank + 1] times each place of an image.

    ONNX's own function for it takes no batch of 1.
    """
    theta, size = (term(context, node, inputs, place) for place in range(2))
    batch, _, *sizes = (int(each) for each in context.value(size.tensor))
    rank = len(sizes)
    if theta.shape != (batch, rank, rank + 1):
        raise ModelError(f"{node}: theta {theta.shape}; required {(batch, rank, rank + 1)}")
    corners, lines = bool(node.integer("align_corners", 0)), []
    for count in sizes:
        end = 1.0 if corners else (count - 1) / count
        lines.append(np.linspace(end, -end, count)[::-1])  # A single corner is the last one.
    axes = np.meshgrid(*lines, indexing="ij")
    places = np.stack([*axes[::-1], np.ones(sizes)], axis=-1).reshape(-1, rank + 1)
    base = Term(context, context.constant(places.astype(theta.dtype.numpy)))
    points = einsum([(base, [1, 3]), (theta, [0, 2, 3])], [0, 1, 2], accumulator(theta.dtype))
    return (points.cast(theta.dtype).reshape(batch, *sizes, rank).tensor,)


def convert_roi_align(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Means or maxima of bilinear samples in the bins of each region."""
    x, rois, batch = (term(context, node, inputs, place) for place in range(3))
    ratio = node.integer("sampling_ratio", 0)
    old = "half_pixel" if context.opset >= 16 else "output_half_pixel"
    mode = node.text("coordinate_transformation_mode", old)
    if ratio > 0:
        return (_aligned(context, node, mode, x, rois, batch, ratio, ratio).tensor,)
    scale = node.real("spatial_scale", 1.0)
    rows, columns = node.integer("output_height", 1), node.integer("output_width", 1)
    results = []
    for i, (left, top, right, bottom) in enumerate(context.value(rois.tensor)):
        height, width = (bottom - top) * scale, (right - left) * scale
        if mode != "half_pixel":
            height, width = max(height, 1), max(width, 1)
        counts = (max(int(np.ceil(height / rows)), 1), max(int(np.ceil(width / columns)), 1))
        one = (rois.slice(0, i, i + 1), batch.slice(0, i, i + 1))
        results.append(_aligned(context, node, mode, x, *one, *counts))
    if not results:
        shape = (0, x.shape[1], rows, columns)
        return (context.constant(np.zeros(shape, x.dtype.numpy)),)
    return (concatenate(results, 0).tensor,)


def _aligned(
    context: ImportContext,
    node: OnnxNode,
    mode: str,
    x: Term,
    rois: Term,
    batch: Term,
    row_samples: int,
    column_samples: int,
) -> Term:
    """Regions with one number of samples a bin."""
    count, channels = rois.shape[0], x.shape[1]
    half = mode == "half_pixel"
    corners = rois * node.real("spatial_scale", 1.0) - (0.5 if half else 0.0)
    axes: list[tuple[Taps, Term]] = []
    for which, bins, samples in (
        (1, node.integer("output_height", 1), row_samples),
        (0, node.integer("output_width", 1), column_samples),
    ):
        start, stop = (corners.slice(1, which + k, which + k + 1) for k in (0, 2))
        extent = stop - start if half else (stop - start).maximum(1.0)
        context.require_room(bins, samples)
        steps = (np.arange(bins * samples) + 0.5) / (bins * samples)
        at = start + extent * steps[None]
        size = x.shape[3 - which]
        valid = (at >= -1.0) & (at <= float(size))
        low = at.maximum(0.0).floor().minimum(float(size - 1))
        high = (low + 1.0).minimum(float(size - 1))
        fraction = at.maximum(0.0).minimum(float(size - 1)) - low
        axes.append(([(low, 1.0 - fraction), (high, fraction)], valid))
    (row_taps, row_valid), (column_taps, column_valid) = axes
    flat = x.transpose(1, 0, 2, 3).reshape(channels, -1)
    image = batch.cast(DType.INT64).reshape(count, 1, 1) * (x.shape[2] * x.shape[3])
    valid = row_valid.unsqueeze(2) & column_valid.unsqueeze(1)
    pieces = []
    for (row, row_weight), (column, column_weight) in product(row_taps, column_taps):
        place = row.cast(DType.INT64).unsqueeze(2) * x.shape[3]
        place = image + place + column.cast(DType.INT64).unsqueeze(1)
        weight = row_weight.unsqueeze(2) * column_weight.unsqueeze(1)
        pieces.append(flat.take(place, 1) * valid.where(weight, 0.0, x.dtype))
    maximum = node.text("mode", "avg") == "max"
    total = pieces[0]
    for piece in pieces[1:]:
        total = total.maximum(piece) if maximum else total + piece
    rows, columns = node.integer("output_height", 1), node.integer("output_width", 1)
    binned = total.reshape(channels, count, rows, row_samples, columns, column_samples)
    pooled = binned.max(3, 5) if maximum else binned.mean(3, 5)
    return pooled.transpose(1, 0, 2, 3)


def convert_deform_conv(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """A convolution whose taps are moved by offsets, and weighted by a mask."""
    x, w, offsets = (term(context, node, inputs, place) for place in range(3))
    bias, mask = (optional_term(context, inputs, place) for place in (3, 4))
    rank, kernel = x.rank - 2, w.shape[2:]
    groups, fields = node.integer("group", 1), node.integer("offset_group", 1)
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = node.integers("pads", (0,) * 2 * rank)
    places, taps = offsets.shape[2:], int(np.prod(kernel))
    batch, channels = x.shape[0], x.shape[1]
    moved = offsets.reshape(batch * fields, taps, rank, *places)
    coordinates: list[Taps] = []
    context.require_room(*kernel, *places)
    for i in range(rank):
        line = np.arange(places[i]) * strides[i] - pads[i]
        tap = np.arange(kernel[i]) * dilations[i]
        base = tap.reshape([-1 if k == i else 1 for k in range(rank)] + [1] * rank) + line.reshape(
            [1] * rank + [-1 if k == i else 1 for k in range(rank)]
        )
        base = np.broadcast_to(base, (*kernel, *places)).reshape(1, taps, *places)
        own = moved.slice(2, i, i + 1).reshape(batch * fields, taps, *places)
        coordinates.append(_linear((own + base).reshape(batch * fields, -1)))
    fielded = x.reshape(batch * fields, channels // fields, *x.shape[2:])
    values = _sample(fielded, coordinates, "zeros", False)
    points = int(np.prod(places))
    if mask is not None:
        values = values * mask.reshape(batch * fields, 1, taps * points)
    values = values.reshape(batch, groups, channels // groups, taps, points)
    weights = w.reshape(groups, w.shape[0] // groups, w.shape[1], taps)
    operands = [(values, [0, 1, 2, 3, 4]), (weights, [1, 5, 2, 3])]
    result = einsum(operands, [0, 1, 5, 4], accumulator(x.dtype)).cast(x.dtype)
    result = result.reshape(batch, w.shape[0], *places)
    if bias is not None:
        result = result + bias.reshape(-1, *(1,) * rank)
    return (result.tensor,)


SAMPLING: dict[str, Converter] = {
    "AffineGrid": convert_affine_grid,
    "DeformConv": convert_deform_conv,
    "GridSample": convert_grid_sample,
    "RoiAlign": convert_roi_align,
}
