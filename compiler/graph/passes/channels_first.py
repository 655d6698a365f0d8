"""Move transposes towards the outputs, so that images have their channels first.

    f(Transpose(x), y)          ->  Transpose(f(x, y turned back)), f an operator that can do so
    windows over other axes     ->  Transpose, windows over the last axes, Transpose
    Transpose(Transpose(x))     ->  one Transpose, or x

Formats with channels last have a Transpose before and after each convolution.  These meet and
cancel out, and what lay between them, such as biases and activations, follows its convolution
directly.

The first moves a transpose one node nearer to the outputs, the second makes windows that no pattern
changes again, the third removes a node; so the pass ends.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dovetail.isa.frozen import frozen

from ..ir import Graph, Node
from ..operators.elementwise import Binary, Cast, MultiplyAdd, Unary, Where
from ..operators.indexing import Gather
from ..operators.movement import Concatenate, PadTensor, Reshape, Slice, Transpose
from ..operators.protocol import TensorOperator
from ..operators.reductions import Cumulative, Reduce
from ..operators.windows import WindowReduce
from ..rewrite import Rewriter, rewrite
from .convert_layout import ConvertLayout

__all__ = ["ChannelsFirst", "merge_transposes", "sink_below_elementwise", "sink_below_movement"]

Permutation = tuple[int, ...]


@frozen
class ChannelsFirst:
    """See the module's docstring."""

    name: str = "channels_first"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        patterns = (merge_transposes, sink_below_elementwise, sink_below_movement, _windows_last)
        return ConvertLayout().run(rewrite(graph, patterns))


def _before(rewriter: Rewriter, name: str) -> Node | None:
    """The transpose that makes ``name``; others may read it too."""
    node = rewriter.graph.producer(name)
    return node if node is not None and isinstance(node.operator, Transpose) else None


def merge_transposes(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Transpose):
        return None
    x, order = node.inputs[0], node.operator.permutation
    before = _before(rewriter, x)
    if before is not None:
        first = before.operator.permutation  # type: ignore[attr-defined]
        x, order = before.inputs[0], tuple(first[axis] for axis in order)
    if order == tuple(range(len(order))):
        return x
    if before is None:
        return None
    return rewriter.builder.node(Transpose(order), (x,), node.output, node.origin)


def sink_below_elementwise(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Binary | Cast | MultiplyAdd | Unary | Where):
        return None
    rank = rewriter.graph.types[node.output].rank
    turned = {name: made for name in node.inputs if (made := _before(rewriter, name))}
    orders = {each.operator.permutation for each in turned.values()}  # type: ignore[attr-defined]
    if len(orders) != 1 or len(next(iter(orders))) != rank:
        return None
    (order,) = orders
    inputs = []
    for name in node.inputs:
        own = turned[name].inputs[0] if name in turned else _turned_back(rewriter, name, order)
        if own is None:
            return None
        inputs.append(own)
    return _below(rewriter, node, node.operator, tuple(inputs), order)


def _turned_back(rewriter: Rewriter, name: str, order: Permutation) -> str | None:
    """A tensor as it is before the transpose; None when elements would have to move."""
    kind = rewriter.graph.types[name]
    if kind.elements == 1:
        return name
    shape = (1,) * (len(order) - kind.rank) + kind.shape
    back = tuple(int(place) for place in np.argsort(order))
    value = rewriter.graph.constants.get(name)
    if value is not None:
        return rewriter.builder.constant(name, value.reshape(shape).transpose(back))
    if _moves(shape, back):
        return None
    target = Reshape(tuple(shape[axis] for axis in back))
    return rewriter.builder.node(target, (name,), name, name)


def _moves(shape: tuple[int, ...], order: Permutation) -> bool:
    wide = [axis for axis in order if shape[axis] != 1]
    return wide != sorted(wide)


def _below(
    rewriter: Rewriter,
    node: Node,
    operator: TensorOperator,
    inputs: tuple[str, ...],
    order: Permutation,
) -> str:
    """``operator`` of ``inputs``, and the transpose behind it."""
    inner = rewriter.builder.node(operator, inputs, f"{node.output}/turned", node.origin)
    if order == tuple(range(len(order))):
        return inner
    return rewriter.builder.node(Transpose(order), (inner,), node.output, node.origin)


