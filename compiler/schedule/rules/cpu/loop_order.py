"""Order of the loops of a sum of products, from the outermost in."""

from collections.abc import Sequence
from math import prod

from .machine import Machine
from .products import Products

__all__ = ["order_output", "order_summed"]


WRITTEN = 3
"""Cost of reading what another core has written, relative to reading weights."""
LEAST_POSITIONS = 100
"""Least positions of an image whose layers are mostly shared by rows."""


def order_output(products: Products, vector: str, machine: Machine) -> list[str]:
    """The loops around the sum, the outermost first.

    vector: the loop that is in lanes; what its operands alone depend on comes first.
    """
    uses = products.labels
    with_vector = [used for used in uses if vector in used]
    strong = set.intersection(*with_vector) if with_vector else set()
    weak = set().union(*(used for used in uses if vector not in used))
    only = [label for label in products.kept if label in strong - weak]
    batch = [label for label in products.kept if label in strong & weak]
    rest = [x for x in products.kept if x not in only and x not in batch]
    if machine.threads > 1 and not batch:
        return _shared_order(products, vector, only, rest)
    return [*batch, *only, *rest]


def _shared_order(
    products: Products, vector: str, only: Sequence[str], rest: Sequence[str]
) -> list[str]:
    """The same for threads, which share the outermost loop: the first of ``rest``, rows of an
    image, or else ``only``, channels.

    With rows each thread needs all weights; with channels it needs all of the other operand, most
    of which another thread has just written.  Where an operand has both, sharing by channels reads
    neither twice, but what is written by channels is read by rows.
    """
    rows = next((label for label in rest if products.sizes[label] > 1), None)
    if rows is None:
        return [*only, *rest]
    weights, others = 0, 0
    for axes in products.operands:
        used = {label for axis in axes for label, _ in axis}
        elements = products.elements(axes)
        if rows not in used:
            weights += elements
        elif vector not in used:
            others += elements
    positions = prod(products.sizes[label] for label in rest)
    by_rows = WRITTEN * others >= weights if others else positions >= LEAST_POSITIONS
    if not by_rows:
        return [*only, *rest]
    return [rows, *only, *(label for label in rest if label != rows)]


def order_summed(products: Products, vector: str) -> list[str]:
    """The loops of the sum but ``vector``, the outermost first: by stride in the operand that has
    most of them.
    """

    def stride(name: str) -> int:
        strides = [0]
        for read in products.reads:
            for place, axis in enumerate(read.axes):
                own = prod(read.buffer.shape[place + 1 :])
                strides += [step * own for other, step in axis if other == name]
        return max(strides)

    return sorted((x for x in products.summed if x != vector), key=stride, reverse=True)
