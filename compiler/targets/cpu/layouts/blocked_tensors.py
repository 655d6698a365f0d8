"""The tensors of a graph that is built again, plain and in blocks of channels.

    [N, C, *spatial]  ->  [N, C / B, *spatial, B]

A tensor is in the new graph in one form or in both; it is converted when the form that lacks is
asked for, at most once each way.
"""

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.movement import PadTensor, Reshape, Slice, Transpose
from ....graph.rebuild import Rebuilding
from .blocked_products import blocked_array

__all__ = ["Blocked", "BlockedTensors"]


@frozen
class Blocked:
    """A tensor's blocked form, and what the lanes beyond its channels hold."""

    name: str
    filler: float


@dataclass(slots=True)
class BlockedTensors:
    """The tensors of ``graph`` in the graph ``new`` built from it, in blocks of ``block``."""

    graph: Graph
    block: int
    new: Rebuilding
    blocked: dict[str, Blocked] = field(default_factory=dict)
    """The tensors of ``graph`` that have a blocked form."""

    @property
    def builder(self) -> GraphBuilder:
        """Builder of the new graph."""
        return self.new.builder

    def emit(self, operator: Any, inputs: tuple[str, ...], node: Node) -> str:
        """Add a node that stands for ``node``."""
        return self.builder.node(operator, inputs, f"{node.output}.blocked", node.origin)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor of the old graph."""
        return self.graph.types[name].shape

    def blocks(self, channels: int) -> int:
        """Number of blocks that hold ``channels``."""
        return -(-channels // self.block)

    def is_blocked(self, name: str) -> bool:
        """True if the tensor is there in blocked form only."""
        return name in self.blocked and name not in self.new.names

    def plain(self, name: str) -> str:
        """The new graph's plain form of an old tensor."""
        if not self.is_blocked(name):
            return self.new.tensor(name)
        shape, own, builder = self.shape(name), self.blocked[name].name, self.builder
        batch, blocks, *spatial, block = builder.types[own].shape
        rank = len(spatial)
        if prod(spatial) != 1:
            order = (0, 1, 2 + rank, *range(2, 2 + rank))
            own = builder.node(Transpose(order), (own,), f"{name}.plain", name)
        own = builder.node(
            Reshape((batch, blocks * block, *spatial)), (own,), f"{name}.plain", name
        )
        if blocks * block != shape[1]:
            cut = Slice((0,) * len(shape), (1,) * len(shape), shape)
            own = builder.node(cut, (own,), f"{name}.plain", name)
        self.new.names[name] = own
        return own

    def to_blocked(self, name: str) -> Blocked:
        """The new graph's blocked form of an old tensor, filled up with zeros."""
        if name in self.blocked:
            return self.blocked[name]
        if name in self.graph.constants:
            array = blocked_array(self.graph.constants[name], 1, self.block)
            own = self.builder.constant(f"{name}.blocked", array)
        else:
            own = self._convert(name)
        self.blocked[name] = Blocked(own, 0.0)
        return self.blocked[name]

    def _convert(self, name: str) -> str:
        """Nodes that block a plain tensor."""
        builder, own, shape = self.builder, self.plain(name), self.shape(name)
        batch, channels, *spatial = shape
        blocks = self.blocks(channels)
        if channels % self.block:
            zero = builder.constant("zero", np.zeros((), self.graph.types[name].dtype.numpy))
            after = (0, blocks * self.block - channels, *(0 for _ in spatial))
            pad = PadTensor((0,) * len(shape), after)
            own = builder.node(pad, (own, zero), f"{name}.filled", name)
        split = Reshape((batch, blocks, self.block, *spatial))
        own = builder.node(split, (own,), f"{name}.split", name)
        order = (0, 1, *range(3, 3 + len(spatial)), 2)
        return builder.node(Transpose(order), (own,), f"{name}.blocked", name)
