"""Converters that choose boxes which do not overlap."""

from typing import Any

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...graph.formulas import Term, concatenate
from ...graph.operators.selection import SuppressOverlaps
from ...graph.operators.sorting import Sort
from .node import Converter, Node
from .quantization import dequantised

__all__ = ["DETECTION"]


def _chosen(
    node: Node, boxes: Term, scores: Term, limit: int, overlap: Term, least: Term
) -> tuple[Term, Term]:
    """Rows (class, box), and how many there are; boxes: [N, 4], scores: [C, N].

    A score of ``least`` is enough.
    """
    count = scores.shape[1]
    node.require(count > 0 and limit >= 0, "a box, and a limit of 0 or more")
    ordered, order = node.context.emit_many(Sort(count, True), scores.unsqueeze(0).tensor)
    enough = least.reshape() - 1e-7
    operator = SuppressOverlaps(min(limit, count))
    operands = (boxes.unsqueeze(0).tensor, ordered, order, overlap.reshape().tensor, enough.tensor)
    rows, total = node.context.emit_many(operator, *operands)
    return Term(node.context, rows).slice(1, 1, 3), Term(node.context, total)


def convert_suppression(node: Node) -> tuple[Term, ...]:
    """Numbers of boxes, 0 behind the last, their scores in version 5, and how many there are."""
    boxes, scores = node.term(0), node.term(1)
    node.require(boxes.rank == 2 and boxes.shape[1:] == (4,) and scores.rank == 1, "[N, 4], [N]")
    (limit,) = node.integers(2)
    soft = node.kind == "NON_MAX_SUPPRESSION_V5"
    if soft and float(node.value(5).reshape(-1)[0]) != 0:
        raise node.unsupported("soft suppression")
    corners = boxes.reshape(-1, 2, 2)
    ends = (-((-corners).max(1)), corners.max(1))
    rows, total = _chosen(
        node, concatenate(ends, 1), scores.unsqueeze(0), limit, node.term(3), node.term(4)
    )
    places = rows.slice(1, 1, 2).reshape(-1)
    places = places.pad([(0, max(limit - places.shape[0], 0))])
    node.context.require_room(limit)
    valid = node.constant(np.arange(limit), DType.INT64) < total
    found = valid.where(places, 0, DType.INT64)
    numbers = found.cast(DType.INT32), total.cast(DType.INT32)
    if not soft:
        return numbers
    return numbers[0], valid.where(scores.take(found, 0), 0.0, scores.dtype), numbers[1]


def _real(node: Node, place: int) -> Term:
    """An input as floats; bytes are dequantised."""
    x = node.term(place)
    if x.dtype == DType.UINT8:
        return dequantised(node, x, node.scale(place))
    if x.dtype != DType.FLOAT32:
        raise node.unsupported(f"an operand of {x.dtype}")
    return x


def _decoded(node: Node, options: dict[str, float]) -> Term:
    """Boxes by their corners, y and x of the lower one first; computed in float64."""
    codes, anchors = (_real(node, place).cast(DType.FLOAT64) for place in (0, 2))
    codes = codes.reshape(-1, codes.shape[-1])
    node.require(codes.shape[1] >= 4 and anchors.shape == (codes.shape[0], 4), "[N, 4] anchors")
    centre = np.asarray([options["y_scale"], options["x_scale"]])
    size = np.asarray([options["h_scale"], options["w_scale"]])
    node.require(bool((centre > 0).all() and (size > 0).all()), "scales above 0")
    extent = anchors.slice(1, 2, 4)
    middle = codes.slice(1, 0, 2) / centre * extent + anchors.slice(1, 0, 2)
    half = (codes.slice(1, 2, 4) / size).exp() * 0.5 * extent
    middle, half = middle.cast(DType.FLOAT32), half.cast(DType.FLOAT32)
    return concatenate([middle - half, middle + half], 1)


