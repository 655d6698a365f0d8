"""Normalised rows as one operator, where a framework has written out sums, squares and roots.

    d = x - mean(x); d * (1 / sqrt(mean(d * d) + e))   ->  NormalizedRows(x)
    x * (1 / sqrt(mean(x * x) + e))                    ->  NormalizedRows(x), not centred

A mean is a sum over the last dimension, divided by how many it sums.  What comes before the last
product goes when nothing else reads it.  Products become other nodes, so the pass ends.
"""

from collections.abc import Iterator

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..ir import Graph, Node
from ..operators.elementwise import Binary, BinaryFunction, Unary, UnaryFunction
from ..operators.reductions import Reduce, ReduceFunction
from ..operators.rows import NormalizedRows
from ..rebuild import replaced
from .eliminate_dead import EliminateDead

__all__ = ["FuseNorms"]

LONGEST = 8192
"""Elements of a row, which a GPU's block keeps."""
Found = tuple[NormalizedRows, tuple[str, ...]]


@frozen
class FuseNorms:
    """See the module's docstring."""

    name: str = "fuse_norms"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        matcher = _Matcher(graph)
        found = {node.output: each for node in graph.nodes if (each := matcher.norm(node))}
        if not found:
            return graph
        return EliminateDead().run(replaced(graph, found))


@frozen
class _Matcher:
    graph: Graph

    def norm(self, last: Node) -> Found | None:
        """The normalisation that the last product, or quotient, computes."""
        for rest, root in self.quotients(last):
            kind = self.graph.types[rest]
            if (
                kind.dtype is not DType.FLOAT32
                or not kind.rank
                or not 1 < kind.shape[-1] <= LONGEST
            ):
                continue
            epsilon = self.spread(root, rest)
            if epsilon is not None and self.graph.types[last.output] == kind:
                x = self.before_mean(rest)
                return NormalizedRows(epsilon, x is not None), (x or rest,)
        return None

    def quotients(self, node: Node) -> Iterator[tuple[str, str]]:
        """``a / sqrt(b)`` as the names of a and b, in the ways that it may be written."""
        if not isinstance(node.operator, Binary):
            return
        one, two = node.inputs
        if node.operator.function is BinaryFunction.DIV:
            root = self.root(two)
            if root is not None:
                yield one, root
        elif node.operator.function is BinaryFunction.MUL:
            for rest, factor in ((one, two), (two, one)):
                made = self.binary(factor, BinaryFunction.DIV)
                if made is not None and self.number(made[0]) == 1.0:
                    root = self.root(made[1])
                    if root is not None:
                        yield rest, root

    def spread(self, name: str, rest: str) -> float | None:
        """The number that is added to the mean of squares of ``rest``."""
        made = self.binary(name, BinaryFunction.ADD)
        for squares, added in (made, made[::-1]) if made is not None else ():
            epsilon, given = self.number(added), self.mean(squares)
            if epsilon is not None and given is not None and self.is_square(given, rest):
                return epsilon
        return None

    def before_mean(self, name: str) -> str | None:
        """The x of ``x - mean(x)``."""
        made = self.binary(name, BinaryFunction.SUB)
        return made[0] if made is not None and self.mean(made[1]) == made[0] else None

    def mean(self, name: str) -> str | None:
        """The tensor of whose rows ``name`` is the mean."""
        made = self.binary(name, BinaryFunction.DIV)
        node = self.graph.producer(made[0]) if made is not None else None
        if made is None or node is None or not isinstance(node.operator, Reduce):
            return None
        (x,), operator = node.inputs, node.operator
        shape = self.graph.types[x].shape
        rows = operator.axes == (len(shape) - 1,) and operator.keep
        whole = operator.function is ReduceFunction.SUM and self.number(made[1]) == shape[-1]
        return x if rows and whole else None

    def is_square(self, name: str, of: str) -> bool:
        """True if the tensor ``name`` is the square of the tensor ``of``."""
        product = self.binary(name, BinaryFunction.MUL)
        power = self.binary(name, BinaryFunction.POW)
        return product == (of, of) or (
            power is not None and power[0] == of and self.number(power[1]) == 2.0
        )

    def root(self, name: str) -> str | None:
        """The tensor of which ``name`` is the square root."""
        node = self.graph.producer(name)
        found = node is not None and node.operator == Unary(UnaryFunction.SQRT)
        return node.inputs[0] if node is not None and found else None

    def binary(self, name: str, function: BinaryFunction) -> tuple[str, str] | None:
        """The operands, where such a function makes a tensor."""
        node = self.graph.producer(name)
        if node is None or node.operator != Binary(function):
            return None
        one, two = node.inputs
        return one, two

    def number(self, name: str) -> float | None:
        """The value of a constant with one element."""
        array = self.graph.constants.get(name)
        if array is None or array.size != 1:
            return None
        return float(np.asarray(array).reshape(()))
