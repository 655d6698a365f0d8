"""The graph: an immutable, typed, single-assignment list of nodes.

Tensors are known by name; each is a graph input, a constant, or the output of one node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..errors import GraphError
from .ops import Operator, TensorType, output_type

__all__ = ["Graph", "GraphBuilder", "Node"]

Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Node:
    """``output = operator(inputs)``; ``origin`` names the node of the model it comes from."""

    operator: Operator
    inputs: tuple[str, ...]
    output: str
    origin: str


@dataclass(frozen=True, slots=True)
class Graph:
    """inputs, outputs: names.  nodes: each after the nodes it reads.  constants: read-only arrays.

    types: of every tensor.  Raises GraphError when a name is unknown or assigned twice.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    types: Mapping[str, TensorType]

    def __post_init__(self) -> None:
        known = set(self.inputs) | set(self.constants)
        for node in self.nodes:
            for name in node.inputs:
                if name not in known:
                    raise GraphError(f"node {node.origin!r} reads {name!r} before it is defined")
            if node.output in known:
                raise GraphError(f"node {node.origin!r} defines {node.output!r} a second time")
            expected = output_type(node.operator, tuple(self.types[n] for n in node.inputs))
            if self.types[node.output] != expected:
                raise GraphError(
                    f"node {node.origin!r}: {node.output!r} is {self.types[node.output]}; "
                    f"its operator gives {expected}"
                )
            known.add(node.output)
        for name in self.outputs:
            if name not in known:
                raise GraphError(f"output {name!r} is not defined")

    def producer(self, name: str) -> Node | None:
        """The node whose output ``name`` is; None for inputs and constants."""
        return next((node for node in self.nodes if node.output == name), None)

    def consumers(self, name: str) -> tuple[Node, ...]:
        """The nodes that read ``name``."""
        return tuple(node for node in self.nodes if name in node.inputs)


@dataclass(slots=True)
class GraphBuilder:
    """Collects nodes; ``build`` gives the graph."""

    inputs: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    types: dict[str, TensorType] = field(default_factory=dict)

    def input(self, name: str, kind: TensorType) -> str:
        """Declare a graph input."""
        self.inputs.append(name)
        self.types[name] = kind
        return name

    def constant(self, stem: str, array: Array) -> str:
        """Add a constant; its name begins with ``stem``."""
        name = self._fresh(stem)
        fixed = np.ascontiguousarray(array)
        fixed.setflags(write=False)
        self.constants[name] = fixed
        self.types[name] = TensorType(fixed.shape, str(fixed.dtype))
        return name

    def node(self, operator: Operator, inputs: tuple[str, ...], stem: str, origin: str) -> str:
        """Add a node; return the name of its output, which begins with ``stem``.

        Raises GraphError, naming ``origin``, when the inputs do not fit the operator.
        """
        try:
            kind = output_type(operator, tuple(self.types[name] for name in inputs))
        except GraphError as error:
            raise GraphError(f"node {origin!r}: {error}") from None
        name = self._fresh(stem)
        self.types[name] = kind
        self.nodes.append(Node(operator, inputs, name, origin))
        return name

    def rename_output(self, name: str, wanted: str) -> str:
        """Call the last node's output ``wanted``, if that is ``name`` and the name is free; else keep it."""
        last = self.nodes[-1] if self.nodes else None
        if name == wanted or last is None or last.output != name or wanted in self.types:
            return name
        self.types[wanted] = self.types.pop(name)
        self.nodes[-1] = replace(last, output=wanted)
        return wanted

    def build(self, outputs: tuple[str, ...]) -> Graph:
        """The graph."""
        return Graph(
            tuple(self.inputs),
            outputs,
            tuple(self.nodes),
            MappingProxyType(dict(self.constants)),
            MappingProxyType(dict(self.types)),
        )

    def _fresh(self, stem: str) -> str:
        name, number = stem, 1
        while name in self.types:
            name, number = f"{stem}.{number}", number + 1
        return name