@frozen
class _Candidates:
    """Boxes [N, 4] and the scores of each for all classes, [N, C]; how many are wanted."""

    node: Node
    options: dict[str, Any]
    boxes: Term
    scores: Term
    most: int

    def apart(self, scores: Term, limit: int) -> tuple[Term, Term]:
        """As ``_chosen``, by scores [rows, N], with the limits of the file."""
        node = self.node
        least = np.nextafter(np.float32(self.options["nms_score_threshold"]), np.float32(-np.inf))
        overlap, enough = (
            node.constant(each, DType.FLOAT32)
            for each in (self.options["nms_iou_threshold"], least)
        )
        return _chosen(node, self.boxes, scores, limit, overlap, enough)

    def padded(self, x: Term, valid: Term, size: int) -> Term:
        """``size`` elements or rows, 0 where they are not ``valid``."""
        missing = size - x.shape[0]
        whole = x.pad([(0, missing), *[(0, 0)] * (x.rank - 1)]) if missing > 0 else x
        return valid.reshape(-1, *[1] * (x.rank - 1)).where(whole, 0.0, DType.FLOAT32)

    def valid(self, size: int, total: Term) -> Term:
        """True for those of ``size`` that are among the first ``total``."""
        self.node.context.require_room(size)
        return self.node.constant(np.arange(size), DType.INT64) < total

    def by_box(self, classes: int) -> tuple[Term, ...]:
        """Boxes by their best class each; then the ``classes`` best of those chosen."""
        node, each = self.node, min(classes, self.scores.shape[1])
        rows, total = self.apart(self.scores.max(1).unsqueeze(0), self.most)
        places = rows.slice(1, 1, 2).reshape(-1)
        ordered, order = node.context.emit_many(Sort(each, True), self.scores.tensor)
        valid = self.valid(self.most, total)

        def spread(x: Term) -> Term:
            found = self.padded(x.take(places, 0), valid, self.most)
            return found.pad([(0, 0), (0, classes - each)]).reshape(1, -1)

        boxes = self.padded(self.boxes.take(places, 0), valid, self.most)
        many = boxes.unsqueeze(1).expand(self.most, classes, 4).reshape(1, -1, 4)
        first, second = Term(node.context, order).cast(DType.FLOAT32), Term(node.context, ordered)
        return many, spread(first), spread(second), total.cast(DType.FLOAT32).reshape(1)

    def by_class(self, limit: int) -> tuple[Term, ...]:
        """At most ``limit`` boxes of each class separately; then the best of all."""
        node, classes = self.node, self.scores.shape[1]
        rows, total = self.apart(self.scores.transpose(1, 0), limit)
        kinds, places = (rows.slice(1, n, n + 1).reshape(-1) for n in range(2))
        found = self.scores.reshape(-1).take(places * classes + kinds, 0)
        found = self.valid(rows.shape[0], total).where(found, -np.inf, DType.FLOAT32)
        size = min(self.most, rows.shape[0])
        best, order = node.context.emit_many(Sort(size, True), found.tensor)
        first, number = Term(node.context, order), total.minimum(self.most)
        valid = self.valid(self.most, number)
        boxes, kind, score = (
            self.padded(x, valid, self.most).unsqueeze(0)
            for x in (
                self.boxes.take(places.take(first, 0), 0),
                kinds.take(first, 0).cast(DType.FLOAT32),
                Term(node.context, best),
            )
        )
        return boxes, kind, score, number.cast(DType.FLOAT32).reshape(1)


def convert_post_process(node: Node) -> tuple[Term, ...]:
    """Boxes [1, D, 4], classes and scores [1, D], how many there are [1]; 0 behind the last.

    Source: TensorFlow Lite, ``detection_postprocess.cc``.
    """
    options = node.custom_options()
    most, classes = int(options["max_detections"]), int(options["num_classes"])
    scores = _real(node, 1)
    scores = scores.reshape(-1, scores.shape[-1])
    background = scores.shape[1] - classes
    node.require(most > 0 and background in (0, 1) and classes > 0, "scores of all classes")
    scores = scores.slice(1, background, scores.shape[1])
    boxes = _decoded(node, options)
    node.require(scores.shape[0] == boxes.shape[0], "scores of all boxes")
    each, limit = (
        int(options.get(name, default))
        for name, default in (("max_classes_per_detection", 1), ("detections_per_class", 100))
    )
    node.require(each > 0 and limit > 0, "1 class or more, and 1 detection or more of each")
    node.context.require_room(most, each, 4)
    candidates = _Candidates(node, options, boxes, scores, most)
    if options.get("use_regular_nms"):
        return candidates.by_class(limit)
    return candidates.by_box(each)


DETECTION: dict[str, Converter] = {
    "NON_MAX_SUPPRESSION_V4": convert_suppression,
    "NON_MAX_SUPPRESSION_V5": convert_suppression,
    "TFLite_Detection_PostProcess": convert_post_process,
}
