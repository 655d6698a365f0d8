"""Measurements of the benchmark of CPUs: names it knows, and models in float64."""

import sys
from pathlib import Path

import click
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from cpu_models import exact_outputs, model_file
from wide import to_float64


def tensor(array: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, np.float32))


def exported() -> onnx.ModelProto:
    """A model with all that exports hold: constants, conversions, a body, scales of a resize."""
    node = helper.make_node
    shape = numpy_helper.from_array(np.array([1, 3], np.int64), "shape")
    less = node("Less", ["total", "limit"], ["below"])
    branch = helper.make_graph(
        [node("Constant", [], ["seven"], value=tensor([0.7]))], "seven", [],
        [helper.make_tensor_value_info("seven", TensorProto.FLOAT, [1])],
    )  # fmt: skip
    other = helper.make_graph(
        [node("Constant", [], ["third"], value=tensor([0.3]))], "third", [],
        [helper.make_tensor_value_info("third", TensorProto.FLOAT, [1])],
    )  # fmt: skip
    nodes = [
        node("Constant", [], ["half"], value_float=0.1),
        node("Constant", [], ["row"], value_floats=[0.1, 0.2, 0.3]),
        node("Constant", [], ["scales"], value=tensor([1.0, 1.0, 2.0])),
        node("Constant", [], ["axes"], value_ints=[0]),
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("Cast", ["n"], ["float"], to=TensorProto.FLOAT),
        node("Add", ["x", "half"], ["a"]),
        node("Mul", ["a", "row"], ["b"]),
        node("Add", ["b", "zeros"], ["c"]),
        node("Add", ["c", "float"], ["d"]),
        node("Unsqueeze", ["d", "axes"], ["image"]),
        node("Resize", ["image", "", "scales"], ["wide"], mode="nearest"),
        node("ReduceSum", ["wide"], ["total"], keepdims=0),
        node("Constant", [], ["limit"], value_float=0.0),
        less,
        node("If", ["below"], ["factor"], then_branch=branch, else_branch=other),
        node("Mul", ["wide", "factor"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "exported",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3]),
            helper.make_tensor_value_info("n", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 6])],
        [shape],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_usual_export_is_float64_throughout(tmp_path: Path) -> None:
    model = exported()
    before = model.SerializeToString()
    x, n = np.array([[1e-3, -7.0, 123.25]], np.float32), np.array([3])
    (found,) = exact_outputs(model, {"x": x, "n": n}, tmp_path)
    assert model.SerializeToString() == before
    wide = (x.astype(np.float64) + np.float32(0.1)) * np.float32([0.1, 0.2, 0.3]) + 3.0
    expected = np.repeat(wide[None], 2, axis=2) * np.float32(0.3)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    onnx.checker.check_model(to_float64(model), full_check=True)
    (near,) = ReferenceEvaluator(model).run(None, {"x": x, "n": n})
    np.testing.assert_allclose(found, near, rtol=1e-5)


def test_a_name_that_is_unknown_is_answered_by_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="no network is called 'resnet1'; known are mnist"):
        model_file("resnet1", tmp_path)
    with pytest.raises(click.UsageError, match="no network is called 'nothing_uint8'"):
        model_file("nothing_uint8", tmp_path)
    with pytest.raises(click.UsageError, match=r"no model file absent\.onnx"):
        model_file("absent.onnx", tmp_path)
