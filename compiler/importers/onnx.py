"""ONNX to graph IR: QDQ and QLinear models of integer networks.

Source: ONNX operator specification, opset 13; com.microsoft operators as ONNX Runtime documents them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import onnx
from onnx import numpy_helper

from ..errors import GraphError, ModelError, UnsupportedOperatorError
from ..graph.ir import Graph, GraphBuilder
from ..graph.ops import Dequantize, Shift128, TensorType
from .onnx_nodes import CONVERTERS, ImportState, OnnxNode
from .quantized import Integer, Real, to_model_order

__all__ = ["import_onnx", "load_onnx"]

DTYPES = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.UINT8: "uint8",
}


def load_onnx(path: Path) -> onnx.ModelProto:
    """Read a model file.

    Raises ModelError when there is none or it is not ONNX.
    """
    try:
        model = onnx.load(path)
    except FileNotFoundError:
        raise ModelError(f"no model file {path}") from None
    except Exception as error:
        raise ModelError(f"{path} is not an ONNX model: {error}") from None
    if not model.graph.node:
        raise ModelError(f"{path} is not an ONNX model, or it has no nodes")
    return model


def import_onnx(model: onnx.ModelProto) -> Graph:
    """The graph of an integer model.

    Raises ModelError for a model that is not quantised or has no fixed shapes, UnsupportedOperatorError for
    operators that have no meaning here; both name the node.
    """
    state = ImportState(GraphBuilder(), {t.name: numpy_helper.to_array(t) for t in model.graph.initializer})
    _inputs(state, model)
    for position, proto in enumerate(model.graph.node):
        node = _node(proto, position)
        converter = CONVERTERS.get(node.kind)
        if converter is None:
            raise UnsupportedOperatorError(
                f"node {node.name!r}: operator {node.kind} is not supported; "
                f"supported are {', '.join(sorted(CONVERTERS))}"
            )
        _convert(converter, state, node)
    outputs = tuple(_output(state, value) for value in model.graph.output)
    return state.graph.build(outputs)


def _convert(
    converter: Callable[[ImportState, OnnxNode], None], state: ImportState, node: OnnxNode
) -> None:
    try:
        converter(state, node)
    except GraphError as error:
        raise ModelError(f"{error} (operator {node.kind})") from None
    except (IndexError, KeyError, ValueError) as error:
        raise ModelError(f"node {node.name!r} ({node.kind}) is malformed: {error}") from None


def _node(proto: onnx.NodeProto, position: int) -> OnnxNode:
    attributes: Mapping[str, object] = {
        a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute
    }
    name = proto.name or (proto.output[0] if proto.output else f"#{position}")
    return OnnxNode(proto.op_type, name, tuple(proto.input), tuple(proto.output), attributes)


def _inputs(state: ImportState, model: onnx.ModelProto) -> None:
    for value in model.graph.input:
        if value.name in state.arrays:
            continue
        kind = value.type.tensor_type
        dtype = DTYPES.get(kind.elem_type)
        if dtype is None:
            found = onnx.TensorProto.DataType.Name(kind.elem_type)
            raise ModelError(f"input {value.name!r} is {found}; required int8, uint8 or float32")
        shape = tuple(
            dim.dim_value or (1 if axis == 0 else 0) for axis, dim in enumerate(kind.shape.dim)
        )
        if 0 in shape or not shape:
            raise ModelError(
                f"input {value.name!r} has no fixed shape; only the first dimension may be open "
                "(it becomes 1); export the model with fixed sizes"
            )
        if shape[0] != 1:
            raise ModelError(f"input {value.name!r} has batch {shape[0]}; required 1")
        state.graph.input(value.name, TensorType(shape, dtype))
        order = tuple(range(len(shape)))
        if dtype == "uint8":
            name = state.graph.node(Shift128("int8"), (value.name,), value.name, value.name)
            state.values[value.name] = Integer(name, order, unsigned=True)
        elif dtype == "int8":
            state.values[value.name] = Integer(value.name, order)
        else:
            state.floats.add(value.name)


def _output(state: ImportState, value: onnx.ValueInfoProto) -> str:
    """The graph's tensor for a model output, under the model's name and in its form."""
    found = state.values.get(value.name)
    if found is None:
        raise ModelError(f"output {value.name!r} is not computed by any node")
    builder = state.graph
    tensor = found.tensor if isinstance(found, Real) else found
    if not isinstance(tensor, Integer):
        raise ModelError(
            f"output {value.name!r} is a float tensor that was not quantised; "
            "quantise the model first, its outputs included"
        )
    name = to_model_order(builder, tensor, value.name)
    if isinstance(found, Real):
        name = builder.node(
            Dequantize(float(found.scale), found.zero_point), (name,), value.name, value.name
        )
    elif tensor.unsigned:
        name = builder.node(Shift128("uint8"), (name,), value.name, value.name)
    return builder.rename_output(name, value.name)
