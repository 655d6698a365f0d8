"""Products of float16 and bfloat16 with sums in float32, as tensor cores compute them.

    a @ b  ->  float16(float32(a) @ float32(b))

The products mean the same: their sums are rounded once.  Constant matrices are kept as rows along
what is summed, even for products whose sums are float32 already.  Sums become float32, and matrices
rows, which no pattern matches again, so the pass ends.
"""

from dataclasses import replace

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..formulas import Term
from ..ir import Graph, Node
from ..operators.contractions import Contract, Convolution
from ..rebuild import Terms, with_formulas
from .byte_products import is_matrix_product, turned

__all__ = ["WideSums"]

NARROW = (DType.FLOAT16, DType.BFLOAT16)


@frozen
class WideSums:
    """See the module's docstring."""

    name: str = "wide_sums"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        found = {
            node.output: node.operator
            for node in graph.nodes
            if isinstance(node.operator, Contract | Convolution) and _matches(graph, node)
        }

        def formula(node: Node, operator: Contract | Convolution, term: Terms) -> Term:
            x, w = map(term, node.inputs)
            wide = replace(operator, dtype=DType.FLOAT32)
            matrix = node.inputs[1] in graph.constants and w.rank == 2
            if matrix and isinstance(wide, Contract) and is_matrix_product(wide):
                wide, w = turned(wide), w.transpose(1, 0)
            total = Term(x.context, x.context.emit(wide, x.tensor, w.tensor))
            return total.cast(operator.dtype)

        return with_formulas(graph, found, formula)


def _matches(graph: Graph, node: Node) -> bool:
    operator = node.operator
    if not isinstance(operator, Contract | Convolution) or len(node.inputs) != 2:
        return False
    kinds = {graph.types[name].dtype for name in node.inputs}
    if len(kinds) > 1 or not kinds < {*NARROW}:
        return False
    weights = graph.constants.get(node.inputs[1])
    by_columns = (
        weights is not None
        and weights.ndim == 2
        and isinstance(operator, Contract)
        and is_matrix_product(operator)
    )
    return operator.dtype in kinds or (operator.dtype is DType.FLOAT32 and by_columns)
