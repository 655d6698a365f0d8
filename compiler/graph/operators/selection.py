"""Selection of boxes that do not overlap."""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..types import TensorType
from .protocol import Array, Opaque, require, require_inputs

__all__ = ["SuppressOverlaps"]


@frozen
class SuppressOverlaps(Opaque):
    """The first ``limit`` boxes of each batch and class that overlap none chosen before.

    boxes: float32[B, N, 4], y and x of the lower corner, then of the upper; scores: float32[B, C,
    N], descending; order: int64[B, C, N], the box of each score; overlap, least: float32[].
    A box is chosen when its score is above ``least`` and its intersection with each box chosen
    before is at most ``overlap`` of their union.
    Gives int64[B * C * limit, 3], rows (batch, class, box) padded with 0, and their number, int64.
    """

    limit: int

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Rows and their number."""
        boxes, scores, order, overlap, least = require_inputs(self, inputs, 5)
        require(self, boxes.rank == 3 and boxes.shape[2:] == (4,), boxes, "boxes [B, N, 4]")
        fits = scores.rank == 3 and (scores.shape[0], scores.shape[2]) == boxes.shape[:2]
        require(self, fits, scores, "scores [B, C, N]")
        require(self, order == TensorType(scores.shape, DType.INT64), order, "int64[B, C, N]")
        for each in (boxes, scores, overlap, least):
            require(self, each.dtype == DType.FLOAT32, each, "float32")
        rows = scores.shape[0] * scores.shape[1] * self.limit
        return TensorType((rows, 3), DType.INT64), TensorType((), DType.INT64)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Box by box."""
        boxes, scores, order, overlap, least = inputs
        rows: list[tuple[int, int, int]] = []
        for b in range(scores.shape[0]):
            for c in range(scores.shape[1]):
                chosen: list[int] = []
                for score, box in zip(scores[b, c], order[b, c], strict=True):
                    apart = all(_overlap(boxes[b, box], boxes[b, o]) <= overlap for o in chosen)
                    if len(chosen) < self.limit and score > least and apart:
                        chosen.append(int(box))
                rows += [(b, c, box) for box in chosen]
        result = np.zeros((scores.shape[0] * scores.shape[1] * self.limit, 3), np.int64)
        if rows:
            result[: len(rows)] = rows
        return result, np.asarray(len(rows), np.int64)


def _overlap(a: Array, b: Array) -> np.float32:
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), np.float32(0))
    common = sides[0] * sides[1]
    union = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common
    return np.float32(common / union) if union > 0 else np.float32(0)
