"""Building a graph anew, node by node."""

from dataclasses import dataclass, field

from .ir import Graph, GraphBuilder, Node

__all__ = ["Rebuilding"]


@dataclass(slots=True)
class Rebuilding:
    """The new graph has the inputs and outputs of ``graph``, and the constants that are read.

    Every node of ``graph`` is copied or replaced, in order.
    """

    graph: Graph
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    names: dict[str, str] = field(default_factory=dict)
    """Of tensors of ``graph``: what they are called in the new one."""

    def __post_init__(self) -> None:
        for name in self.graph.inputs:
            self.names[name] = self.builder.input(name, self.graph.types[name])
        for name in self.graph.outputs:
            if name in self.graph.constants and name not in self.names:
                self.names[name] = self.builder.constant(name, self.graph.constants[name])

    def tensor(self, name: str) -> str:
        """What tensor ``name`` is called now."""
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
        given = {*self.graph.inputs, *self.graph.constants}
        for name in dict.fromkeys(self.graph.outputs):
            if name not in given:
                self.builder.export(self.tensor(name), name)
        return self.builder.build(self.graph.outputs)
