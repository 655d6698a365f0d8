"""Choice of constant results that are worth computing at compile time, and the work for it."""

from collections.abc import Sequence
from math import prod

from .operators.contractions import Contract, Convolution, Determinant
from .operators.protocol import TensorOperator
from .operators.recurrent import Recurrence
from .operators.repetition import Repeat
from .operators.selection import SuppressOverlaps
from .operators.transposed import TransposedConvolution
from .operators.windows import WindowArgMax, WindowReduce
from .types import TensorType

__all__ = ["FOLDED_WORK", "NODE_WORK", "evaluation_work", "is_worth_folding"]

FOLDED_ELEMENTS = 1 << 16
"""A constant result of more elements is only kept when it is no larger than what it is made of."""

FOLDED_WORK = 1 << 31
"""An operator that takes more work stays in the graph: machine code is faster."""

NODE_WORK = 40_000
"""Elements that might be moved while the interpreter goes to the next node."""


def is_worth_folding(
    operator: TensorOperator, results: Sequence[TensorType], given: Sequence[TensorType]
) -> bool:
    """True if results computed from constants are soon there, and small enough to be constants
    themselves.
    """
    most = max(FOLDED_ELEMENTS, sum(each.elements for each in given))
    small = all(each.elements <= most for each in results)
    return small and evaluation_work(operator, results, given) <= FOLDED_WORK


def evaluation_work(
    operator: TensorOperator, results: Sequence[TensorType], given: Sequence[TensorType]
) -> int:
    """About how many elements are multiplied or moved as the operator's meaning is evaluated."""
    moved = sum(each.elements for each in (*results, *given))
    match operator:
        case Contract(sizes=sizes):
            return moved + prod(sizes)
        case Convolution() | TransposedConvolution():
            x, w = max(results[0].elements, given[0].elements), given[1]
            return moved + x * (w.elements // max(w.shape[0], 1))
        case WindowReduce(kernel=kernel) | WindowArgMax(kernel=kernel):
            return moved + results[0].elements * prod(kernel)
        case Determinant():
            return moved * max(given[0].shape)
        case Recurrence():
            return moved * max(each.elements for each in given)
        case SuppressOverlaps():
            return NODE_WORK * moved * moved
        case Repeat(body=body, count=count):
            iteration = sum(
                NODE_WORK
                + evaluation_work(
                    node.operator,
                    [body.types[name] for name in node.outputs],
                    [body.types[name] for name in node.inputs],
                )
                for node in body.nodes
            )
            return moved + count * (NODE_WORK + iteration)
        case _:
            return moved
