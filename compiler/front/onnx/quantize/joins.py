"""Joins whose operands should not share a scale, such as the boxes and scores of a detector."""

from collections.abc import Mapping

from .model import FloatModel
from .observe import Range
from .plan import JOINED, Plan, Role, activations

__all__ = ["unlike_joins"]

FACTOR = 4.0
"""The scale of a range this many times as wide as another leaves that one six of its eight bits."""


def unlike_joins(model: FloatModel, decided: Plan, ranges: Mapping[str, Range]) -> dict[str, str]:
    """First outputs of the joins to leave float, each with the reason.

    No integer operator computes with the result of such a join: it is only moved on its way to an
    output, or to what is float.  ranges: of what is neither moved nor joined.
    """
    computed, found = _computed(model, decided), {}
    seen = dict(ranges)
    for node in model.nodes:
        out = node.outputs[0]
        if decided.roles.get(out) is not Role.PASS:
            continue
        read = {name: seen[name] for name in activations(model, node) if name in seen}
        if not read:
            continue
        lows, highs = zip(*read.values(), strict=True)
        seen.update(dict.fromkeys(node.outputs, (min(lows), max(highs))))
        spans = {name: high - low for name, (low, high) in read.items() if high > low}
        if node.kind not in JOINED or out in computed or not spans:
            continue
        wide, narrow = max(spans, key=spans.__getitem__), min(spans, key=spans.__getitem__)
        if spans[wide] > FACTOR * spans[narrow]:
            found[out] = (
                f"it joins {wide!r}, over a range of {spans[wide]:.3g}, with {narrow!r}, over one "
                f"of {spans[narrow]:.3g}: too unlike for one scale"
            )
    return found


def _computed(model: FloatModel, decided: Plan) -> set[str]:
    """The tensors that integer operators compute with, moved and joined or not."""
    found: set[str] = set()
    for node in reversed(model.nodes):
        role = decided.roles.get(node.outputs[0])
        moves = role is Role.PASS and found.isdisjoint(node.outputs)
        if role is not None and not moves:
            found.update(node.inputs)
    return found
