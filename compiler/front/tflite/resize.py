"""Converters that resize images."""

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.ir import Array
from .node import Converter, Node

__all__ = ["RESIZE"]

F32 = np.float32
Places = tuple[Array, Array, Array]
"""Lower and upper places of each row or column of the result, and the weights of the upper."""


def _size(node: Node) -> tuple[int, int]:
    x, size = node.term(0), node.integers(1)
    node.require(x.rank == 4 and len(size) == 2 and min(size) > 0, "4 dimensions, a size of two")
    node.context.require_room(max(size))
    return size[0], size[1]


def _nearest(node: Node, size: int, wanted: int) -> Array:
    """The place that each row or column of the result is taken from."""
    aligned, half = node.attribute("align_corners"), node.attribute("half_pixel_centers")
    whole = aligned and wanted > 1
    scale = F32(size - 1) / F32(wanted - 1) if whole else F32(size) / F32(wanted)
    at = (np.arange(wanted, dtype=F32) + F32(0.5 if half else 0)) * scale
    found = np.floor(at + F32(0.5)) if aligned else np.floor(at)
    return np.clip(found.astype(np.int64), 0, size - 1)


def convert_nearest(node: Node) -> Term:
    """Each pixel of the nearest one."""
    x = node.term(0)
    for axis, wanted in enumerate(_size(node), 1):
        x = x.take(_nearest(node, x.shape[axis], wanted), axis)
    return x


def _real_places(node: Node, size: int, wanted: int) -> Places:
    whole = node.attribute("align_corners") and wanted > 1
    scale = F32(size - 1) / F32(wanted - 1) if whole else F32(size) / F32(wanted)
    at = np.arange(wanted, dtype=F32)
    half = node.attribute("half_pixel_centers")
    at = (at + F32(0.5)) * scale - F32(0.5) if half else at * scale
    lower = np.maximum(np.floor(at), 0).astype(np.int64)
    upper = np.minimum(np.ceil(at), size - 1).astype(np.int64)
    return lower, upper, (at - lower.astype(F32)).astype(F32)


def _whole_places(node: Node, size: int, wanted: int) -> Places:
    """In steps of 1/1024."""
    scale = (1024 * size + wanted // 2) // wanted
    if node.attribute("align_corners") and wanted > 1:
        scale = (1024 * (size - 1) + (wanted - 1) // 2) // (wanted - 1)
    at = np.arange(wanted, dtype=np.int64) * scale
    if node.attribute("half_pixel_centers"):
        at = at + scale // 2 - 512
    lower = np.maximum(np.trunc(at / 1024), 0).astype(np.int64)
    upper = np.minimum(np.trunc((at + 1023) / 1024).astype(np.int64), size - 1)
    return lower, upper, at - 1024 * lower


def convert_bilinear(node: Node) -> Term:
    """Weighted sums of the four pixels around: int8 in integers, rounded half away from zero;
    uint8 in float32, rounded half up.
    """
    x, dtype = node.term(0), node.term(0).dtype
    whole = dtype in (DType.INT8, DType.INT16)
    wide = x.cast(DType.INT64) if whole else x.cast(DType.FLOAT32)
    one, places = (1024, _whole_places) if whole else (1, _real_places)
    rows, columns = (
        places(node, size, wanted) for size, wanted in zip(x.shape[1:3], _size(node), strict=True)
    )
    down = rows[2].reshape(-1, 1, 1)
    across = columns[2].reshape(-1, 1)
    total: Term | None = None
    for right in (False, True):
        for low in (False, True):
            pixels = wide.take(rows[low], 1).take(columns[right], 2)
            part = pixels * (down if low else one - down) * (across if right else one - across)
            total = part if total is None else total + part
    assert total is not None
    if whole:
        half = (total > 0).where(1 << 19, -(1 << 19), DType.INT64)
        return ((total + half) / (1 << 20)).cast(dtype)
    return total if dtype.is_float else (total + 0.5).cast(DType.INT32).cast(dtype)


RESIZE: dict[str, Converter] = {
    "RESIZE_BILINEAR": convert_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": convert_nearest,
}
