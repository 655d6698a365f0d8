"""Fold constant factors of channels into the weights of the convolution before.

    conv(x, w) * s        ->  conv(x, w * s)
    (conv(x, w) + b) * s  ->  conv(x, w * s) + b * s
    conv(x, w) + b + c    ->  conv(x, w) + (b + c)

``w``, ``s``, ``b`` and ``c`` are constants, ``s``, ``b`` and ``c`` one value or one an output
channel; each of the tensors in between has one reader.  Batch normalisation thus becomes weights
and a bias.  Nodes are visited once, in order, and each step removes one.
"""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..ir import Graph, Node
from ..operators.contractions import Convolution
from ..operators.elementwise import Binary, BinaryFunction

__all__ = ["FoldScales"]

Array = NDArray[Any]


@frozen
class _Chain:
    """A convolution, and the constant that is added to its result by node ``add``, if one is."""

    convolution: int
    add: int | None = None


@frozen
class FoldScales:
    """See the module's docstring."""

    name: str = "fold_scales"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when there is nothing to fold."""
        return _Folding(graph).run()


class _Folding:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node | None] = list(graph.nodes)
        self.constants = dict(graph.constants)
        self.types = dict(graph.types)
        self.readers: dict[str, int] = dict.fromkeys(graph.outputs, 2)
        for node in graph.nodes:
            for name in node.inputs:
                self.readers[name] = self.readers.get(name, 0) + 1
        self.chains: dict[str, _Chain] = {}
        self.renamed: dict[str, str] = {}

    def run(self) -> Graph:
        for place, node in enumerate(self.graph.nodes):
            node = replace(node, inputs=tuple(self.renamed.get(n, n) for n in node.inputs))
            self.nodes[place] = node
            if isinstance(node.operator, Convolution) and node.operator.dtype.is_float:
                if node.inputs[1] in self.constants:
                    self.chains[node.output] = _Chain(place)
            elif isinstance(node.operator, Binary):
                self.fold(place, node)
        kept = tuple(node for node in self.nodes if node is not None)
        if len(kept) == len(self.graph.nodes):
            return self.graph
        used = {name for node in kept for name in node.inputs} | set(self.graph.outputs)
        constants = {name: each for name, each in self.constants.items() if name in used}
        outputs = {name for node in kept for name in node.outputs}
        known = used | outputs | set(self.graph.inputs)
        types = {name: kind for name, kind in self.types.items() if name in known}
        return Graph(
            self.graph.inputs,
            self.graph.outputs,
            kept,
            MappingProxyType(constants),
            MappingProxyType(types),
        )

    def fold(self, place: int, node: Node) -> None:
        """Fold a sum or a product with a constant, if what it changes is a convolution's result."""
        operator = node.operator
        assert isinstance(operator, Binary)
        left, right = node.inputs
        if right not in self.constants and left in self.constants:
            left, right = right, left
        chain, factor = self.chains.get(left), self.constants.get(right)
        if chain is None or factor is None or self.readers.get(left) != 1:
            return
        if node.output in self.graph.outputs or self.types[node.output] != self.types[left]:
            return
        values = _by_channel(factor, self.types[left].shape)
        if values is None:
            return
        match operator.function:
            case BinaryFunction.ADD if chain.add is None:
                self.chains[node.output] = _Chain(chain.convolution, place)
            case BinaryFunction.ADD:
                self.add(chain, values)
                self.drop(place, node, left, chain)
            case BinaryFunction.MUL:
                self.scale(chain, values)
                self.drop(place, node, left, chain)
            case _:
                pass

    def drop(self, place: int, node: Node, left: str, chain: _Chain) -> None:
        """The node's result is that of the chain."""
        self.nodes[place] = None
        self.renamed[node.output] = left
        self.readers[left] = self.readers.get(node.output, 0)
        self.chains[left] = chain

    def scale(self, chain: _Chain, values: Array) -> None:
        """Multiply weights, and what is added."""
        convolution = self.nodes[chain.convolution]
        assert convolution is not None
        weights = self.constants[convolution.inputs[1]]
        scaled = weights * values.reshape(-1, *(1,) * (weights.ndim - 1))
        self.set_input(chain.convolution, convolution.inputs[1], scaled.astype(weights.dtype))
        if chain.add is not None:
            self.update(chain.add, lambda old: old * values)

    def add(self, chain: _Chain, values: Array) -> None:
        """Add to what is added."""
        assert chain.add is not None
        self.update(chain.add, lambda old: old + values)

    def update(self, place: int, change: Any) -> None:
        """Replace the constant operand of a sum."""
        node = self.nodes[place]
        assert node is not None
        shape = self.types[node.output].shape
        name = next(each for each in node.inputs if each in self.constants)
        old = _by_channel(self.constants[name], shape)
        assert old is not None
        wide = np.broadcast_to(change(old), (shape[1],))
        result = wide.reshape(1, -1, *(1,) * (len(shape) - 2))
        self.set_input(place, name, result.astype(self.constants[name].dtype))

    def set_input(self, place: int, old: str, value: Array) -> None:
        """Give a node a constant of its own in place of ``old``."""
        name, number = f"{old}.folded", 1
        while name in self.types:
            name, number = f"{old}.folded.{number}", number + 1
        fixed = np.ascontiguousarray(value)
        fixed.setflags(write=False)
        node = self.nodes[place]
        assert node is not None
        self.constants[name] = fixed
        self.types[name] = replace_shape(self.types[old], fixed.shape)
        inputs = tuple(name if each == old else each for each in node.inputs)
        self.nodes[place] = replace(node, inputs=inputs)


def replace_shape(kind: Any, shape: tuple[int, ...]) -> Any:
    """The type with another shape."""
    return type(kind)(shape, kind.dtype)


def _by_channel(array: Array, shape: tuple[int, ...]) -> Array | None:
    """One value, or one for each index of dimension 1 of ``shape``; None when it is neither."""
    if array.size == 1:
        return array.reshape(1)
    aligned = (1,) * (len(shape) - array.ndim) + array.shape
    if aligned == (1, shape[1], *(1,) * (len(shape) - 2)):
        return array.reshape(-1)
    return None
