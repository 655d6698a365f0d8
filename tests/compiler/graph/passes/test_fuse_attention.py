"""Attention is found in what frameworks write for it, and means the same."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.attention import Attention
from dovetail.compiler.graph.operators.movement import Transpose
from dovetail.compiler.graph.passes.fuse_attention import FuseAttention

Arrays = Mapping[str, NDArray[Any]]
CONSTANTS = {"scale": np.float32(8**0.5), "low": np.float32(-1e4), "two": np.float32(2)}


def node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


TURN = {"perm": [0, 2, 1, 3]}
HEADS = [
    node("Transpose", "q", "qh", **TURN),
    node("Transpose", "k", "kh", perm=[0, 2, 3, 1]),
    node("Transpose", "v", "vh", **TURN),
    node("MatMul", "qh kh", "s"),
    node("Div", "s scale", "d"),
]
ENDS = [node("Softmax", "m", "p"), node("MatMul", "p vh", "y")]


KEYS_FIRST = [
    *HEADS[:3],
    node("Einsum", "kh qh", "s", equation="bhdk,bhqd->bhqk"),
    HEADS[-1],
]
"""The same scores, of a product whose operands are the other way round."""


def model(
    *middle: onnx.NodeProto,
    rows: int = 16,
    width: int = 8,
    outputs: str = "y",
    heads: list[onnx.NodeProto] = HEADS,
) -> onnx.ModelProto:
    """Two heads of ``rows`` queries and 20 keys, 8 numbers each, and ``width`` of a value.

    middle: from ``d`` to ``m``.  heads: up to ``d``.
    """
    sizes = {
        "q": [1, rows, 2, 8],
        "k": [1, 20, 2, 8],
        "v": [1, 20, 2, width],
        "bias": [1, 1, 1, 20],
    }
    inputs = [
        *(helper.make_tensor_value_info(x, TensorProto.FLOAT, each) for x, each in sizes.items()),
        helper.make_tensor_value_info("visible", TensorProto.BOOL, [rows, 20]),
    ]
    found = [helper.make_tensor_value_info(x, TensorProto.FLOAT, None) for x in outputs.split()]
    weights = [numpy_helper.from_array(np.asarray(each), x) for x, each in CONSTANTS.items()]
    graph = helper.make_graph([*heads, *middle, *ENDS], "heads", inputs, found, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def fused(made: onnx.ModelProto) -> tuple[Graph, list[Attention]]:
    graph = FuseAttention().run(open_model(made).to_graph().graph)
    found = [each.operator for each in graph.nodes if isinstance(each.operator, Attention)]
    return graph, found


def compare(made: onnx.ModelProto, graph: Graph) -> None:
    """With ONNX Runtime's results."""
    rng = np.random.default_rng(1)
    given = {
        name: rng.standard_normal(graph.types[name].shape).astype(np.float32)
        for name in graph.inputs
        if name != "visible"
    }
    given["visible"] = rng.random(graph.types["visible"].shape) < 0.7
    names = [each.name for each in made.graph.output]
    wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(names, given)
    found = run(graph, given)
    for name, want in zip(names, wanted, strict=True):
        np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("middle", "masks"),
    [
        ([node("Identity", "d", "m")], (False, False)),
        ([node("Add", "d bias", "m")], (True, False)),
        ([node("Add", "bias d", "m")], (True, False)),
        ([node("Where", "visible d low", "m")], (False, True)),
        ([node("Add", "d bias", "b"), node("Where", "visible b low", "m")], (True, True)),
    ],
)
def test_scores_with_masks_become_one_operator(
    middle: list[onnx.NodeProto], masks: tuple[bool, bool]
) -> None:
    made = model(*middle)
    graph, (found,) = fused(made)
    assert (found.added, found.chosen) == masks
    assert found.scale == pytest.approx(8**-0.5)
    assert not any(isinstance(each.operator, Transpose) for each in graph.nodes)
    compare(made, graph)


def test_either_operand_may_have_the_keys() -> None:
    made = model(node("Identity", "d", "m"), heads=KEYS_FIRST)
    graph, (found,) = fused(made)
    assert found.scale == pytest.approx(8**-0.5)
    compare(made, graph)


@pytest.mark.parametrize(
    ("middle", "options"),
    [
        ([node("Identity", "d", "m")], {"outputs": "y p"}),
        ([node("Identity", "d", "m")], {"rows": 8}),
        ([node("Identity", "d", "m")], {"width": 272}),
        ([node("Mul", "d d", "m")], {}),
        ([node("Where", "visible d low", "w"), node("Mul", "w two", "m")], {}),
        ([node("Where", "visible low d", "m")], {}),
    ],
)
def test_what_is_no_attention_or_is_read_elsewhere_stays(
    middle: list[onnx.NodeProto], options: dict[str, Any]
) -> None:
    made = model(*middle, **options)
    graph, found = fused(made)
    assert not found
    compare(made, graph)
