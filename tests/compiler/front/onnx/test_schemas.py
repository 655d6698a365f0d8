"""Operands and attributes are those that ONNX allows, by its own check."""

import numpy as np
import onnx
import pytest
from onnx import helper

from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.front.table import open_model

TYPES = ("bool", "float32", "int32", "int64", "uint8")
MICROSOFT = "com.microsoft"


def model(kind: str, types: tuple[str, ...], opset: int = 21, domain: str = "") -> onnx.ModelProto:
    """One node whose operands are scalars of some types."""
    inputs = [
        helper.make_tensor_value_info(f"x{n}", helper.np_dtype_to_tensor_dtype(np.dtype(each)), ())
        for n, each in enumerate(types)
    ]
    node = helper.make_node(kind, [each.name for each in inputs], ["y"], "node", domain=domain)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def refused(made: onnx.ModelProto) -> str:
    """Why a model is refused; "" if it is not."""
    try:
        open_model(made).to_graph()
    except ModelError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("kind", "rest"),
    [
        ("QuantizeLinear", ("float32", "uint8")),
        ("DequantizeLinear", ("float32", "uint8")),
        ("Not", ()),
        ("Sqrt", ()),
        ("Add", ("float32",)),
        ("Where", ("int64", "int64")),
        ("Where", ("int64", "float32")),
        ("Pow", ("int64",)),
        ("Max", ("int32", "int32")),
    ],
)
def test_operands_are_of_types_that_onnx_allows(kind: str, rest: tuple[str, ...]) -> None:
    for first in TYPES:
        made = model(kind, (first, *rest))
        made.graph.output[0].type.CopyFrom(onnx.TypeProto())
        try:
            onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True)
            wrong = False
        except onnx.shape_inference.InferenceError:
            wrong = True
        said = refused(made)
        assert bool(said) == wrong
        assert not said or "put a Cast before" in said


@pytest.mark.parametrize(
    ("kind", "count", "attributes", "opset", "said"),
    [
        ("Relu", 1, {}, 21, ""),
        ("Relu", 1, {"__layer": 1}, 21, ""),
        ("Relu", 1, {"alpha": 1.0}, 21, "attribute 'alpha'; in opset 21 there are: none"),
        ("Softmax", 1, {"axes": 0}, 21, "attribute 'axes'; in opset 21 there are: axis; leave"),
        ("Clip", 1, {"min": 0.0}, 10, ""),
        ("Clip", 1, {"min": 0.0}, 11, "attribute 'min'; in opset 11 there are: none"),
        ("Clip", 3, {}, 11, ""),
        ("Clip", 4, {}, 11, "4 inputs; in opset 11 there are at most 3"),
        ("Sum", 9, {}, 21, ""),
        ("Cast", 1, {}, 21, "node 'node' (Cast): attribute 'to' is missing; in opset 21 it is"),
        ("Gelu", 1, {}, 20, ""),
    ],
)
def test_operands_and_attributes_are_those_of_the_models_opset(
    kind: str, count: int, attributes: dict[str, float], opset: int, said: str
) -> None:
    made = model(kind, ("float32",) * count, opset)
    made.graph.node[0].attribute.extend(helper.make_attribute(*each) for each in attributes.items())
    found = refused(made)
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize("domain", ["", MICROSOFT])
def test_a_truth_is_not_quantised(domain: str) -> None:
    said = refused(model("QuantizeLinear", ("bool", "float32", "int8"), 13, domain))
    assert "node 'node' (QuantizeLinear): input 'x0' is bool; in opset" in said
    assert "it may be " in said
    assert "float, " in said


def test_types_are_those_of_the_models_opset() -> None:
    assert refused(model("Relu", ("int32",), 14)) == ""
    said = refused(model("Relu", ("int32",), 13))
    assert said.endswith(
        "in opset 13 it may be bfloat16, double, float, float16; put a Cast before it"
    )


def test_operands_that_must_be_alike_are_named() -> None:
    said = refused(model("Concat", ("float32", "float32", "int64")))
    assert "input 'x2' is int64, and input 'x0' is float; required the same type" in said


@pytest.mark.parametrize(("kind", "fits"), [("INT8", True), ("FLOAT", False), ("INT64", False)])
def test_numbers_are_quantised_to_few_bits(kind: str, *, fits: bool) -> None:
    made = model("QuantizeLinear", ("float32", "float32"))
    number = onnx.TensorProto.DataType.Value(kind)
    made.graph.node[0].attribute.append(helper.make_attribute("output_dtype", number))
    if fits:
        open_model(made).to_graph()
    else:
        with pytest.raises(UnsupportedOperatorError, match=f"quantises to {kind}"):
            open_model(made).to_graph()
