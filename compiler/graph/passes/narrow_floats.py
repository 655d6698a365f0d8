"""Floats of a float32 model in 16 bits where they are stored, and where products read them.

    y = convolution(x, w) + b         ->  y' = narrow(convolution(x', w') + b)
    z = softmax(y)                    ->  z = softmax(float32(y'))

x' is x in 16 bits.  All arithmetic stays in float32, sums of products too: a tensor is rounded
once, when its group of nodes stores it.  A product's operands are stored so, and its results as
long as only functions follow that cannot leave the range of what they read.  What exponentials,
logarithms, roots, quotients, reductions and squares give is kept in float32, unless a product
reads it.  Inputs and outputs of the graph keep their types, and so do bodies of loops.

Products then have narrow operands, which no pattern matches again, so the pass ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..emitter import Emitter
from ..groups import group_nodes
from ..ir import Graph, Node
from ..operators.attention import Attention
from ..operators.contractions import Contract, Convolution
from ..operators.elementwise import (
    Binary,
    BinaryFunction,
    Cast,
    MultiplyAdd,
    Unary,
    UnaryFunction,
    Where,
)
from ..operators.protocol import Fusion
from ..operators.windows import WindowFunction, WindowReduce
from ..rebuild import Rebuilding
from .eliminate_dead import EliminateDead

__all__ = ["NarrowFloats"]

BOUNDED = (UnaryFunction.NEG, UnaryFunction.ABS, UnaryFunction.TANH, UnaryFunction.ERF)
SUMS = (BinaryFunction.ADD, BinaryFunction.SUB, BinaryFunction.MIN, BinaryFunction.MAX)


@frozen
class NarrowFloats:
    """dtype: float16 or bfloat16.  See the module's docstring."""

    dtype: DType
    name: str = "narrow_floats"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when it has no products of float32."""
        if not any(_factors(graph, node) for node in graph.nodes):
            return graph
        return _Narrowing(graph, self.dtype).run()


def _factors(graph: Graph, node: Node) -> tuple[str, ...]:
    """Factors of a float32 product; empty for other nodes."""
    operator = node.operator
    if isinstance(operator, Attention):
        found = node.inputs[:3]
    elif isinstance(operator, Contract | Convolution) and len(node.inputs) == 2:
        found = node.inputs if operator.dtype is DType.FLOAT32 else ()
    else:
        found = ()
    wide = all(graph.types[name].dtype is DType.FLOAT32 for name in found)
    return found if wide else ()


def _moves(node: Node) -> bool:
    """True if the results are elements of the operands, which 16 bits hold as well."""
    operator = node.operator
    if isinstance(operator, WindowReduce):
        return operator.function is WindowFunction.MAX
    return operator.fusion is Fusion.MOVEMENT and bool(node.inputs)


@dataclass(slots=True)
class _Narrowing:
    graph: Graph
    dtype: DType
    group: dict[str, int] = field(default_factory=dict)
    """The number of the group that makes a tensor."""
    stored: set[str] = field(default_factory=set)
    """Tensors that groups store in 16 bits."""
    narrowed: dict[str, str] = field(default_factory=dict)
    """Names in the new graph of tensors in 16 bits, by those in ``graph``."""
    widened: dict[tuple[str, int], str] = field(default_factory=dict)
    """The same of such tensors in float32 again, for each group that reads them."""

    def run(self) -> Graph:
        """The new graph."""
        groups = group_nodes(self.graph)
        self.group = {each.output: n for n, nodes in enumerate(groups) for each in nodes}
        self._choose()
        rebuilding = Rebuilding(self.graph)
        emitter = Emitter(rebuilding.builder)
        for node in self.graph.nodes:
            emitter.origin = node.origin
            narrow = self._narrow_operands(node)
            inputs = [
                emitter.tensor(
                    self._narrow(rebuilding, emitter, name)
                    if name in narrow
                    else self._read(rebuilding, emitter, name, self.group[node.output])
                )
                for name in node.inputs
            ]
            results = [each.name for each in emitter.emit_many(node.operator, *inputs)]
            if self._stays(node):
                self.narrowed[node.output] = results[0]
            else:
                rebuilding.replace(node, tuple(results))
            if node.output in self.stored:
                self._narrow(rebuilding, emitter, node.output)
        return EliminateDead().run(rebuilding.build())

    def _stays(self, node: Node) -> bool:
        """True if the node moves elements of 16 bits."""
        return _moves(node) and node.output in self.stored

    def _narrow_operands(self, node: Node) -> tuple[str, ...]:
        """Operands that the node reads in 16 bits."""
        if self._stays(node):
            return tuple(filter(self._is_wide, node.inputs))
        return _factors(self.graph, node)

    def _is_wide(self, name: str) -> bool:
        return self.graph.types[name].dtype is DType.FLOAT32

    def _narrow(self, rebuilding: Rebuilding, emitter: Emitter, name: str) -> str:
        if name not in self.narrowed:
            wide = emitter.tensor(rebuilding.tensor(name))
            self.narrowed[name] = emitter.emit(Cast(self.dtype), wide).name
        return self.narrowed[name]

    def _read(self, rebuilding: Rebuilding, emitter: Emitter, name: str, reader: int) -> str:
        """The tensor as a group computes with it."""
        if name not in self.stored:
            return rebuilding.tensor(name)
        if (name, reader) not in self.widened:
            narrow = emitter.tensor(self.narrowed[name])
            self.widened[name, reader] = emitter.emit(Cast(DType.FLOAT32), narrow).name
        return self.widened[name, reader]

    def _choose(self) -> None:
        """Find what is stored in 16 bits, from the last node to the first."""
        plain = self._plain()
        for node in reversed(self.graph.nodes):
            name, readers = node.output, self.graph.consumers(node.output)
            crosses = any(self.group[each.output] != self.group[name] for each in readers)
            if name in self.graph.outputs or not crosses or len(node.outputs) > 1:
                continue
            if not self._is_wide(name) or not all(self._may_read(each, name) for each in readers):
                continue
            wanted = any(name in self._narrow_operands(each) for each in readers)
            if wanted or (name in plain and not all(map(_moves, readers))):
                self.stored.add(name)

    def _may_read(self, reader: Node, name: str) -> bool:
        """True if it takes 16 bits, or loops that convert them as they read."""
        if name in self._narrow_operands(reader):
            return True
        return reader.operator.fusion not in (Fusion.CONTRACTION, Fusion.OPAQUE)

    def _plain(self) -> set[str]:
        """Tensors that are activations: results of products, and bounded functions of them."""
        found = {name for name in self.graph.inputs if self._is_wide(name)}
        for node in self.graph.nodes:
            if _factors(self.graph, node):
                found.add(node.output)
            elif _moves(node) or _is_bounded(self.graph, node):
                given = {each for each in self._variables(node) if self._is_wide(each)}
                if given <= found:
                    found.update(node.outputs)
        return found

    def _variables(self, node: Node) -> Iterator[str]:
        return (name for name in node.inputs if name not in self.graph.constants)


def _is_bounded(graph: Graph, node: Node) -> bool:
    """True if results are about as large as operands."""
    known = [name in graph.constants for name in node.inputs]
    match node.operator:
        case Unary(function=function):
            return function in BOUNDED
        case Binary(function=BinaryFunction.MUL):
            return any(known)
        case Binary(function=BinaryFunction.DIV):
            return known[1]
        case Binary(function=function):
            return function in SUMS
        case MultiplyAdd():
            return any(known[:2])
        case operator:
            return isinstance(operator, Where)
