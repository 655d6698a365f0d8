"""ONNX to graph IR: QDQ and QLinear models of integer networks.

Source: ONNX operator specification, opset 13; com.microsoft operators as ONNX Runtime
documents them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import onnx
from onnx import numpy_helper

from ....errors import GraphError, ModelError, UnsupportedOperatorError
from ....graph.ir import Graph, GraphBuilder
from ....graph.operators.integer.conversions import Dequantize, Shift128
from ....graph.types import TensorType
from ..element_types import type_name
from .onnx_nodes import CONVERTERS, QUANTIZED_OPERATORS
from .onnx_state import ImportState, OnnxNode
from .values import Array, Floating, Integer, Real, identity_order, to_model_order

__all__ = ["import_onnx", "load_onnx"]

DTYPES = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.UINT8: "uint8",
}
DOMAINS = ("", "ai.onnx", "com.microsoft")


def load_onnx(path: Path) -> onnx.ModelProto:
    """Read a model file.

    Raises ModelError when there is none or it is not ONNX.
    """
    try:
        model = onnx.load(path)
    except FileNotFoundError:
        raise ModelError(f"no model file {path}") from None
    except Exception as error:
        # The reader raises its own classes, OSError and UnicodeDecodeError, by what is wrong.
        raise ModelError(f"{path} is not an ONNX model: {error}") from None
    if not model.graph.node:
        raise ModelError(f"{path} is not an ONNX model, or it has no nodes")
    return model


def import_onnx(model: onnx.ModelProto) -> Graph:
    """The graph of an integer model.

    Raises ModelError for a model that is not quantised or has no fixed shapes,
    UnsupportedOperatorError for operators that have no meaning here; both name the node.
    """
    nodes = [_node(proto, position) for position, proto in enumerate(model.graph.node)]
    _require_quantized(nodes)
    _require_supported(model, nodes)
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 13)
    state = ImportState(GraphBuilder(), _initializers(model), opset)
    _inputs(state, model)
    for node in nodes:
        _convert(CONVERTERS[node.kind], state, node)
    if not model.graph.output:
        raise ModelError("the model has no outputs")
    outputs = tuple(_output(state, value) for value in model.graph.output)
    return state.graph.build(outputs)


def _node(proto: onnx.NodeProto, position: int) -> OnnxNode:
    attributes: Mapping[str, object] = {
        a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute
    }
    name = proto.name or (proto.output[0] if proto.output else f"#{position}")
    return OnnxNode(proto.op_type, name, tuple(proto.input), tuple(proto.output), attributes)


def _require_supported(model: onnx.ModelProto, nodes: list[OnnxNode]) -> None:
    for proto, node in zip(model.graph.node, nodes, strict=True):
        if node.kind not in CONVERTERS or proto.domain not in DOMAINS:
            raise UnsupportedOperatorError(
                f"{node}: operator {proto.domain + '.' * bool(proto.domain)}{node.kind} is not "
                f"supported; supported are {', '.join(sorted(CONVERTERS))}"
            )
        if not node.outputs:
            raise ModelError(f"{node} has no output")


def _require_quantized(nodes: list[OnnxNode]) -> None:
    first = next((n for n in nodes if n.kind in ("Conv", "Gemm", "MatMul")), None)
    if first is None or any(node.kind in QUANTIZED_OPERATORS for node in nodes):
        return
    raise ModelError(
        f"float model: {first} computes in float32; required an int8 model in QDQ or "
        "QLinear form; quantise the model first"
    )


def _initializers(model: onnx.ModelProto) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for tensor in model.graph.initializer:
        try:
            arrays[tensor.name] = numpy_helper.to_array(tensor)
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise ModelError(f"constant {tensor.name!r} cannot be read: {error}") from None
    return arrays


def _convert(
    converter: Callable[[ImportState, OnnxNode], None], state: ImportState, node: OnnxNode
) -> None:
    try:
        converter(state, node)
    except GraphError as error:
        raise ModelError(f"{error} (operator {node.kind})") from None
    except (IndexError, KeyError, ValueError, TypeError) as error:
        raise ModelError(f"{node} is malformed: {error}") from None


def _inputs(state: ImportState, model: onnx.ModelProto) -> None:
    for value in model.graph.input:
        if value.name in state.arrays:
            continue
        name, shape = value.name, _shape(value)
        kind = value.type.tensor_type.elem_type
        if kind not in DTYPES:
            found = type_name(kind)
            raise ModelError(f"input {name!r} is {found}; required int8, uint8 or float32")
        state.graph.input(name, TensorType(shape, DTYPES[kind]))
        order = identity_order(len(shape))
        if DTYPES[kind] == "uint8":
            stored = state.graph.node(Shift128("int8"), (name,), name, name)
            state.values[name] = Integer(stored, order, unsigned=True)
        elif DTYPES[kind] == "int8":
            state.values[name] = Integer(name, order)
        else:
            state.values[name] = Floating(name, order)


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    """The input's shape; an open first dimension, the batch, is 1."""
    dims = value.type.tensor_type.shape.dim
    shape = tuple(dim.dim_value or (1 if axis == 0 else 0) for axis, dim in enumerate(dims))
    if not shape or min(shape) < 1:
        found = ", ".join(dim.dim_param or str(dim.dim_value or "?") for dim in dims)
        raise ModelError(
            f"input {value.name!r} has shape [{found}]; only the first dimension may be open (it "
            "becomes 1); export the model with fixed sizes"
        )
    if shape[0] != 1:
        raise ModelError(f"input {value.name!r} has batch {shape[0]}; required 1")
    return shape


def _output(state: ImportState, value: onnx.ValueInfoProto) -> str:
    """The graph's tensor for a model output, under the model's name and in its form."""
    found, builder = state.values.get(value.name), state.graph
    if found is None:
        raise ModelError(f"output {value.name!r} is not computed by any node")
    tensor = found.tensor if isinstance(found, Real) else found
    if not isinstance(tensor, Integer):
        raise ModelError(
            f"output {value.name!r} is a float tensor that was not quantised; "
            "quantise the model first, its outputs included"
        )
    name = to_model_order(builder, tensor, value.name)
    if isinstance(found, Real):
        operator = Dequantize(float(found.scale), found.zero_point)
        name = builder.node(operator, (name,), value.name, value.name)
    elif tensor.unsigned:
        name = builder.node(Shift128("uint8"), (name,), value.name, value.name)
    return builder.export(name, value.name)
