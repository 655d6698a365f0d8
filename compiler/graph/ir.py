"""The graph: an immutable, typed, single-assignment list of nodes.

Tensors are known by name; each is a graph input, a constant, or the output of one node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen
from dovetail.runtime.html import listing

from ..errors import GraphError
from .operators.movement import Reshape
from .operators.protocol import TensorOperator
from .text import to_text
from .types import TensorType

__all__ = ["Array", "Graph", "GraphBuilder", "Node"]

Array = NDArray[Any]


@frozen
class Node:
    """``output = operator(inputs)``; ``origin`` names the node of the model it comes from.

    extra_outputs: of an operator with several results, those after the first.
    """

    operator: TensorOperator
    inputs: tuple[str, ...]
    output: str
    origin: str
    extra_outputs: tuple[str, ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """All results."""
        return (self.output, *self.extra_outputs)


@frozen(eq=False)
class Graph:
    """inputs, outputs: names.  nodes: each after the nodes it reads.  constants: read-only arrays.

    types: of every tensor.
    Raises GraphError when a name is unknown or assigned twice, and when a type is not the one that
    the operator gives or the constant has.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    types: Mapping[str, TensorType]
    _producers: Mapping[str, Node] = field(init=False, repr=False)
    _consumers: Mapping[str, Sequence[Node]] = field(init=False, repr=False)

    def __repr__(self) -> str:
        given, found = (
            ", ".join(f"{name}: {self.types[name]}" for name in names)
            for names in (self.inputs, self.outputs)
        )
        return f"<Graph ({given}) -> ({found}), {len(self.nodes)} nodes>"

    def __str__(self) -> str:
        return to_text(self)

    def _repr_html_(self) -> str:
        return listing(repr(self), to_text(self))

    def __post_init__(self) -> None:
        known = set(self.inputs) | set(self.constants)
        if len(known) != len(self.inputs) + len(self.constants):
            raise GraphError("an input or constant is defined twice")
        missing = known - set(self.types)
        if missing:
            raise GraphError(f"{min(missing)!r} has no type")
        for name, array in self.constants.items():
            if self.types[name] != TensorType(array.shape, str(array.dtype)):
                raise GraphError(
                    f"constant {name!r} is {array.dtype}{list(array.shape)}; its type is "
                    f"{self.types[name]}"
                )
        for node in self.nodes:
            self._check_node(node, known)
            known.update(node.outputs)
        for name in self.outputs:
            if name not in known:
                raise GraphError(f"output {name!r} is not defined")
        made = {name: node for node in self.nodes for name in node.outputs}
        read: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                read.setdefault(name, []).append(node)
        object.__setattr__(self, "_producers", made)
        object.__setattr__(self, "_consumers", read)

    def _check_node(self, node: Node, known: set[str]) -> None:
        for name in node.inputs:
            if name not in known:
                raise GraphError(f"node {node.origin!r} reads {name!r} before it is defined")
        for place, name in enumerate(node.outputs):
            if name in known or name in node.outputs[:place]:
                raise GraphError(f"node {node.origin!r} defines {name!r} a second time")
        try:
            expected = node.operator.result(tuple(self.types[n] for n in node.inputs))
        except GraphError as error:
            raise GraphError(f"node {node.origin!r}: {error}") from None
        if len(expected) != len(node.outputs):
            raise GraphError(
                f"node {node.origin!r} has {len(node.outputs)} outputs; its operator gives "
                f"{len(expected)}"
            )
        for name, kind in zip(node.outputs, expected, strict=True):
            if self.types.get(name) != kind:
                raise GraphError(
                    f"node {node.origin!r}: {name!r} is {self.types.get(name)}; "
                    f"its operator gives {kind}"
                )

    def producer(self, name: str) -> Node | None:
        """The node whose output ``name`` is; None for inputs and constants."""
        return self._producers.get(name)

    def consumers(self, name: str) -> tuple[Node, ...]:
        """The nodes that read ``name``."""
        return tuple(self._consumers.get(name, ()))


