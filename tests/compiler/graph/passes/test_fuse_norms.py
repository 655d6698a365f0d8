"""Normalised rows are found in what frameworks write for them, and mean the same."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.rows import NormalizedRows
from dovetail.compiler.graph.passes.fuse_norms import FuseNorms
from dovetail.compiler.graph.passes.merge_common import MergeCommon

CONSTANTS = {
    "axes": np.array([-1], np.int64),
    "two": np.float32(2),
    "one": np.float32(1),
    "e": np.float32(1e-3),
    "scale": np.linspace(0.5, 2, 12, dtype=np.float32),
}


def node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


MEAN = [node("ReduceMean", "x axes", "m"), node("Sub", "x m", "d")]
SPREAD = [
    node("ReduceMean", "s axes", "v"),
    node("Add", "v e", "w"),
    node("Sqrt", "w", "r"),
]
NORMS = {
    "operator": [node("LayerNormalization", "x scale", "n", epsilon=1e-3)],
    "powers": [
        *(*MEAN, node("Pow", "d two", "s"), *SPREAD, node("Div", "d r", "q")),
        node("Mul", "q scale", "n"),
    ],
    "products": [
        *(*MEAN, node("Mul", "d d", "s"), *SPREAD, node("Div", "one r", "i")),
        *(node("Mul", "i d", "q"), node("Mul", "q scale", "n")),
    ],
    "roots": [
        *(node("Mul", "x x", "s"), *SPREAD, node("Div", "one r", "i")),
        *(node("Mul", "x i", "q"), node("Mul", "q scale", "n")),
    ],
}


def model(nodes: list[onnx.NodeProto], outputs: str = "n") -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "norm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 12])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, None) for x in outputs.split()],
        [numpy_helper.from_array(np.asarray(each), x) for x, each in CONSTANTS.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def fused(made: onnx.ModelProto) -> tuple[Graph, list[NormalizedRows]]:
    graph = FuseNorms().run(MergeCommon().run(open_model(made).to_graph().graph))
    return graph, [n.operator for n in graph.nodes if isinstance(n.operator, NormalizedRows)]


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_becomes_one_operator(name: str) -> None:
    made = model(NORMS[name])
    graph, (found,) = fused(made)
    assert found.centred == (name != "roots")
    assert found.epsilon == pytest.approx(1e-3)
    x = np.random.default_rng(0).standard_normal((2, 3, 12)).astype(np.float32) + 1
    want = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(run(graph, {"x": x})["n"], want, rtol=1e-5, atol=1e-5)


def test_statistics_that_are_read_elsewhere_stay() -> None:
    made = model(NORMS["powers"], "n m")
    graph, (_,) = fused(made)
    x = np.random.default_rng(0).standard_normal((2, 3, 12)).astype(np.float32)
    np.testing.assert_allclose(run(graph, {"x": x})["m"], x.mean(-1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize(
    "nodes",
    [
        [*MEAN, node("Mul", "d x", "s"), *SPREAD, node("Div", "d r", "n")],
        [*MEAN, node("Mul", "d d", "s"), *SPREAD, node("Div", "x r", "n")],
        [node("Mul", "x x", "s"), node("ReduceSum", "s axes", "v"), *SPREAD[1:],
         node("Div", "x r", "n")],
    ],
)  # fmt: skip
def test_other_quotients_stay(nodes: list[onnx.NodeProto]) -> None:
    assert not fused(model(nodes))[1]
