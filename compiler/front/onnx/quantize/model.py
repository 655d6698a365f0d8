"""A float model as nodes and constants, ready to be rewritten."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import onnx
from onnx import helper, shape_inference, version_converter

from ....dtypes import DType
from ....errors import ModelError, UnsupportedOperatorError
from ....graph.ir import Array
from ....pipeline.limits import Limits, Watch
from ....quantize.signature import Signature
from ...faults import faults_of
from ...source import Source
from ..element_types import ELEMENT_TYPES, type_name
from ..model import read_constant
from ..node import OnnxNode, is_quantized_kind
from ..order import in_order
from ..source import SourceModel
from ..wellformed import require_wellformed
from ..write import onnx_model, write_model
from .bounded import Bounds

__all__ = [
    "FloatModel",
    "float_model",
    "is_plain",
    "read_any_model",
    "read_model",
    "signatures",
]

OLDEST_OPSET = 13
"""The first with a scale for each channel in DequantizeLinear."""
IR_VERSION = 8
NO_MASKS = ("BatchNormalization", "Conv", "ConvTranspose", "Gemm", "LayerNormalization", "MatMul")
"""Operators whose constants must be finite."""
NOT_CONVERTED = (
    *(RuntimeError, ValueError, shape_inference.InferenceError, version_converter.ConvertError),
)
"""Errors of ONNX for models that it cannot bring to a newer opset."""


@dataclass(frozen=True)
class FloatModel:
    """Nodes in the order they compute, constants by name.  bounds: of evaluating them."""

    name: str
    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Array]
    inputs: tuple[Signature, ...]
    outputs: tuple[str, ...]
    opset: int
    bounds: Bounds = field(default_factory=Bounds, compare=False, repr=False)

    @cached_property
    def readers(self) -> dict[str, tuple[OnnxNode, ...]]:
        """The nodes that read each tensor."""
        found: dict[str, tuple[OnnxNode, ...]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found[name] = (*found.get(name, ()), node)
        return found

    @cached_property
    def producers(self) -> dict[str, OnnxNode]:
        """The node that computes each tensor."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    def only_reader(self, name: str) -> OnnxNode | None:
        """The node that reads tensor ``name``, if it is the only one and ``name`` no output."""
        readers = self.readers.get(name, ())
        return readers[0] if len(readers) == 1 and name not in self.outputs else None

    def with_nodes(
        self, nodes: list[OnnxNode], constants: Mapping[str, Array] | None = None
    ) -> "FloatModel":
        """The model with other nodes, and with more constants."""
        return replace(self, nodes=tuple(nodes), constants={**self.constants, **(constants or {})})


def float_model(source: Source) -> onnx.ModelProto:
    """A model of any front end, as ONNX to quantise; an open batch is 1.

    A model with functions, bodies or operators of other domains is written anew, without them.
    Raises ModelError for a model that is quantised already or malformed, and what ``write_model``
    raises.
    """
    if isinstance(source, SourceModel):
        require_wellformed(source.proto)
        if source.quantizes:
            return source.proto
        if is_plain(source.proto):
            with suppress(UnsupportedOperatorError):
                source.to_graph_and_rest(1)  # Says what is wrong with it, and keeps to limits.
            return source.proto
        return write_model(source.to_graph(1).graph, source.name or "model")
    if source.quantizes:
        raise ModelError(
            "the model is quantised already; required a float model.  dovetail compile takes it "
            "as it is"
        )
    return onnx_model(source, batch=1)


def read_model(proto: onnx.ModelProto, limits: Limits | None = None) -> FloatModel:
    """The nodes and constants of a float model, of opset 13 or later.

    limits: of evaluating it.
    Raises ModelError for a model that is quantised already, is not valid, has inputs of other real
    numbers than float32 or of no fixed shape, or a constant with NaN or infinity; -infinity may
    mask elements.
    """
    for node in proto.graph.node:
        if is_quantized_kind(node.op_type):
            raise ModelError(
                f"node {node.name or node.output[0]!r} ({node.op_type}): the model is quantised "
                "already; required a float model"
            )
    return read_any_model(proto, limits)