@dataclass(slots=True)
class GraphBuilder:
    """Collects nodes; ``build`` gives the graph."""

    inputs: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    types: dict[str, TensorType] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    """The first number that may be free, by the names that it comes after."""

    @staticmethod
    def over(graph: Graph) -> "GraphBuilder":
        """A builder with the inputs, constants and types of ``graph``, and no nodes yet."""
        return GraphBuilder(list(graph.inputs), [], dict(graph.constants), dict(graph.types))

    def input(self, name: str, kind: TensorType) -> str:
        """Declare a graph input.

        Raises GraphError when the name is taken.
        """
        if name in self.types:
            raise GraphError(f"input {name!r} is defined twice")
        self.inputs.append(name)
        self.types[name] = kind
        return name

    def constant(self, stem: str, array: Array) -> str:
        """Add a copy of a constant; its name begins with ``stem``."""
        name = self._fresh(stem)
        fixed = np.array(array, order="C")
        fixed.setflags(write=False)
        self.constants[name] = fixed
        self.types[name] = TensorType(fixed.shape, str(fixed.dtype))
        return name

    def node(
        self, operator: TensorOperator, inputs: tuple[str, ...], stem: str, origin: str
    ) -> str:
        """Add a node; return the name of its first output, which begins with ``stem``.

        Raises GraphError, naming ``origin``, when the inputs do not fit the operator.
        """
        return self.node_outputs(operator, inputs, stem, origin)[0]

    def node_outputs(
        self, operator: TensorOperator, inputs: tuple[str, ...], stem: str, origin: str
    ) -> tuple[str, ...]:
        """As ``node``; return the names of all its outputs."""
        try:
            kinds = operator.result(tuple(self.types[name] for name in inputs))
        except GraphError as error:
            raise GraphError(f"node {origin!r}: {error}") from None
        names = []
        for kind in kinds:
            names.append(self._fresh(stem))
            self.types[names[-1]] = kind
        self.nodes.append(Node(operator, inputs, names[0], origin, tuple(names[1:])))
        return tuple(names)

    def export(self, tensors: Sequence[str], wanted: Sequence[str]) -> None:
        """Give ``tensors`` the names ``wanted``, under which the graph returns them.

        Inputs and constants are copied, and so is a tensor that gets a second name.
        Raises GraphError when an input is called like an output.
        """
        names: dict[str, str] = {}
        for name, new in dict(zip(wanted, tensors, strict=True)).items():
            if name in self.inputs:
                raise GraphError(f"output {name!r} is an input too; required another name")
            if new in names or new in self.inputs or new in self.constants:
                new = self.node(Reshape(self.types[new].shape), (new,), name, name)
            names[new] = name
        self.rename(names)

    def build(self, outputs: tuple[str, ...]) -> Graph:
        """The graph."""
        return Graph(
            tuple(self.inputs),
            outputs,
            tuple(self.nodes),
            MappingProxyType(dict(self.constants)),
            MappingProxyType(dict(self.types)),
        )

    def rename(self, names: Mapping[str, str]) -> None:
        """Call tensors that are not inputs otherwise; what is in the way gets another name."""
        names = {old: new for old, new in names.items() if old != new and old not in self.inputs}
        names = {old: new for old, new in names.items() if new not in self.inputs}
        for taken in set(names.values()) & self.types.keys() - names.keys():
            names[taken] = self._fresh(taken)
            self.types[names[taken]] = self.types[taken]
        self.types = {names.get(name, name): kind for name, kind in self.types.items()}
        self.constants = {names.get(name, name): each for name, each in self.constants.items()}
        self.nodes = [
            replace(
                node,
                inputs=tuple(names.get(name, name) for name in node.inputs),
                output=names.get(node.output, node.output),
                extra_outputs=tuple(names.get(name, name) for name in node.extra_outputs),
            )
            for node in self.nodes
        ]

    def _fresh(self, stem: str) -> str:
        if stem not in self.types:
            return stem
        number = self._numbers.get(stem, 1)
        while f"{stem}.{number}" in self.types:
            number += 1
        self._numbers[stem] = number
        return f"{stem}.{number}"
