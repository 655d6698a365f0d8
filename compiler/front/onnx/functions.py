"""Bodies of operators that ONNX, or the model, defines as functions of others."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from ...graph.types import TensorType

__all__ = ["bind_attributes", "function_of"]


def function_of(
    proto: onnx.NodeProto, opset: int, inputs: Sequence[TensorType | None]
) -> onnx.FunctionProto | None:
    """The body by which ONNX defines the operator of ``proto``; None when there is none.

    inputs: types, which some bodies depend on.
    """
    try:
        schema: Any = onnx.defs.get_schema(proto.op_type, opset, proto.domain)
    except onnx.defs.SchemaError:
        return None
    text = b""
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        text = schema.get_function_with_opset_version(max(versions, default=opset))
    elif schema.has_context_dependent_function:
        types = [_type_proto(kind).SerializeToString() for kind in inputs]
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        text = schema.get_context_dependent_function_with_opset_version(
            max(versions, default=opset), proto.SerializeToString(), types
        )
    if not text:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(text)
    return function


def bind_attributes(function: onnx.FunctionProto, call: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The function's nodes with the attributes of ``call`` in place of references to them."""
    given = {each.name: each for each in _defaults(call)}
    given.update({each.name: each for each in function.attribute_proto})
    given.update({each.name: each for each in call.attribute})
    return [_bound(node, given) for node in function.node]


def _type_proto(kind: TensorType | None) -> onnx.TypeProto:
    if kind is None:
        return onnx.TypeProto()
    element = helper.np_dtype_to_tensor_dtype(kind.dtype.numpy)
    return helper.make_tensor_type_proto(element, kind.shape)


def _defaults(call: onnx.NodeProto) -> list[onnx.AttributeProto]:
    try:
        schema = onnx.defs.get_schema(call.op_type, call.domain)
    except onnx.defs.SchemaError:
        return []
    values = [each.default_value for each in schema.attributes.values()]
    return [each for each in values if each.name and each.type]


def _bound(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            added = result.attribute.add()
            added.CopyFrom(attribute)
            if attribute.type == onnx.AttributeProto.GRAPH:
                inner = [_bound(each, given) for each in attribute.g.node]
                del added.g.node[:]
                added.g.node.extend(inner)
        elif attribute.ref_attr_name in given:
            added = result.attribute.add()
            added.CopyFrom(given[attribute.ref_attr_name])
            added.name = attribute.name
    return result
