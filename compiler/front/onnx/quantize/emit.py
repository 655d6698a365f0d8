"""The quantised model in QDQ form: QuantizeLinear and DequantizeLinear around every integer
operator, so that ONNX Runtime and this compiler's importer turn it into integer arithmetic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ....graph.ir import Array
from ..node import OnnxNode
from .bounded import to_node_proto
from .model import IR_VERSION, FloatModel
from .plan import Plan, Role
from .scales import Quantization, Weights
from .weights import channel_axis

__all__ = ["DEQUANTIZED", "emit"]

DEQUANTIZED = "/dequantized"
"""Behind the name of a tensor: what is left of it after quantisation."""
EDGE = 1e-5
"""Relative: how far the largest value may exceed the limit of a Clip that is left out."""


def emit(
    model: FloatModel,
    decided: Plan,
    scales: Mapping[str, Quantization],
    weights: Mapping[str, Weights],
    shapes: Mapping[str, tuple[int, ...]],
    dtypes: Mapping[str, str],
    *,
    unsigned: bool,
    per_channel: bool,
) -> onnx.ModelProto:
    """The model in QDQ form.

    scales: of every quantised tensor.  weights: of every contraction, by output.
    shapes, dtypes: of every tensor.
    """
    writer = _Writer(model, decided, scales, weights, unsigned, per_channel)
    for signature in model.inputs:
        writer.quantize(signature.name, signature.name)
    for node in model.nodes:
        writer.node(node)
    graph = helper.make_graph(
        writer.nodes,
        model.name,
        [
            helper.make_tensor_value_info(each.name, _element(each.dtype), each.shape)
            for each in model.inputs
        ],
        [
            helper.make_tensor_value_info(name, _element(dtypes[name]), shapes[name])
            for name in model.outputs
        ],
        [numpy_helper.from_array(array, name) for name, array in writer.constants.items()],
    )
    opset = [helper.make_opsetid("", model.opset)]
    result = helper.make_model(
        graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="dovetail"
    )
    onnx.checker.check_model(result)
    return result


def _element(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


@dataclass
class _Writer:
    model: FloatModel
    plan: Plan
    scales: Mapping[str, Quantization]
    weights: Mapping[str, Weights]
    unsigned: bool
    per_channel: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    real: dict[str, str] = field(default_factory=dict)
    """Name of each tensor's dequantised form."""
    done: set[str] = field(default_factory=set)
    """Clips that went into the operator before them."""

    def node(self, node: OnnxNode) -> None:
        """Write a node, quantised or not, and quantise what it computes."""
        out = node.outputs[0]
        if out in self.done:
            return
        role, clip = self.plan.roles.get(out), self.plan.clips.get(out)
        if role is Role.CONTRACTION:
            inputs = [self._input(node.inputs[0]), *self._weights(node)]
        else:
            inputs = [self._input(name) for name in node.inputs]
        name, source = out, self._float(out)
        if clip is not None:
            name = clip.outputs[0]
            source = self._float(name)
            self.done.add(name)
        implied = clip is None or self._implies(name, clip)
        written = to_node_proto(node)
        del written.input[:], written.output[:]
        written.input.extend(inputs)
        written.output.extend([source if implied else out, *map(self._float, node.outputs[1:])])
        self.nodes.append(written)
        if clip is not None and not implied:
            self._write(clip.kind, [out, *map(self._input, clip.inputs[1:])], source)
        self.quantize(name, source)
        for more in node.outputs[1:]:
            self.quantize(more, self._float(more))

    def quantize(self, name: str, source: str) -> None:
        """QuantizeLinear and DequantizeLinear of tensor ``name``, which ``source`` holds."""
        if name not in self.scales:
            return
        parameters = self._parameters(name)
        result = name if name in self.model.outputs else name + DEQUANTIZED
        self._write("QuantizeLinear", [source, *parameters], f"{name}/quantized")
        self._write("DequantizeLinear", [f"{name}/quantized", *parameters], result)
        self.real[name] = result

    def _parameters(self, name: str) -> list[str]:
        """The names of the scale and the zero point of a quantised tensor."""
        chosen, found = self.scales[name], [f"{name}/scale", f"{name}/zero_point"]
        self.constants[found[0]] = np.asarray(chosen.scale, np.float32)
        zero = chosen.zero_point + 128 * self.unsigned
        self.constants[found[1]] = np.asarray(zero, self._integers)
        return found

    @property
    def _integers(self) -> type:
        return np.uint8 if self.unsigned else np.int8

    def _float(self, name: str) -> str:
        """The name of what a node computes, before it is quantised."""
        shown = name in self.model.outputs and name in self.scales
        return f"{name}/float" if shown else name

    def _input(self, name: str) -> str:
        if name in self.model.constants and name not in self.real:
            if name in self.scales:
                self._tensor(name)
            else:
                self.constants[name] = self.model.constants[name]
        return self.real.get(name, name)

    def _tensor(self, name: str) -> None:
        """A constant that is quantised as what is computed is."""
        chosen, zero = self.scales[name], 128 * self.unsigned
        inside = np.clip(self.model.constants[name], *chosen.limits)
        integers = np.clip(np.rint(inside / chosen.scale) + chosen.zero_point, -128, 127)
        stored = (integers + zero).astype(self._integers)
        self.constants[f"{name}/quantized"] = stored
        names = [f"{name}/quantized", *self._parameters(name)]
        self.real[name] = self._write("DequantizeLinear", names, name + DEQUANTIZED)

    def _implies(self, name: str, clip: OnnxNode) -> bool:
        """True if no int8 value of ``name`` is outside the limits of ``clip``."""
        low, high = 0.0, np.inf
        if clip.kind == "Clip":
            low, high = (
                self.model.constants[clip.inputs[place]].item() if clip.has(place) else default
                for place, default in ((1, -np.inf), (2, np.inf))
            )
        found = self.scales[name].limits
        slack = EDGE * (found[1] - found[0])
        return found[0] >= low - slack and found[1] <= high + slack

    def _weights(self, node: OnnxNode) -> list[str]:
        """The dequantised weights and bias of a contraction."""
        stem, x_scale = node.outputs[0], self.scales[node.inputs[0]].scale
        integers, scales, added, _ = self.weights[stem]
        results = [self._constant(f"{stem}/w", integers, scales, channel_axis(node))]
        if added is not None:
            results.append(self._constant(f"{stem}/b", added, scales * x_scale, 0))
        return results

    def _constant(self, stem: str, integers: Array, scales: Array, axis: int) -> str:
        attributes: dict[str, Any] = {}
        if self.per_channel:
            attributes["axis"] = axis
        else:
            scales = scales[0]
        zeros = np.zeros_like(scales, integers.dtype)
        for suffix, array in (("", integers), ("/scale", scales), ("/zero_point", zeros)):
            self.constants[stem + suffix] = np.asarray(array)
        inputs = [stem, f"{stem}/scale", f"{stem}/zero_point"]
        return self._write("DequantizeLinear", inputs, f"{stem}/dequantized", **attributes)

    def _write(self, kind: str, inputs: list[str], out: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [out], name=f"{out}:{kind}", **attributes))
        return out
