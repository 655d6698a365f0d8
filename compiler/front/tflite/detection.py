"""Converters that choose boxes which do not overlap."""

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term, concatenate
from ...graph.operators.selection import SuppressOverlaps
from ...graph.operators.sorting import Sort
from .node import Converter, Node

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


def _decoded(node: Node, options: dict[str, float]) -> Term:
    """Boxes by their corners, y and x of the lower one first; computed in float64."""
    codes, anchors = (node.term(place).cast(DType.FLOAT64) for place in (0, 2))
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


def convert_post_process(node: Node) -> tuple[Term, ...]:
    """Boxes [1, D, 4], classes and scores [1, D], how many there are [1]; 0 behind the last.

    Source: TensorFlow Lite, ``detection_postprocess.cc``, with one class for each box.
    """
    options = node.custom_options()
    most, classes = int(options["max_detections"]), int(options["num_classes"])
    if options.get("use_regular_nms") or options.get("max_classes_per_detection", 1) != 1:
        raise node.unsupported("suppression by class, or more than one class for a box,")
    if node.term(0).dtype != DType.FLOAT32:
        raise node.unsupported(f"boxes of {node.term(0).dtype}")
    scores = node.term(1)
    scores = scores.reshape(-1, scores.shape[-1])
    background = scores.shape[1] - classes
    node.require(most > 0 and background in (0, 1) and classes > 0, "scores of all classes")
    scores = scores.slice(1, background, scores.shape[1])
    boxes = _decoded(node, options)
    best = scores.max(1)
    overlap = node.constant(options["nms_iou_threshold"], DType.FLOAT32)
    least = node.constant(options["nms_score_threshold"], DType.FLOAT32)
    rows, total = _chosen(node, boxes, best.unsqueeze(0), most, overlap, least)
    places = rows.slice(1, 1, 2).reshape(-1)
    node.context.require_room(most)
    places = places.pad([(0, max(most - places.shape[0], 0))])
    valid = node.constant(np.arange(most), DType.INT64) < total
    _, order = node.context.emit_many(Sort(1, True), scores.tensor)
    first = Term(node.context, order).reshape(-1).cast(DType.FLOAT32)
    kept = valid.unsqueeze(1).where(boxes.take(places, 0), 0.0, DType.FLOAT32)
    return (
        kept.unsqueeze(0),
        valid.where(first.take(places, 0), 0.0, DType.FLOAT32).unsqueeze(0),
        valid.where(best.take(places, 0), 0.0, DType.FLOAT32).unsqueeze(0),
        total.cast(DType.FLOAT32).reshape(1),
    )


DETECTION: dict[str, Converter] = {
    "NON_MAX_SUPPRESSION_V4": convert_suppression,
    "NON_MAX_SUPPRESSION_V5": convert_suppression,
    "TFLite_Detection_PostProcess": convert_post_process,
}
