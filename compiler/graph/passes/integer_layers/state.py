"""The graph of integer operators so far, and what each tensor of the model's graph is in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ...ir import Graph, GraphBuilder, Node
from .values import F32, Array, ByChannel, Integer, Real, RealConstant, Value

__all__ = ["QuantizedAs", "State", "UnrecognisedError"]


class UnrecognisedError(Exception):
    """Why a node is part of no integer layer: what was found and what is required."""


@frozen
class QuantizedAs:
    """A tensor's quantisation in the model: scale, zero point of int8, and whether it is uint8."""

    scale: np.float32
    zero_point: int
    unsigned: bool


@dataclass(slots=True)
class State:
    """source: the model's graph.  builder: of the new graph.

    values: what the source's tensors are; arrays: the constant ones.
    sums: sums of products that the new graph has, by what determines them.
    stored: what the source's tensors are once they are quantised, by their names and how.
    plain: tensors that the new graph has as the source has them, by their names there.
    producers: the nodes that make the source's tensors.
    picked: the value that a tensor has rows or columns of, their dimension in the model, and which.
    expanded: the tensor whose rows or columns one has again and again, by its name.
    tables: the tensor that one is a function of, the function's table, int8[256] or int8[C, 256],
    and the dimension of its channels, by its name.
    """

    source: Graph
    arrays: dict[str, Array] = field(init=False)
    producers: Mapping[str, Node] = field(init=False)
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    values: dict[str, Value] = field(default_factory=dict)
    sums: dict[tuple[object, ...], str] = field(default_factory=dict)
    stored: dict[tuple[str, QuantizedAs], Value] = field(default_factory=dict)
    plain: dict[str, str] = field(default_factory=dict)
    picked: dict[str, tuple[Value, int, Array]] = field(default_factory=dict)
    expanded: dict[str, Integer] = field(default_factory=dict)
    tables: dict[str, tuple[str, Array, int | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arrays = dict(self.source.constants)
        self.producers = {name: node for node in self.source.nodes for name in node.outputs}

    def array(self, name: str) -> Array | None:
        """The value of a constant tensor, dequantised if need be; None of others."""
        if name in self.arrays:
            return self.arrays[name]
        value = self.values.get(name)
        return value.real() if isinstance(value, RealConstant) else None

    def constant(self, name: str, what: str) -> Array:
        """The value of a tensor that must be a constant.

        Raises UnrecognisedError.
        """
        found = self.array(name)
        if found is None:
            raise UnrecognisedError(f"{what} {name!r} is computed; required a constant")
        return found

    def value(self, name: str) -> Value:
        """The value of a tensor that is not a float constant.

        Raises UnrecognisedError.
        """
        if name in self.arrays:
            raise UnrecognisedError(
                f"input {name!r} is a {self.arrays[name].dtype} constant; required int8 through "
                "DequantizeLinear; quantise the model first"
            )
        return self.values[name]

    def real(self, name: str) -> Real:
        """A tensor that must be a dequantised one.

        Raises UnrecognisedError.
        """
        value = self.value(name)
        if isinstance(value, ByChannel):
            raise UnrecognisedError(f"an activation with {value.scales.size} scales; required one")
        if not isinstance(value, Real):
            raise UnrecognisedError(
                f"input {name!r} is not quantised; required QuantizeLinear and DequantizeLinear "
                "in front of it"
            )
        return value

    def weights(self, name: str) -> RealConstant:
        """A tensor that must be a dequantised constant.

        Raises UnrecognisedError.
        """
        constant = self.value(name)
        if not isinstance(constant, RealConstant):
            raise UnrecognisedError(
                f"its weights {name!r} are computed; required an int8 constant with "
                "DequantizeLinear"
            )
        return constant

    def integer(self, name: str) -> tuple[Value, Integer]:
        """A tensor that must be stored, perhaps dequantised; and how it is stored.

        Raises UnrecognisedError.
        """
        value = self.value(name)
        tensor = value.tensor if isinstance(value, Real) else value
        if not isinstance(tensor, Integer):
            raise UnrecognisedError(
                f"its input {name!r} is not quantised; required QuantizeLinear and "
                "DequantizeLinear in front of it"
            )
        return value, tensor

    def quantized_as(self, node: Node) -> QuantizedAs:
        """How a QuantizeLinear or DequantizeLinear stores a whole tensor.

        Raises UnrecognisedError for a list of scales, another element type, or a scale of no sense.
        """
        _, scale_name, zero_name = node.inputs
        scale = self.constant(scale_name, "scale").astype(F32).reshape(-1)
        zero = self.constant(zero_name, "zero point").reshape(-1)
        if scale.size != 1 or zero.size != 1:
            raise UnrecognisedError(f"an activation with {scale.size} scales; required one")
        if not np.isfinite(scale[0]) or scale[0] <= 0:
            raise UnrecognisedError(f"scale {scale[0]}; required above 0")
        if str(zero.dtype) not in (DType.INT8, DType.UINT8):
            raise UnrecognisedError(f"quantises to {zero.dtype}; required int8 or uint8")
        unsigned = str(zero.dtype) == DType.UINT8
        return QuantizedAs(scale[0], int(zero[0]) - 128 * unsigned, unsigned)
