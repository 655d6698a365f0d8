"""A model's NaN, when quantised, becomes the type's smallest value, as in ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import CompileOptions, CpuOptions, compile
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.targets.cpu.native import prepared_graph
from dovetail.runtime import run

SIZE = 83
"""Elements of the input: not a multiple of a vector."""


def quantising(dtype: str, zero_point: int) -> onnx.ModelProto:
    """``QuantizeLinear(Log(x))``."""
    nodes = [
        helper.make_node("Log", ["x"], ["log"]),
        helper.make_node("QuantizeLinear", ["log", "scale", "zero"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(np.float32(0.03), "scale"),
        numpy_helper.from_array(np.array(zero_point, dtype), "zero"),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [SIZE])
    found = helper.make_tensor_value_info("y", TensorProto.DataType.Value(dtype.upper()), [SIZE])
    graph = helper.make_graph(nodes, "g", [given], [found], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_nan_is_quantised_to_the_smallest_value_everywhere(dtype: str) -> None:
    model = quantising(dtype, 5)
    x = np.random.default_rng(1).normal(size=SIZE).astype(np.float32)
    x[7], x[20], x[81] = 0, np.inf, np.nan
    graph, passes = prepared_graph(SourceModel.of(model), {}, True)
    expected = interpret(graph, {"x": x})["y"]
    limits = np.iinfo(dtype)
    assert (expected[np.isnan(x) | (x < 0)] == limits.min).all()
    assert (expected[7], expected[20]) == (limits.min, limits.max)
    np.testing.assert_array_equal(interpret(passes.run(graph), {"x": x})["y"], expected)
    for level in ("native", "x86-64"):
        module = compile(model, "cpu", CompileOptions(cpu=CpuOptions(level=level)))
        np.testing.assert_array_equal(run(module, {"x": x}, device="cpu").outputs["y"], expected)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)
