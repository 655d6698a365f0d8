"""Where a writer of one operator finds its operands and puts ONNX's nodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ....dtypes import DType
from ....errors import UnsupportedOperatorError
from ....graph.ir import Array, Graph, Node
from ....graph.types import TensorType
from ..element_types import ELEMENT_TYPES

__all__ = ["NUMBERS", "Names", "Writing"]

NUMBERS = {dtype: number for number, dtype in ELEMENT_TYPES.items()}
"""ONNX's numbers of element types."""


@dataclass(slots=True)
class Names:
    """Names that are in use."""

    taken: set[str]

    def fresh(self, stem: str) -> str:
        """A name that is free, from now on in use."""
        name, number = stem, 0
        while name in self.taken:
            number += 1
            name = f"{stem}.{number}"
        self.taken.add(name)
        return name


@dataclass(slots=True)
class Writing:
    """One node of a graph on its way to ONNX.

    body: writes the graph of an operator that runs one.
    constants: what ONNX's nodes read, of this node and others.  read: tensors of the graph that
    this one's read.
    """

    graph: Graph
    node: Node
    names: Names
    constants: dict[str, Array]
    body: Callable[[Graph], onnx.GraphProto]
    read: set[str] = field(default_factory=set)
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def type(self, name: str) -> TensorType:
        """The type of a tensor of the graph."""
        return self.graph.types[name]

    def value(self, name: str) -> Array | None:
        """The value of a constant; None of others."""
        return self.graph.constants.get(name)

    def unsupported(self, what: str) -> UnsupportedOperatorError:
        """The error for what ONNX cannot say."""
        return UnsupportedOperatorError(f"node {self.node.origin!r}: ONNX has no {what}")

    def emit(self, kind: str, *inputs: str | Array, **attributes: Any) -> str:
        """Add a node of ONNX with one result; arrays become constants."""
        return self.emit_many(1, kind, *inputs, **attributes)[0]

    def emit_many(
        self, count: int, kind: str, *inputs: str | Array, **attributes: Any
    ) -> tuple[str, ...]:
        """As ``emit``, with ``count`` results."""
        operands = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        results = tuple(self.names.fresh(f"{self.node.output}/{kind}") for _ in range(count))
        self.read.update(name for name in operands if name in self.graph.types)
        self.nodes.append(helper.make_node(kind, operands, results, **attributes))
        return results

    def constant(self, value: Array, stem: str = "") -> str:
        """A constant of its own."""
        name = self.names.fresh(stem or f"{self.node.output}/constant")
        self.constants[name] = np.ascontiguousarray(value).reshape(value.shape)
        return name

    def integers(self, values: Sequence[int]) -> Array:
        """A list, as ONNX has them for shapes and axes."""
        return np.asarray(values, np.int64)

    def cast(self, name: str, dtype: DType) -> str:
        """Converted to another element type."""
        return self.emit("Cast", name, to=NUMBERS[dtype])

    def transposed(self, name: str, order: Sequence[int]) -> str:
        """A tensor with its dimensions in another order."""
        if list(order) == sorted(order):
            return name
        value = self.value(name)
        if value is not None:
            return self.constant(value.transpose(order), name)
        return self.emit("Transpose", name, perm=list(order))

    def reshaped(self, name: str, shape: Sequence[int], known: Sequence[int] | None = None) -> str:
        """A tensor of another shape; ``known``: the one it has, unless the graph says so."""
        known = self.type(name).shape if known is None else known
        if tuple(known) == tuple(shape):
            return name
        value = self.value(name)
        if value is not None:
            return self.constant(value.reshape(tuple(shape)), name)
        zero = {"allowzero": 1} if 0 in shape else {}
        return self.emit("Reshape", name, self.integers(shape), **zero)

    def close(self, results: str | tuple[str, ...]) -> None:
        """Give what the node's last ones compute the names that the graph has for it."""
        found = (results,) if isinstance(results, str) else results
        for name, wanted in zip(found, self.node.outputs, strict=True):
            for node in self.nodes:
                if name in node.output:
                    node.output[list(node.output).index(name)] = wanted
                    for other in self.nodes:
                        for place, each in enumerate(other.input):
                            if each == name:
                                other.input[place] = wanted
                    break
            else:
                self.read.update({name} & self.graph.types.keys())
                self.nodes.append(helper.make_node("Identity", [name], [wanted]))
