"""Building a graph again, node by node."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from .emitter import Emitter
from .formulas import Term
from .ir import Graph, GraphBuilder, Node
from .operators.movement import Reshape
from .operators.protocol import TensorOperator
from .passes.eliminate_dead import EliminateDead

__all__ = ["Rebuilding", "Terms", "replaced", "with_formulas"]

Found = TypeVar("Found")
Terms = Callable[[str], Term]
"""The term of a tensor by its name."""


@dataclass(slots=True)
class Rebuilding:
    """The new graph has the inputs and outputs of ``graph``, and the constants that are read.

    Every node of ``graph`` is copied or replaced, in order.
    """

    graph: Graph
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    names: dict[str, str] = field(default_factory=dict)
    """Names in the new graph, by the names in ``graph``."""

    def __post_init__(self) -> None:
        for name in self.graph.inputs:
            self.names[name] = self.builder.input(name, self.graph.types[name])
        for name in self.graph.outputs:
            if name in self.graph.constants and name not in self.names:
                self.names[name] = self.builder.constant(name, self.graph.constants[name])

    def tensor(self, name: str) -> str:
        """The present name of tensor ``name``."""
        if name not in self.names:
            constant = self.graph.constants[name]
            self.names[name] = self.builder.constant(name, constant)
        return self.names[name]

    def copy(self, node: Node) -> None:
        """Take a node over."""
        inputs = tuple(self.tensor(name) for name in node.inputs)
        results = self.builder.node_outputs(node.operator, inputs, node.output, node.origin)
        self.replace(node, tuple(results))

    def replace(self, node: Node, results: tuple[str, ...]) -> None:
        """``results`` stand for the node's outputs."""
        self.names.update(zip(node.outputs, results, strict=True))

    def build(self) -> Graph:
        """The new graph, its outputs called as before."""
        builder, given = self.builder, {*self.graph.inputs, *self.graph.constants}
        renamed: dict[str, str] = {}
        for name in dict.fromkeys(self.graph.outputs):
            if name in given:
                continue
            own = self.tensor(name)
            if own in renamed or own in builder.inputs or own in builder.constants:
                own = builder.node(Reshape(builder.types[own].shape), (own,), name, name)
            renamed[own] = name
        for taken in set(renamed.values()) & set(builder.types) - set(renamed):
            free, number = f"{taken}.inner", 1
            while free in builder.types:
                free, number = f"{taken}.inner.{number}", number + 1
            renamed[taken] = free
        return _renamed(builder, self.graph.outputs, renamed)


def _renamed(builder: GraphBuilder, outputs: tuple[str, ...], renamed: Mapping[str, str]) -> Graph:
    def new(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(renamed.get(name, name) for name in names)

    nodes = tuple(
        replace(
            node,
            inputs=new(node.inputs),
            output=renamed.get(node.output, node.output),
            extra_outputs=new(node.extra_outputs),
        )
        for node in builder.nodes
    )
    constants = {renamed.get(name, name): each for name, each in builder.constants.items()}
    types = {renamed.get(name, name): kind for name, kind in builder.types.items()}
    return Graph(
        tuple(builder.inputs), outputs, nodes, MappingProxyType(constants), MappingProxyType(types)
    )


def replaced(graph: Graph, found: Mapping[str, tuple[TensorOperator, tuple[str, ...]]]) -> Graph:
    """The graph in which other operators, on tensors of ``graph``, give some nodes' outputs.

    What nothing reads any more stays.
    """
    rebuilding = Rebuilding(graph)
    for node in graph.nodes:
        if node.output not in found:
            rebuilding.copy(node)
            continue
        operator, inputs = found[node.output]
        names = tuple(rebuilding.tensor(name) for name in inputs)
        made = rebuilding.builder.node(operator, names, node.output, node.origin)
        rebuilding.replace(node, (made,))
    return rebuilding.build()


def with_formulas(
    graph: Graph, found: Mapping[str, Found], formula: Callable[[Node, Found, Terms], Term]
) -> Graph:
    """The graph in which formulas give the outputs ``found``; ``graph`` itself where it has none.

    formula: of a node, what was found there, and terms for tensors of ``graph``, by name.
    What nothing reads any more goes.
    """
    if not found:
        return graph
    rebuilding = Rebuilding(graph)
    emitter = Emitter(rebuilding.builder)

    def term(name: str) -> Term:
        return Term(emitter, emitter.tensor(rebuilding.tensor(name)))

    for node in graph.nodes:
        if node.output not in found:
            rebuilding.copy(node)
            continue
        emitter.origin = node.origin
        result = formula(node, found[node.output], term)
        rebuilding.replace(node, (result.tensor.name,))
    return EliminateDead().run(rebuilding.build())
