"""In which order the loops of a contraction lie around each other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from ..define.operand import Operand
from ..graph.operators.contractions import Contract
from .scope import Scope

__all__ = ["order_output", "order_summed", "order_unrolled"]


WRITTEN = 3
"""Reading what another core has written, over reading weights, by time."""
LEAST_POSITIONS = 100
"""Of an image, from which on most of its layers are shared by rows."""


def order_output(operator: Contract, vector: int | None, scope: Scope) -> list[int]:
    """The labels of the output, the outermost first, noted in ``scope``.

    vector: the label that lies in lanes; what its operands alone depend on comes first.
    """
    uses = [{x for axis in axes for x, _ in axis} for axes in operator.operands]
    with_vector = [used for used in uses if vector in used]
    strong = set.intersection(*with_vector) if with_vector else set()
    weak = set().union(*(used for used in uses if vector not in used))
    only = [label for label in operator.kept if label in strong - weak]
    batch = [label for label in operator.kept if label in strong & weak]
    rest = [x for x in operator.kept if x not in only and x not in batch]
    found = [*batch, *only, *rest]
    if scope.machine.threads > 1 and not batch:
        found = _shared_order(operator, vector, only, rest)
    order = scope.decisions.order("outer", found)
    scope.taken = replace(scope.taken, outer=tuple(order))
    return order


def _shared_order(
    operator: Contract, vector: int | None, only: Sequence[int], rest: Sequence[int]
) -> list[int]:
    """The same for threads, which share the outermost loop: the first of ``rest``, rows of an
    image, or else ``only``, channels.

    Of rows each thread needs all weights; of channels all of the other operand, most of which
    another thread has just written.  Where an operand has both, by channels neither is read twice,
    but what is written by channels is read by rows.
    """
    rows = next((label for label in rest if operator.sizes[label] > 1), None)
    if rows is None:
        return [*only, *rest]
    weights, others = 0, 0
    for axes in operator.operands:
        used = {label for axis in axes for label, _ in axis}
        elements = prod(sum(n * (operator.sizes[x] - 1) for x, n in axis) + 1 for axis in axes)
        if rows not in used:
            weights += elements
        elif vector not in used:
            others += elements
    positions = prod(operator.sizes[label] for label in rest)
    by_rows = WRITTEN * others >= weights if others else positions >= LEAST_POSITIONS
    if not by_rows:
        return [*only, *rest]
    return [rows, *only, *(label for label in rest if label != rows)]


def order_summed(
    operator: Contract, operands: Sequence[Operand], vector: int | None, scope: Scope
) -> list[int]:
    """The summed labels but ``vector``, the outermost first, noted in ``scope``: by stride in the
    operand that has most of them.
    """

    def stride(label: int) -> int:
        strides = [0]
        for axes, operand in zip(operator.operands, operands, strict=True):
            shape = operand.type.shape
            for place, axis in enumerate(axes):
                own = prod(shape[place + 1 :])
                strides += [step * own for other, step in axis if other == label]
        return max(strides)

    labels = [label for label in operator.summed if label != vector]
    order = scope.decisions.order("summed", sorted(labels, key=stride, reverse=True))
    scope.taken = replace(scope.taken, summed=tuple(order))
    return order


def order_unrolled(operator: Contract, vectors: Mapping[int, int]) -> list[int]:
    """The labels of which a tile has more than one of ``vectors``, the outermost first.

    One operand's values of the inner loops stay in registers, while each of the outer loops' is
    used up at once: the operand with fewer values is inside.
    """
    unrolled = [label for label, count in vectors.items() if count > 1]
    uses = [{x for axis in axes for x, _ in axis} for axes in operator.operands]
    inner = min(uses, key=lambda used: prod(vectors[x] for x in unrolled if x in used))
    return [x for x in unrolled if x not in inner] + [x for x in unrolled if x in inner]
