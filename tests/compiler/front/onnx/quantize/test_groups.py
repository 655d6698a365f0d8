"""Groups of channels, rows and softmaxes are written as images and rows, with the same results."""

import numpy as np
import onnx
import pytest
from onnx import helper

from dovetail.compiler.front.onnx.quantize.groups import (
    FlattenGroups,
    LastSoftmax,
    MergeReshapes,
    RowsToImages,
)
from dovetail.compiler.front.onnx.quantize.model import FloatModel, read_model
from dovetail.compiler.graph.ir import Array

from .floats import onnx_runtime, random, small_model

GROUPS, ROWS = random((1, 2, 3, 4, 5), 1), random((2, 6, 9), 2)
PASSES = FlattenGroups, RowsToImages, MergeReshapes, LastSoftmax
AXES = {"one": np.array([1]), "two": np.array([2])}
node = helper.make_node
Nodes = list[onnx.NodeProto]


def rewritten(model: onnx.ModelProto, x: Array) -> FloatModel:
    found = read_model(model)
    names = [name for each in model.graph.node for name in each.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names))
    shapes = {"x": x.shape, **{name: each.shape for name, each in found.constants.items()}}
    shapes |= {
        n: y.shape for n, y in zip(dict.fromkeys(names), onnx_runtime(model, x), strict=True)
    }
    for each in PASSES:
        found = each(shapes).run(found)
        shapes |= {name: each.shape for name, each in found.constants.items()}
    return found


def again(model: FloatModel, x: Array) -> Array:
    """Its result by ONNX Runtime."""
    nodes = [
        node(each.kind, each.inputs, each.outputs, each.name, **each.attributes)
        for each in model.nodes
    ]
    return onnx_runtime(small_model(nodes, x.shape, dict(model.constants)), x)[0]


@pytest.mark.parametrize(
    ("nodes", "x", "kinds"),
    [
        (
            [node("Relu", ["x"], ["r"]), node("Sub", ["x", "r"], ["y"])],
            *(GROUPS, ["Relu", "Reshape", "Reshape", "Sub", "Reshape"]),
        ),
        (
            [node("Slice", ["x", "one", "two", "one"], ["r"]), node("Mul", ["x", "r"], ["y"])],
            *(GROUPS, ["Slice", "Mul"]),
        ),
        ([node("Mul", ["x", "x"], ["y"])], GROUPS, ["Reshape", "Mul", "Reshape"]),
        ([node("Add", ["x", "k"], ["y"])], GROUPS, ["Add"]),
        ([node("Concat", ["x", "x"], ["y"], axis=1)], GROUPS, ["Reshape", "Concat", "Reshape"]),
        ([node("Concat", ["x", "x"], ["y"], axis=2)], GROUPS, ["Concat"]),
        ([node("ReduceSum", ["x", "one"], ["y"], keepdims=0)], GROUPS, ["Reshape", "Conv"]),
        ([node("ReduceSum", ["x", "one"], ["y"])], GROUPS, ["ReduceSum"]),
        ([node("ReduceSum", ["x", "two"], ["y"], keepdims=0)], GROUPS, ["ReduceSum"]),
        ([node("ReduceSum", ["x"], ["y"], keepdims=0)], GROUPS, ["ReduceSum"]),
        ([node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)], GROUPS, ["ReduceMean"]),
        (
            [node("Conv", ["x", "w"], ["y"], pads=[1, 2], strides=[2], dilations=[2], group=3)],
            *(ROWS, ["Reshape", "Conv", "Reshape"]),
        ),
        ([node("Conv", ["x", "v", "b"], ["y"])], ROWS, ["Reshape", "Conv", "Reshape"]),
        ([node("Conv", ["x", "v"], ["y"], auto_pad="SAME_UPPER")], ROWS, ["Conv"]),
        ([node("Softmax", ["x"], ["y"], axis=1)], ROWS, ["Transpose", "Softmax", "Transpose"]),
        ([node("Softmax", ["x"], ["y"], axis=-3)], ROWS, ["Transpose", "Softmax", "Transpose"]),
        ([node("Softmax", ["x"], ["y"], axis=2)], ROWS, ["Softmax"]),
        ([node("Softmax", ["x"], ["y"])], ROWS, ["Softmax"]),
        (
            [node("Flatten", ["x"], ["f"]), node("Reshape", ["f", "s"], ["y"])],
            *(ROWS, ["Flatten", "Reshape"]),
        ),
        (
            [node("Unsqueeze", ["x", "one"], ["f"]), node("Reshape", ["f", "own"], ["y"])],
            *(ROWS, ["Unsqueeze", "Identity"]),
        ),
        (
            [node("Relu", ["x"], ["f"]), node("Reshape", ["f", "s"], ["y"])],
            *(ROWS, ["Relu", "Reshape"]),
        ),
        (
            [node("Flatten", ["x"], ["f"]), node("Reshape", ["f", "open"], ["y"])],
            *(ROWS, ["Flatten", "Reshape"]),
        ),
    ],
)
def test_results_stay_and_nodes_have_another_form(nodes: Nodes, x: Array, kinds: list[str]) -> None:
    constants = {
        "w": random((6, 2, 3), 3), "v": random((4, 6, 2), 4), "b": random((4,), 5),
        "k": random((1, 2, 3, 4, 5), 6), "s": np.array([3, 36]), "open": np.array([3, -1]),
        "own": np.array(ROWS.shape), **AXES,
    }  # fmt: skip
    used = {name for each in nodes for name in each.input}
    model = small_model(nodes, x.shape, {n: c for n, c in constants.items() if n in used})
    expected = onnx_runtime(model, x)[0]
    found = rewritten(model, x)
    assert [each.kind for each in found.nodes] == kinds
    np.testing.assert_allclose(again(found, x), expected, rtol=1e-4, atol=1e-5)
    if kinds == ["Flatten", "Reshape"] and "s" in used:
        assert found.nodes[1].inputs[0] == "x"
