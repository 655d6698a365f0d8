"""Let convolutions and maximum pools pad for themselves.

    Conv2d(Pad(x, value), zero_point = value)  ->  Conv2d(x) with larger pads
    MaxPool2d(Pad(x, -128))                    ->  MaxPool2d(x) with larger pads
    Pad(x) of nothing                          ->  x

Every rewrite leaves one Pad fewer to be read, so the pass ends.
"""

from dataclasses import replace

from ..ir import Node
from ..operators.integer.products import Conv2d
from ..operators.integer.windows import MaxPool2d, Pad
from ..rewrite import Rewriter, Rewriting

__all__ = ["FOLD_PADS"]


def _drop_empty(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Pad) or any(node.operator.pads):
        return None
    return node.inputs[0]


def _fold_into_window(rewriter: Rewriter, node: Node) -> str | None:
    before = rewriter.graph.producer(node.inputs[0])
    if before is None or not isinstance(before.operator, Pad):
        return None
    match node.operator:
        case Conv2d(zero_point=required):
            pass
        case MaxPool2d():
            required = -128
        case _:
            return None
    if before.operator.value != required:
        return None
    top, left, bottom, right = (
        own + added for own, added in zip(node.operator.pads, before.operator.pads, strict=True)
    )
    operator = replace(node.operator, pads=(top, left, bottom, right))
    inputs = (before.inputs[0], *node.inputs[1:])
    return rewriter.builder.node(operator, inputs, node.output, node.origin)


FOLD_PADS = Rewriting("fold_pads", (_drop_empty, _fold_into_window))
