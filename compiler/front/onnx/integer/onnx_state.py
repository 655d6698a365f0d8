"""Nodes of an ONNX model with typed attributes, and the state of an import."""

from dataclasses import dataclass, field, replace

import numpy as np

from ....errors import ModelError, UnsupportedOperatorError
from ....graph.ir import GraphBuilder
from ..node import OnnxNode
from .quantize import quantize
from .values import F32, Array, Integer, Real, RealConstant, Value

__all__ = ["ImportState", "OnnxNode", "QuantizedAs"]


@dataclass(frozen=True, slots=True)
class QuantizedAs:
    """A tensor's quantisation in the model: scale, zero point of int8, and whether it is uint8."""

    scale: np.float32
    zero_point: int
    unsigned: bool


@dataclass(slots=True)
class ImportState:
    """The graph so far, the model's constants, and what each of its tensors is."""

    graph: GraphBuilder
    arrays: dict[str, Array]
    opset: int
    values: dict[str, Value] = field(default_factory=dict)

    def array(self, node: OnnxNode, place: int) -> Array:
        """An input that must be a constant."""
        name = node.inputs[place] if node.has(place) else ""
        if name not in self.arrays:
            raise UnsupportedOperatorError(
                f"{node}: input {place} ({name!r}) is computed; required a constant"
            )
        return self.arrays[name]

    def value(self, node: OnnxNode, place: int) -> Value:
        """What an input is.

        Raises ModelError for a float constant, and when no node before this one computes it.
        """
        name = node.inputs[place] if node.has(place) else ""
        if name in self.values:
            return self.values[name]
        if name in self.arrays:
            raise ModelError(
                f"{node}: input {name!r} is a {self.arrays[name].dtype} "
                "constant; required int8 through DequantizeLinear; quantise the model first"
            )
        raise ModelError(f"{node}: input {place} ({name!r}) is not computed by any node before it")

    def real(self, node: OnnxNode, place: int) -> Real:
        """An input that must be a dequantised int8 tensor."""
        value = self.value(node, place)
        if not isinstance(value, Real):
            raise ModelError(
                f"{node}: input {node.inputs[place]!r} is not quantised; "
                "required QuantizeLinear and DequantizeLinear in front of it"
            )
        return value

    def operand(self, node: OnnxNode, place: int) -> Real:
        """An integer tensor with its scale and zero point: three inputs of a QLinear node."""
        tensor = self.value(node, place)
        if not isinstance(tensor, Integer):
            raise ModelError(f"{node}: input {node.inputs[place]!r} is not an integer tensor")
        kind = self.quantized_as(node, place + 1, tensor.unsigned)
        return Real(tensor, kind.scale, kind.zero_point)

    def store(self, node: OnnxNode, value: Value, place: int) -> None:
        """Quantise ``value`` as the scale and zero point at ``place`` say: the node's output."""
        kind, out = self.quantized_as(node, place), node.outputs[0]
        tensor = quantize(self.graph, value, kind.scale, kind.zero_point, out, node.name)
        self.values[out] = replace(tensor, unsigned=kind.unsigned)

    def quantized_as(self, node: OnnxNode, place: int, unsigned: bool = True) -> QuantizedAs:
        """The scale at input ``place`` and the zero point after it, for a whole tensor.

        unsigned: what the tensor is when the node gives no zero point.
        """
        scale = self.array(node, place).astype(F32).reshape(-1)
        if scale.size != 1:
            raise UnsupportedOperatorError(
                f"{node}: an activation with {scale.size} scales; required one"
            )
        if not np.isfinite(scale[0]) or scale[0] <= 0:
            raise ModelError(f"{node}: scale {scale[0]}; required above 0")
        if not node.has(place + 1):
            return QuantizedAs(scale[0], -128 if unsigned else 0, unsigned)
        zero = self.array(node, place + 1)
        if zero.dtype not in (np.int8, np.uint8):
            raise ModelError(f"{node}: quantises to {zero.dtype}; required int8 or uint8")
        unsigned = zero.dtype == np.uint8
        return QuantizedAs(scale[0], int(zero.reshape(-1)[0]) - 128 * unsigned, unsigned)

    def constant(
        self, node: OnnxNode, place: int, scales: Array, zeros: Array, axis: int
    ) -> RealConstant:
        """The constant at ``place`` with its quantisation."""
        scale = np.atleast_1d(scales).astype(F32).reshape(-1)
        if not np.all(np.isfinite(scale)) or np.any(scale <= 0):
            raise ModelError(f"{node}: scales must be finite and above 0")
        zero = np.broadcast_to(np.atleast_1d(zeros).astype(np.int64).reshape(-1), scale.shape)
        return RealConstant(self.array(node, place), scale, zero, axis)
