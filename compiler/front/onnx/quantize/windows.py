"""The inputs of each product of a contraction, as columns."""

import numpy as np

from ....graph.ir import Array
from ..node import OnnxNode
from .evaluate import conv_windows

__all__ = ["columns", "is_rounded_together", "rows_of", "weights_of"]

POSITIONS = 512
"""The most of one sample: neighbours say much the same."""


def is_rounded_together(node: OnnxNode) -> bool:
    """True if a convolution can be laid out as columns; a transposed one cannot."""
    return node.kind in ("Conv", "Gemm", "MatMul")


def columns(node: OnnxNode, x: Array, weights: Array) -> Array:
    """float32[groups, inputs, positions], some of all positions, evenly spread."""
    if node.kind != "Conv":
        rows = x.reshape(-1, x.shape[-1])
        return rows[_some(len(rows))].T[None]
    windows = conv_windows(node, x, weights)
    batch, channels, height, width, *kernel = windows.shape
    count, rows, places = np.unravel_index(_some(batch * height * width), (batch, height, width))
    found = windows[count, :, rows, places]
    groups = node.integer("group", 1)
    found = found.reshape(len(count), groups, channels // groups * kernel[0] * kernel[1])
    return found.transpose(1, 2, 0)


def _some(count: int) -> Array:
    some = min(count, POSITIONS)
    return np.arange(some) * count // some


def rows_of(node: OnnxNode, weights: Array) -> Array:
    """float64[groups, output channels of a group, inputs]."""
    if node.kind == "MatMul":
        weights = weights.T
    groups = node.integer("group", 1) if node.kind == "Conv" else 1
    return weights.reshape(groups, len(weights) // groups, -1).astype(np.float64)


def weights_of(node: OnnxNode, rows: Array, shape: tuple[int, ...]) -> Array:
    """Weights of ``shape``, from what ``rows_of`` gives."""
    if node.kind == "MatMul":
        return np.ascontiguousarray(rows.reshape(shape[1], shape[0]).T)
    return rows.reshape(shape)
