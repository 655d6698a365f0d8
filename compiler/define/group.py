"""One loop program for a group of nodes.

A group is a set of nodes with at most one anchor (an operator with loops of its own).  Nodes before
the anchor are computed as it reads them, nodes after it as it stores its result; without an anchor
the group is one loop nest over the elements of its result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ..errors import UnsupportedOperatorError
from ..graph.groups import is_border
from ..graph.ir import Graph, Node
from ..graph.operators.movement import PadTensor, Slice
from ..loops.expressions import Buffer, Constant, Expr, Load, Variable
from ..loops.ir import Function, Let, Stmt, Store, block, loops
from .borders import border
from .definition import Definition, Kind
from .operand import Indices, Operand, Result, Scope, zero
from .table import ANCHORS, element_of

__all__ = ["define_group"]


def define_group(graph: Graph, nodes: Sequence[Node], name: str = "group") -> Definition:
    """The loop program of ``nodes``, which are in the order of the graph.

    Raises UnsupportedOperatorError for an operator that has no definition.
    """
    return _GroupWriter(graph, nodes, name, Scope()).run()


@dataclass(slots=True)
class _GroupWriter:
    graph: Graph
    nodes: Sequence[Node]
    name: str
    scope: Scope
    inputs: dict[str, Buffer] = field(default_factory=dict)
    outputs: dict[str, Buffer] = field(default_factory=dict)
    producers: dict[str, Node] = field(default_factory=dict)
    anchored: dict[str, Expr] = field(default_factory=dict)
    """Results of the anchor: the value of the element at hand, the only one that is asked for."""
    bordered: dict[str, Node] = field(default_factory=dict)
    """Outputs with a border, and the nodes that put it there."""
    bindings: list[tuple[Variable, Expr]] | None = None
    """Values named so far in the statement at hand; None while none can be named."""
    bound: dict[tuple[str, Indices], Expr] = field(default_factory=dict)

    def run(self) -> Definition:
        """The whole function."""
        self.scope.statement = self.statement
        anchors = [node for node in self.nodes if type(node.operator) in ANCHORS]
        if len(anchors) > 1:
            raise UnsupportedOperatorError(
                f"node {anchors[1].origin!r}: a second anchor in a group"
            )
        self.producers = {name: node for node in self.nodes for name in node.outputs}
        read = {name for node in self.nodes for name in node.inputs}
        needed = set(self.graph.outputs)
        inside = set(map(id, self.nodes))
        for node in self.graph.nodes:
            if id(node) not in inside:
                needed.update(node.inputs)
        for name in self.producers:
            if name in needed or name not in read:
                kind = self.graph.types[name]
                self.outputs[name] = Buffer(f"out{len(self.outputs)}", kind.shape, kind.dtype)
        body = self.anchor(anchors[0]) if anchors else self.nest()
        function = Function(
            self.name, tuple(self.inputs.values()), tuple(self.outputs.values()), body
        )
        loops_kind = ANCHORS[type(anchors[0].operator)][0] if anchors else Kind.ELEMENTS
        return Definition(function, tuple(self.inputs), tuple(self.outputs), loops_kind)

    def nest(self) -> Stmt:
        """One loop nest for each shape among the outputs, without their borders; the borders."""
        statements = []
        self.bordered = self.with_border()
        inner = {
            name: self.graph.types[self.bordered[name].inputs[0]].shape
            if name in self.bordered
            else each.shape
            for name, each in self.outputs.items()
        }
        for shape in dict.fromkeys(inner.values()):
            names = [name for name, each in inner.items() if each == shape]
            variables = tuple(self.scope.fresh("i") for _ in shape)
            indices = _indices(variables, shape)
            body = self.statement(partial(self.stores, names, indices))
            used = [(v, size) for v, size in zip(variables, shape, strict=True) if size != 1]
            statements.append(loops(tuple(used), body))
        return block(*statements, *map(self.border, self.bordered))

    def with_border(self) -> dict[str, Node]:
        """The outputs that are other tensors inside a border, and the nodes that put it there."""
        return {
            name: each
            for name, each in self.producers.items()
            if name in self.outputs and is_border(self.graph, each)
        }

    def anchor(self, node: Node) -> Stmt:
        """The anchor's loops; its operands and results carry the other nodes."""
        operator = node.operator
        operands = [self.operand(name) for name in node.inputs]
        self.bordered = self.with_border()
        results = [self.result(name) for name in node.outputs]
        _, write = ANCHORS[type(operator)]
        body = write(operator, operands, results, self.scope)
        return block(body, *map(self.border, self.bordered))

    def border(self, name: str) -> Stmt:
        """The border around the elements of an output."""
        node, buffer = self.bordered[name], self.outputs[name]
        operator, value = node.operator, self.scalar(node.inputs[1])
        assert isinstance(operator, PadTensor)
        assert value is not None
        pads = tuple(zip(operator.before, operator.after, strict=True))
        return border(buffer, pads, value, self.scope)

    def result(self, name: str) -> Result:
        """A result of the anchor: stored as it is, and as what the nodes after it make of it."""
        followers = _followers(self.nodes, name)
        stored = [each for each in self.outputs if each == name or each in followers]

        def store(indices: Indices, value: Expr) -> Stmt:
            if not followers:
                return Store(self.outputs[name], indices, value)
            variable = Variable(self.scope.fresh("v"), value.dtype)
            self.anchored[name] = variable
            body = self.statement(partial(self.stores, stored, indices))
            del self.anchored[name]
            return Let(variable, value, body)

        buffer = self.outputs[name] if not followers else None
        return Result(self.graph.types[name], store, buffer)

    def stores(self, names: Sequence[str], indices: Indices) -> Stmt:
        """The elements of outputs; of one with a border, those inside."""
        return block(*(self.element(name, indices) for name in names))

    def element(self, name: str, indices: Indices) -> Stmt:
        """An element of an output."""
        if name not in self.bordered:
            return Store(self.outputs[name], indices, self.value(name, indices))
        node = self.bordered[name]
        assert isinstance(node.operator, PadTensor)
        inside = tuple(
            own + before if before else own
            for own, before in zip(indices, node.operator.before, strict=True)
        )
        return Store(self.outputs[name], inside, self.value(node.inputs[0], indices))

    def statement(self, build: Callable[[], Stmt]) -> Stmt:
        """The statement that ``build`` makes, with names for values that are used again."""
        outer, outer_bound = self.bindings, self.bound
        self.bindings, self.bound = [], {}
        body = build()
        for variable, value in reversed(self.bindings):
            body = Let(variable, value, body)
        self.bindings, self.bound = outer, outer_bound
        return body

    def operand(self, name: str) -> Operand:
        """A tensor as it is read."""

        def element(indices: Indices, guarded: bool) -> Expr:
            if not guarded:
                return self.value(name, indices)
            outer, self.bindings = self.bindings, None
            result = self.value(name, indices)
            self.bindings = outer
            return result

        kind, node = self.graph.types[name], self.producers.get(name)
        if (
            node is not None
            and isinstance(node.operator, Slice)
            and set(node.operator.steps) == {1}
        ):
            (whole,) = node.inputs
            if whole not in self.producers and self.scalar(whole) is None:
                return Operand(kind, element, self.buffer(whole), node.operator.starts)
        computed = node is not None or self.scalar(name) is not None
        return Operand(kind, element, None if computed else self.buffer(name))

    def buffer(self, name: str) -> Buffer:
        """The parameter that holds a tensor computed outside."""
        if name not in self.inputs:
            kind = self.graph.types[name]
            self.inputs[name] = Buffer(f"in{len(self.inputs)}", kind.shape, kind.dtype)
        return self.inputs[name]

    def scalar(self, name: str) -> Constant | None:
        """The value of a constant with one element."""
        array = self.graph.constants.get(name)
        if array is None or array.size != 1:
            return None
        return Constant(array.reshape(()).item(), self.graph.types[name].dtype)

    def value(self, name: str, indices: Indices) -> Expr:
        """A tensor's element."""
        if name in self.anchored:
            return self.anchored[name]
        constant = self.scalar(name)
        if constant is not None:
            return constant
        node = self.producers.get(name)
        if node is None:
            return Load(self.buffer(name), indices)
        if (name, indices) in self.bound:
            return self.bound[name, indices]
        operator = node.operator
        element = element_of(operator)
        if element is None:
            raise UnsupportedOperatorError(
                f"node {node.origin!r}: no loops for {type(operator).__name__}"
            )
        operands = [self.operand(each) for each in node.inputs]
        result = element(operator, operands, indices)
        if self.bindings is None or isinstance(result, Constant | Variable | Load):
            return result
        variable = Variable(self.scope.fresh("v"), result.dtype)
        self.bindings.append((variable, result))
        self.bound[name, indices] = variable
        return variable


def _indices(variables: tuple[str, ...], shape: tuple[int, ...]) -> Indices:
    return tuple(
        zero() if size == 1 else Variable(name) for name, size in zip(variables, shape, strict=True)
    )


def _followers(nodes: Sequence[Node], name: str) -> set[str]:
    """Tensors of the group that are computed from tensor ``name``."""
    found = {name}
    for node in nodes:
        if found.intersection(node.inputs):
            found.update(node.outputs)
    return found - {name}
