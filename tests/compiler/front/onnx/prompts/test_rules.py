"""Each operator of several tokens, against ONNX Runtime on one after the other: wherever the tokens
are in its operand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper, parser

from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.onnx.prompts.places import Emitter, Place
from dovetail.compiler.front.onnx.prompts.rules import Rules
from dovetail.compiler.front.onnx.prompts.slots import Slots

TOKENS = 3
CONSTANTS = {
    "c4": (4,), "c2x4": (2, 4), "c2x1": (2, 1), "c1x2x4": (1, 2, 4), "c2x1x4": (2, 1, 4),
    "c1": (1,), "w": (4, 5), "w2": (2, 5), "w1": (1, 5), "w3": (1, 4, 5), "table": (6, 5),
    "c2x5": (2, 5), "c1x5": (1, 5),
}  # fmt: skip
NUMBERS = {"n0": 0, "n1": 1, "n2": 2, "nm1": -1}
FRONTS = {
    "inside 0": ("", "x", (1, 2, 4)),
    "inside 1": ("t = Transpose <perm = [2, 0, 1]> (x) ", "t", (1, 2, 4)),
    "inside 2": ("t = Transpose <perm = [1, 2, 0]> (x) ", "t", (1, 4, 2)),
    "front": ("t = Reshape (x, s2x4) u = Reshape (t, s2x4x1) ", "u", (1, 2, 4)),
    "rows": ("t = MatMul (x, w3) ", "t", (1, 2, 4)),
}
"""Nodes before, their result, and the shape of a token: where its axis is."""
UNARY = [
    "y = Softmax <axis = -1> ({0})",
    "y = Relu ({0})",
    "y = Transpose <perm = [1, 2, 0]> ({0})",
    "y = Transpose ({0})",
    "y = Flatten ({0})",
    "y = Reshape ({0}, flat)",
    "y = Unsqueeze ({0}, n0)",
    *(f"y = ReduceSum ({{0}}, {axis})" for axis in ("n0", "n1", "n2", "nm1")),
    *(f"y = Slice ({{0}}, n0, n1, {axis})" for axis in ("n0", "n1", "n2", "nm1")),
    *(f"y = Concat <axis = {axis}> ({{0}}, {{0}})" for axis in (0, 1, -1)),
    *(f"y = Split <axis = {axis}, num_outputs = 1> ({{0}})" for axis in (0, 1, -1)),
    *(f"y = Gather <axis = {axis}> ({{0}}, n0)" for axis in (0, -1)),
    "y, z = TopK <axis = 1> ({0}, n1)",
    "y = Mul ({0}, c1)",
    "y = Add ({0}, {0})",
]
OTHERS = [
    *("y = Add (x, c4)", "y = Add (x, c2x4)", "y = Add (x, c1x2x4)", "y = Add (c2x1, x)"),
    "t = Transpose <perm = [1, 0, 2]> (x) y = Mul (t, c2x1x4)",
    "t = Transpose <perm = [1, 0, 2]> (x) u = Transpose <perm = [1, 0, 2]> (t) y = Add (u, x)",
    "t = Transpose <perm = [1, 0, 2]> (x) u = ReduceSum (t, n0) v = ReduceSum (x, n1) "
    "y = Add (u, v)",
    "t = Transpose <perm = [1, 0, 2]> (x) u = ReduceSum (x, n1) y = Add (t, u)",
    "t = ReduceSum (x, n1) y = Concat <axis = 1> (t, x)",
    "t = Transpose <perm = [1, 0, 2]> (x) y = Concat <axis = 0> (t, c2x1x4)",
    "t = Reshape (x, flat) y = Concat <axis = 0> (t, c4)",
    "y = MatMul (x, w)",
    "t = Transpose <perm = [0, 2, 1]> (x) y = MatMul (t, w2)",
    "t = Transpose <perm = [2, 1, 0]> (x) y = MatMul (t, w1)",
    "t = MatMul (x, w3) y = Reshape (t, s2x5)",
    "t = MatMul (x, w3) y = Reshape (t, s1x1x2x5)",
    "t = MatMul (x, w3) u = MatMul (x, w3) y = Add (t, u)",
    "t = MatMul (x, w3) u = MatMul (x, w) y = Add (t, u)",
    "t = QuantizeLinear (x, c9) u = DequantizeLinear (t, c9) "
    "v = Transpose <perm = [2, 1, 0]> (u) y = Softmax <axis = -1> (v)",
    "t = ReduceSum (x, n1) u = Squeeze (t, n1) y = Gemm (u, w)",
    "y = Expand (x, s1x2x4)",
    "y = Clip (x, c0, c9)",
]


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    found: dict[str, Any] = {
        name: rng.standard_normal(shape).astype(np.float32) for name, shape in CONSTANTS.items()
    }
    found |= {name: np.array([value]) for name, value in NUMBERS.items()}
    shapes = {"flat": [-1], "s2x4": [2, 4], "s2x5": [2, 5], "s1x1x2x5": [1, 1, 2, 5]}
    shapes |= {"s1x2x4": [1, 2, 4], "s2x4x1": [2, 4, 1]}
    found |= {name: np.array(sizes) for name, sizes in shapes.items()}
    return found | {"c0": np.float32(-0.3), "c9": np.float32(0.4)}


ARRAYS = arrays()


def session(
    nodes: Sequence[onnx.NodeProto], constants: Sequence[onnx.TensorProto], x: Any
) -> ort.InferenceSession:
    """A model of nodes, from ``x`` to ``y``."""
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    given = [helper.make_tensor_value_info("x", kind, x.shape)]
    graph = helper.make_graph(nodes, "m", given, [onnx.ValueInfoProto(name="y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(model.SerializeToString(), options)


def check(text: str, x: Any) -> Place:
    """Compare tokens in one run with each alone.  The place of the tokens of ``y``."""
    graph = parser.parse_graph(f"m (float x) => (float y) {{ {text} }}")
    used = {name for node in graph.node for name in node.input}
    constants = {name: ARRAYS[name] for name in sorted(used & ARRAYS.keys())}
    protos = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    one, kind = x[:1], helper.np_dtype_to_tensor_dtype(x.dtype)
    value = helper.make_tensor_value_info("x", kind, one.shape)
    whole = helper.make_graph(graph.node, "m", [value], [onnx.ValueInfoProto(name="y")], protos)
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 18)])
    inferred = onnx.shape_inference.infer_shapes(made, data_prop=True).graph
    known = [*inferred.value_info, *inferred.output, value]
    shapes = {
        each.name: tuple(dim.dim_value for dim in each.type.tensor_type.shape.dim) for each in known
    }
    shapes |= {name: np.shape(value) for name, value in constants.items()}
    emitter = Emitter(TOKENS, [*shapes, "y"])
    rules = Rules(emitter, Slots(TOKENS, 99, "x"), shapes, constants)
    rules.given("x", one.shape)
    for node in graph.node:
        rules.add(node)
    spread = rules.of("y")
    found = emitter.front(spread)
    nodes = [*emitter.nodes, helper.make_node("Identity", [found.name], ["found"])]
    for node in nodes:
        for names in (node.input, node.output):
            names[:] = [{"y": "inner", "found": "y"}.get(name, name) for name in names]
    alone = session(graph.node, protos, one)
    wanted = [alone.run(None, {"x": x[n : n + 1]})[0] for n in range(TOKENS)]
    (block,) = session(nodes, [*protos, *emitter.constants], x).run(None, {"x": x})
    assert block.shape == (TOKENS, *wanted[0].shape)
    np.testing.assert_allclose(
        block.reshape(TOKENS, -1), np.reshape(wanted, (TOKENS, -1)), atol=1e-5
    )
    return spread.place


@pytest.mark.parametrize("front", FRONTS)
def test_an_operator_of_a_token_wherever_it_is(front: str) -> None:
    nodes, name, shape = FRONTS[front]
    x = np.random.default_rng(5).standard_normal((TOKENS, *shape[1:])).astype(np.float32)
    for each in UNARY:
        check(nodes + each.format(name), x)


def test_operands_whose_tokens_are_in_different_places() -> None:
    x = np.random.default_rng(6).standard_normal((TOKENS, 2, 4)).astype(np.float32)
    for each in OTHERS:
        check(each, x)


def test_rows_of_a_table_are_taken_by_tokens() -> None:
    assert check("y = Gather (table, x)", np.array([5, 0, 3])) == Place("inside", 0)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("y = Softmax <axis = 1> (x)", "an axis that is not the last"),
        ("y = ReduceSum (x)", "axes that are not given, or left out"),
        ("y = ReduceSum <keepdims = 0> (x, n1)", "axes that are not given, or left out"),
        ("y = Slice (x, n0, n1)", "axes that are not constant"),
        ("t = Squeeze (x, n0) y = Gemm (t, w)", "rows that are not those of tokens"),
        ("t = ReduceSum (x, n1) u = Squeeze (t, n1) y = Gemm <transA = 1> (u, c1x5)", "not those"),
        ("y = QuantizeLinear <axis = 2> (x, c4)", "a scale for each channel of an activation"),
        ("t = MatMul (x, w3) u = ReduceSum (x, nm1) y = Add (t, u)", "not a mask of positions"),
        ("y = MatMul (x, x)", "an operand that differs from token to token"),
        ("t = MatMul (x, w3) y = Add (t, c2x5)", "an operand with rows of its own"),
    ],
)
def test_forms_without_a_rule_are_refused(nodes: str, said: str) -> None:
    with pytest.raises(ModelError, match=rf"\) in blocks of tokens: .*{said}"):
        check(nodes, np.ones((TOKENS, 2, 4), np.float32))


def test_only_the_first_axis_of_a_table_is_taken_by_tokens() -> None:
    turned = "t = Unsqueeze (x, n0) u = Transpose <perm = [1, 0]> (t) y = Gather (table, u)"
    for nodes in ("y = Gather <axis = 1> (table, x)", turned):
        with pytest.raises(ModelError, match="indices of another axis than the first"):
            check(nodes, np.array([1, 0, 2]))
