"""Products in int32 of two tensors of bytes, neither of them constant, for tensor cores.

    (int32(a) - x) @ (int32(b) - y)  ->  a @ b - x * sum(b) - y * sum(a) + x * y * length

``x`` and ``y`` are zero points of whole tensors.  Operands become bytes, which no pattern matches
again, so the pass ends.
"""

from collections.abc import Sequence

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..formulas import Term
from ..ir import Graph, Node
from ..operators.contractions import Contract
from ..rebuild import Terms, with_formulas
from .byte_products import Bytes, bytes_of

__all__ = ["BytePairs"]

LEAST = 16
"""Rows, columns and summed elements of the smallest product that tensor cores take."""


@frozen
class BytePairs:
    """See the module's docstring."""

    name: str = "byte_pairs"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        found: dict[str, tuple[Bytes, Bytes]] = {}
        for node in graph.nodes:
            if not _is_large_product(node.operator):
                continue
            first, second = (bytes_of(graph, name) for name in node.inputs)
            if first and second:
                found[node.output] = first, second

        def formula(node: Node, pair: tuple[Bytes, Bytes], term: Terms) -> Term:
            bytes_: list[Term] = []
            zeros: list[Term | None] = []
            for name, zero in pair:
                bytes_.append(term(name))
                given = graph.constants.get(zero) if zero else None
                none = zero is None or (given is not None and not given.any())
                zeros.append(None if none else term(zero or ""))
            return _product(node, bytes_, zeros)

        return with_formulas(graph, found, formula)


def _is_large_product(operator: object) -> bool:
    """True if it is a product of matrices, perhaps of several at a time, for tensor cores."""
    if not isinstance(operator, Contract) or operator.dtype != DType.INT32:
        return False
    every = (*operator.operands, operator.output)
    if len(every) != 3 or any(len(axis) != 1 or axis[0][1] != 1 for axes in every for axis in axes):
        return False
    a, b, result = ([axis[0][0] for axis in axes] for axes in every)
    if len({*a}) < len(a) or len({*b}) < len(b) or {*a} | {*b} != {*range(len(operator.sizes))}:
        return False
    own = [label for label in result if (label in a) != (label in b)]
    large = [label for label in (*own, *operator.summed) if operator.sizes[label] >= LEAST]
    return len(operator.summed) == 1 and {*operator.summed} <= {*a} & {*b} and len(large) >= 3


def _product(node: Node, bytes_: Sequence[Term], zeros: Sequence[Term | None]) -> Term:
    operator = node.operator
    assert isinstance(operator, Contract)
    context = bytes_[0].context
    total = Term(context, context.emit(operator, *(each.tensor for each in bytes_)))
    for number, zero in enumerate(zeros):
        if zero is not None:
            total = total - zero.reshape() * _sums(operator, 1 - number, bytes_[1 - number])
    first, second = zeros
    if first is not None and second is not None:
        (label,) = operator.summed
        total = total + first.reshape() * second.reshape() * operator.sizes[label]
    return total


def _sums(operator: Contract, number: int, x: Term) -> Term:
    """An operand's sums, of as many dimensions as the result has: 1 where it has no label."""
    labels = [axis[0][0] for axis in operator.operands[number]]
    (summed,) = operator.summed
    rows = x.cast(DType.INT32).sum(labels.index(summed))
    labels.remove(summed)
    order = [label for label in operator.kept if label in labels]
    turned = rows.transpose(*(labels.index(label) for label in order))
    return turned.reshape(
        *(operator.sizes[label] if label in labels else 1 for label in operator.kept)
    )
