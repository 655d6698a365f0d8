"""Products of bytes in int32, left as bytes for instructions that multiply uint8 by int8.

CPUs' instructions take only uint8 on the left, GPUs' int8 too.

    convolution(int32(x) - z, w)  ->  convolution(pad(x', z'), w) - z' * sum(w)
    (int32(a) - z) @ w            ->  a' @ w - z' * sum(w)

``w`` are constant weights that fit int8.  ``x'`` is ``x`` and ``z'`` its zero point; with
``raised``, int8 and its zero point are both raised by 128 to uint8.  With ``by_rows`` the weights
of matrix products are kept as rows along what is summed.  Convolutions of few channels stay: a
vector would be mostly empty.  Operands become bytes, which no pattern matches again, so the pass
ends.
"""

from dataclasses import replace

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..formulas import Term
from ..ir import Graph, Node
from ..operators.contractions import Contract, Convolution
from ..operators.elementwise import Binary, BinaryFunction, Bitcast, Cast
from ..rebuild import Terms, with_formulas

__all__ = ["ByteProducts", "Bytes", "bytes_of", "is_matrix_product", "turned"]

Bytes = tuple[str, str | None]
"""A tensor of bytes, and its zero point if it has one."""
FEWEST_CHANNELS = 8
"""For convolutions of bytes, which fill up to 16 channels."""


@frozen
class ByteProducts:
    """See the module's docstring."""

    raised: bool = True
    by_rows: bool = False
    name: str = "byte_products"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        found = {
            node.output: bytes_
            for node in graph.nodes
            if _takes_bytes(graph, node, self.by_rows)
            and (bytes_ := bytes_of(graph, node.inputs[0]))
        }

        def formula(node: Node, bytes_: Bytes, term: Terms) -> Term:
            x, zero = term(bytes_[0]), None if bytes_[1] is None else term(bytes_[1])
            w = term(node.inputs[1]).cast(DType.INT8)
            offset = x.constant(0, DType.INT32) if zero is None else zero.reshape()
            if self.raised and x.dtype == DType.INT8:
                flipped = x.binary(BinaryFunction.XOR, -128)
                x = Term(x.context, x.context.emit(Bitcast(DType.UINT8), flipped.tensor))
                offset = offset + 128
            return _product(node, x, offset, w, self.by_rows)

        return with_formulas(graph, found, formula)


def _takes_bytes(graph: Graph, node: Node, by_rows: bool) -> bool:
    """True if the node is a product whose weights are constant and fit int8."""
    operator = node.operator
    if not isinstance(operator, Convolution | Contract) or operator.dtype != DType.INT32:
        return False
    weights = graph.constants.get(node.inputs[-1])
    if len(node.inputs) != 2 or weights is None or not weights.size:
        return False
    if isinstance(operator, Convolution):
        dense = operator.groups == 1 and min(weights.shape[:2]) >= FEWEST_CHANNELS
        if not dense or set(operator.expansions) != {1}:
            return False
    elif weights.ndim != 2 or not (
        is_matrix_product(operator) or (by_rows and is_matrix_product(turned(operator)))
    ):
        return False
    return bool(weights.min() >= -128 and weights.max() <= 127)


def is_matrix_product(operator: Contract) -> bool:
    """True if the rows of the second operand are summed over, its columns the result's last."""
    rows, columns = operator.operands[1]
    summed = [((label, 1),) for label in operator.summed]
    return summed == [rows] and operator.output[-1:] == (columns,)


def turned(operator: Contract) -> Contract:
    """The contraction with rows and columns of its second operand, a matrix, exchanged."""
    first, (rows, columns) = operator.operands
    return replace(operator, operands=(first, (columns, rows)))


def bytes_of(graph: Graph, name: str) -> Bytes | None:
    """The bytes whose difference from a zero point ``name`` is, and the zero point if any."""
    node, zero = graph.producer(name), None
    if node and isinstance(node.operator, Binary):
        if node.operator.function is not BinaryFunction.SUB:
            return None
        zero = node.inputs[1]
        if graph.types[zero].elements != 1:
            return None
        node = graph.producer(node.inputs[0])
    if node is None or not isinstance(node.operator, Cast):
        return None
    (x,) = node.inputs
    return (x, zero) if graph.types[x].dtype in (DType.INT8, DType.UINT8) else None


def _product(node: Node, x: Term, offset: Term, w: Term, by_rows: bool) -> Term:
    context = x.context
    wide = w.cast(DType.INT32)
    operator = node.operator
    if isinstance(operator, Contract):
        summed = 0 if is_matrix_product(operator) else 1
        if by_rows and summed == 0:
            operator, w = turned(operator), w.transpose(1, 0)
        total = Term(context, context.emit(operator, x.tensor, w.tensor))
        return total - offset * wide.sum(summed)
    assert isinstance(operator, Convolution)
    pads = operator.pads
    x = x.pad([(0, 0), (0, 0), *pads], offset.cast(x.dtype))
    plain = replace(operator, pads=((0, 0),) * len(pads))
    total = Term(context, context.emit(plain, x.tensor, w.tensor))
    sums = wide.sum(*range(1, w.rank))
    return total - (offset * sums).reshape(-1, *(1,) * len(pads))