def read_any_model(proto: onnx.ModelProto, limits: Limits | None = None) -> FloatModel:
    """As ``read_model``, but the model may have QuantizeLinear and DequantizeLinear."""
    require_wellformed(proto)
    proto = _modern(proto)
    graph = proto.graph
    constants = {each.name: read_constant(each) for each in graph.initializer}
    nodes = list[OnnxNode]()
    known = {"", *constants, *(each.name for each in graph.input)}
    for position, each in enumerate(in_order(graph.node)):
        node = _node(each, position)
        for name in node.inputs:
            if name not in known:
                raise ModelError(f"{node} reads {name!r}, which no node before it computes")
        known |= set(node.outputs)
        with faults_of(node, node.name):
            value = _constant(each) if node.kind == "Constant" else None
        if value is None:
            nodes.append(node)
        else:
            constants[node.outputs[0]] = value
    products = {name for node in nodes if node.kind in NO_MASKS for name in node.inputs}
    for name, array in constants.items():
        allowed = array if name in products else np.where(np.isneginf(array), 0, array)
        if array.dtype.kind == "f" and not np.isfinite(allowed).all():
            raise ModelError(f"constant {name!r} has a NaN or infinity; required finite values")
    if not graph.output:
        raise ModelError("the model has no output")
    opset = next(each.version for each in proto.opset_import if each.domain in ("", "ai.onnx"))
    outputs = tuple(each.name for each in graph.output)
    for name in outputs:
        if name not in known:
            raise ModelError(f"output {name!r} is computed by no node")
    inputs = signatures(proto)
    name, bounds = str(graph.name) or "model", Bounds(Watch(limits or Limits()))
    return FloatModel(name, tuple(nodes), constants, inputs, outputs, opset, bounds)


def signatures(proto: onnx.ModelProto) -> tuple[Signature, ...]:
    """The inputs of a model.

    Raises ModelError when there is none, or one has other real numbers than float32, or no fixed
    shape.
    """
    constants = {each.name for each in proto.graph.initializer}
    inputs = tuple(_signature(each) for each in proto.graph.input if each.name not in constants)
    if not inputs:
        raise ModelError("the model has no input")
    return inputs


def _modern(proto: onnx.ModelProto) -> onnx.ModelProto:
    foreign = [each.op_type for each in proto.graph.node if each.domain not in ("", "ai.onnx")]
    if foreign:
        raise ModelError(f"operators of other domains: {', '.join(sorted(set(foreign)))}")
    opset = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 1)
    if opset >= OLDEST_OPSET:
        return proto
    newer = onnx.ModelProto()
    newer.CopyFrom(proto)
    newer.ir_version = max(IR_VERSION, proto.ir_version)  # Constants need be no inputs.
    try:
        return version_converter.convert_version(newer, OLDEST_OPSET)
    except NOT_CONVERTED as error:
        raise ModelError(
            f"the model is of opset {opset} and cannot be converted to {OLDEST_OPSET}: {error}"
        ) from None


def is_plain(proto: onnx.ModelProto) -> bool:
    """True if there are nodes of ONNX's own operators alone, none with a body."""
    return not proto.functions and all(
        node.domain in ("", "ai.onnx")
        and not any(each.HasField("g") or each.graphs for each in node.attribute)
        for node in proto.graph.node
    )


def _node(proto: onnx.NodeProto, position: int) -> OnnxNode:
    attributes = {each.name: helper.get_attribute_value(each) for each in proto.attribute}
    name = proto.name or (proto.output[0] if proto.output else f"#{position}")
    return OnnxNode(proto.op_type, name, tuple(proto.input), tuple(proto.output), attributes)


def _constant(proto: onnx.NodeProto) -> Array | None:
    (attribute,) = proto.attribute
    value = helper.get_attribute_value(attribute)
    match attribute.name:
        case "value":
            return read_constant(value)
        case "value_float" | "value_floats":
            return np.asarray(value, np.float32)
        case "value_int" | "value_ints":
            return np.asarray(value, np.int64)
        case _:
            return None


def _signature(value: onnx.ValueInfoProto) -> Signature:
    kind = value.type.tensor_type.elem_type
    dtype = ELEMENT_TYPES.get(kind)
    if dtype is None or (dtype.is_float and dtype is not DType.FLOAT32):
        raise ModelError(
            f"input {value.name!r} is {type_name(kind)}; required float32, whole numbers or bool"
        )
    dims = value.type.tensor_type.shape.dim
    shape = [dim.dim_value for dim in dims]
    if shape and not shape[0]:
        shape[0] = 1
    if min(shape, default=1) < 1:
        found = [dim.dim_value or dim.dim_param or "?" for dim in dims]
        raise ModelError(
            f"input {value.name!r} has shape {found}; required fixed sizes after the batch"
        )
    return Signature(value.name, tuple(shape), dtype.value)
