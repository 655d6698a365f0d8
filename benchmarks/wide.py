"""Models in float64, to have results that are exact beside those in float32."""

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

__all__ = ["to_float64"]

NARROW = {"Resize": (1, 2), "Upsample": (1,)}
"""Operands that are float32 by ONNX's definition, whatever else is: region and scales."""
NAMED = {"to", "dtype", "output_datatype"}
"""Attributes that are an element type."""


def to_float64(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with float64 for every float32: weights, constants, conversions, bodies."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    graphs = list(_graphs(wide.graph))
    kept = {
        node.input[place]
        for graph in graphs
        for node in graph.node
        for place in NARROW.get(node.op_type, ())
        if place < len(node.input)
    }
    for graph in graphs:
        for tensor in graph.initializer:
            if tensor.name not in kept:
                _widen(tensor)
        for value in (*graph.input, *graph.output, *graph.value_info):
            kind = value.type.tensor_type
            if kind.elem_type == TensorProto.FLOAT and value.name not in kept:
                kind.elem_type = TensorProto.DOUBLE
        for node in graph.node:
            if not kept.intersection(node.output):
                _widen_attributes(node)
    return wide


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and all bodies in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node or body.output:
                    yield from _graphs(body)


def _widen(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        array = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _widen_attributes(node: NodeProto) -> None:
    for attribute in list(node.attribute):
        if attribute.type == AttributeProto.TENSOR:
            _widen(attribute.t)
        elif attribute.name in NAMED and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            single = attribute.name == "value_float"
            array = np.asarray(attribute.f if single else attribute.floats, np.float64)
            node.attribute.remove(attribute)
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(array)))
    if node.op_type == "ConstantOfShape" and not node.attribute:
        zero = numpy_helper.from_array(np.zeros(1, np.float64))
        node.attribute.append(helper.make_attribute("value", zero))
