"""Let convolutions and maximum pools pad for themselves, and as far as their results are read.

    Conv2d(Pad(x, value), zero_point = value)  ->  Conv2d(x) with larger pads
    MaxPool2d(Pad(x, -128))                    ->  MaxPool2d(x) with larger pads
    Pad(x) of nothing                          ->  x
    Slice(Requantize(Conv2d(x)))               ->  Requantize(Conv2d(x) with smaller pads)

The last form takes rows or columns off the ends, as networks of time do for causal convolutions,
where the pads are wide enough and nothing else reads the rest.  Every rewrite leaves one Pad or
Slice fewer to be read, so the pass ends.
"""

from dataclasses import replace

from ..ir import Node
from ..operators.integer.products import Conv2d
from ..operators.integer.values import Requantize
from ..operators.integer.windows import MaxPool2d, Pad
from ..operators.movement import Slice
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


def _unpadded(rewriter: Rewriter, node: Node) -> str | None:
    graph, builder, cut = rewriter.graph, rewriter.builder, node.operator
    finish = graph.producer(node.inputs[0])
    if not isinstance(cut, Slice) or finish is None or not isinstance(finish.operator, Requantize):
        return None
    total = graph.producer(finish.inputs[0])
    if total is None or not isinstance(total.operator, Conv2d):
        return None
    for name in (total.output, finish.output):
        if name in graph.outputs or len(graph.consumers(name)) > 1:
            return None
    whole = graph.types[finish.output].shape
    if set(cut.steps) != {1} or cut.shape[3] != whole[3]:
        return None
    first = cut.starts[1:3]
    last = [whole[axis] - cut.shape[axis] - cut.starts[axis] for axis in (1, 2)]
    steps = 2 * total.operator.strides
    fewer = [step * count for step, count in zip(steps, (*first, *last), strict=True)]
    top, left, bottom, right = (a - b for a, b in zip(total.operator.pads, fewer, strict=True))
    if min(top, left, bottom, right) < 0:
        return None
    conv = replace(total.operator, pads=(top, left, bottom, right))
    sums = builder.node(conv, total.inputs, total.output, total.origin)
    return builder.node(finish.operator, (sums, *finish.inputs[1:]), node.output, finish.origin)


FOLD_PADS = Rewriting("fold_pads", (_drop_empty, _fold_into_window, _unpadded))