def _each(values: tuple[Any, ...], order: Permutation) -> tuple[Any, ...]:
    """Values by dimension, in the order before the transpose."""
    return tuple(values[place] for place in np.argsort(order))


def _pad(operator: Any, order: Permutation) -> TensorOperator:
    before, after = _each(operator.before, order), _each(operator.after, order)
    return PadTensor(before, after, operator.mode)


def _slice(operator: Any, order: Permutation) -> TensorOperator:
    parts = operator.starts, operator.steps, operator.shape
    return Slice(*(_each(each, order) for each in parts))


def _axes(operator: Any, order: Permutation) -> TensorOperator:
    return replace(operator, axes=tuple(order[axis] for axis in operator.axes))


def _axis(operator: Any, order: Permutation) -> TensorOperator:
    moved: TensorOperator = replace(operator, axis=order[operator.axis])
    return moved


TURNED: dict[type, Callable[[Any, Permutation], TensorOperator]] = {
    Concatenate: _axis,
    Cumulative: _axis,
    Gather: _axis,
    PadTensor: _pad,
    Reduce: _axes,
    Slice: _slice,
    WindowReduce: _axes,
}
"""The same on what a transpose has not turned yet."""


def sink_below_movement(rewriter: Rewriter, node: Node) -> str | None:
    operator = node.operator
    before = _before(rewriter, node.inputs[0]) if node.inputs else None
    if before is None:
        return None
    order: Permutation = before.operator.permutation  # type: ignore[attr-defined]
    if isinstance(operator, Reshape) and not _moves(_shape(rewriter, before.inputs[0]), order):
        return rewriter.builder.node(operator, before.inputs, node.output, node.origin)
    if type(operator) not in TURNED:
        return None
    inputs = [before.inputs[0], *node.inputs[1:]]
    if isinstance(operator, Concatenate):
        found = [_like(rewriter, name, order) for name in node.inputs]
        if None in found:
            return None
        inputs = [name for name in found if name is not None]
    if isinstance(operator, Gather) and len(_shape(rewriter, node.inputs[1])) != 1:
        return None
    if isinstance(operator, WindowReduce) and not _are_last(_axes(operator, order), len(order)):
        return None
    if isinstance(operator, Reduce) and not operator.keep:
        gone = {order[axis] for axis in operator.axes}
        left = [axis for axis in range(len(order)) if axis not in gone]
        rest = tuple(left.index(axis) for axis in order if axis not in gone)
    else:
        rest = order
    return _below(rewriter, node, TURNED[type(operator)](operator, order), tuple(inputs), rest)


def _are_last(operator: Any, rank: int) -> bool:
    """True if windows are over the last dimensions."""
    last: bool = operator.axes == tuple(range(rank - len(operator.axes), rank))
    return last


def _like(rewriter: Rewriter, name: str, order: Permutation) -> str | None:
    """The tensor before a transpose of that order, or a constant transposed back."""
    made = _before(rewriter, name)
    if made is not None and made.operator == Transpose(order):
        return made.inputs[0]
    return _turned_back(rewriter, name, order) if name in rewriter.graph.constants else None


def _shape(rewriter: Rewriter, name: str) -> tuple[int, ...]:
    return rewriter.graph.types[name].shape


def _windows_last(rewriter: Rewriter, node: Node) -> str | None:
    operator = node.operator
    if not isinstance(operator, WindowReduce):
        return None
    rank = len(_shape(rewriter, node.inputs[0]))
    if _are_last(operator, rank):
        return None
    order = (*(axis for axis in range(rank) if axis not in operator.axes), *operator.axes)
    turned = rewriter.builder.node(Transpose(order), node.inputs, f"{node.output}/x", node.origin)
    last = replace(operator, axes=tuple(range(rank - len(operator.axes), rank)))
    back = tuple(int(place) for place in np.argsort(order))
    return _below(rewriter, node, last, (turned,), back)
