"""Where the accelerator's target puts the layers of a model, and what it says of each."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dovetail.compiler import compile
from dovetail.compiler.errors import ModelError, TargetError, UnsupportedOperatorError
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.front.source import Imported
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.norm import RowNorm
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.partition import Plan
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.targets.vta.target import DEFAULT_CONFIG, Vta, find_vta, require_whole
from dovetail.isa.configs import find_config

from ....end_to_end.models import Network
from ....end_to_end.test_attention import F32, WIDTH, Rows
from ...graph.passes.integer_layers.models import integer_graph

ZERO = np.int8(3)


def product_of_inputs(rows: int, *, layer: bool) -> Graph:
    """Rows of an input by those of another; layer: and the result by weights."""
    net = Rows(rows)
    x, k = (net.dequantize(name, F32(0.02), ZERO) for name in ("x", "k"))
    y = net.node("MatMul", [x, net.node("Transpose", [k], perm=[0, 2, 1])])
    if layer:
        y = net.linear(net.again(y, 0.2), rows, WIDTH)
    inputs = dict.fromkeys(("x", "k"), ("int8", (1, rows, WIDTH)))
    return integer_graph(net.build(inputs, net.quantize(y, F32(0.2), ZERO)))


def planned(graph: Graph) -> Plan:
    return find_vta("tiny").plan(Imported(graph, {}))


def test_what_only_a_whole_part_shows_moves_its_node_and_no_other_to_the_cpu() -> None:
    assert [piece.own for piece in planned(product_of_inputs(8, layer=True)).pieces] == [True]
    plan = planned(product_of_inputs(9, layer=True))
    assert [piece.own for piece in plan.pieces] == [False, True]
    refused, *others = [each for each in plan.placements if each.operator != "Quantize"]
    assert refused.where == "cpu"
    assert refused.reason.startswith("multiplies by 9 rows of 'k', which the host makes")
    layer = [each.where for each in others if each.node.startswith("matmul")]
    assert layer == ["accelerator"]


def test_the_cpu_moves_pixels_of_rows_that_are_too_long_to_be_normalised() -> None:
    """A layer for each pixel would pick its channels from a row of all pixels."""
    builder, size, rng = GraphBuilder(), 4 * 4 * 8, np.random.default_rng(1)
    weights = builder.constant("weights", rng.integers(-9, 9, (8, 1, 1, 8)).astype(np.int8))
    bias = builder.constant("bias", np.zeros(8, np.int32))
    scale = builder.constant("scale", np.full(8, 0.01, np.float32))

    def layer(x: str, name: str) -> str:
        sums = builder.node(Conv2d((1, 1), (0, 0, 0, 0), 1, 0), (x, weights, bias), name, name)
        return builder.node(Requantize(0, -128, 127), (sums, scale), name, name)

    x = layer(builder.input("x", TensorType((1, 4, 4, 8), "int8")), "before")
    x = builder.node(Transpose((0, 3, 1, 2)), (x,), "planes", "norm")
    row = builder.node(Reshape((1, 1, 1, size)), (x,), "row", "norm")
    moved = builder.constant("moved", rng.integers(-99, 99, size).astype(np.int32))
    scaled = builder.constant("scaled", rng.uniform(1e-5, 1e-4, size).astype(np.float32))
    row = builder.node(RowNorm(4321, 11), (row, moved, scaled), "normalised", "norm")
    x = builder.node(Reshape((1, 8, 4, 4)), (row,), "image", "norm")
    x = builder.node(Transpose((0, 2, 3, 1)), (x,), "pixels", "norm")
    plan = planned(builder.build((layer(x, "after"),)))
    assert [piece.own for piece in plan.pieces] == [True, False, True]
    own = [piece.graph.nodes for piece in plan.pieces if piece.own]
    products = [sum(isinstance(node.operator, Conv2d) for node in nodes) for nodes in own]
    assert products == [1, 1]


def test_a_model_of_which_nothing_runs_is_refused_with_the_first_reason() -> None:
    with pytest.raises(UnsupportedOperatorError, match="multiplies by 9 rows of 'k'"):
        planned(product_of_inputs(9, layer=False))


def test_what_a_configuration_lacks_is_known_of_whole_models_too() -> None:
    net, tiny = Network(np.random.default_rng(1)), find_config("tiny")
    layers = integer_graph(net.model(net.conv(net.input(8, 4, 4), 4, kernel=(3, 3))))
    require_whole(layers, tiny)
    with pytest.raises(UnsupportedOperatorError, match="wgt scratchpad: 9 words required"):
        require_whole(layers, replace(tiny, wgt_depth=8))


def test_what_follows_a_node_that_runs_elsewhere_is_not_blamed() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> agraph (int8[1, 8] x) => (y, w)
        <float s = {0.5}, int8 z = {7}, int64 one = {1}, int64[1] axes = {1}> {
            f = DequantizeLinear (x, s, z)
            g = Sigmoid (f)
            b = QuantizeLinear (g, s, z)
            d = DequantizeLinear (b, s, z)
            n = Neg (d)
            c = CumSum (n, one)
            y = QuantizeLinear (c, s, z)
            e = DequantizeLinear (b, s, z)
            t = ReduceSum <keepdims = 0> (e, axes)
            w = QuantizeLinear (t, s, z)
        }"""
    )
    plan = find_vta("tiny").plan(find_vta("tiny").load(SourceModel(model), {}))
    names = [each.output[0] for each in model.graph.node]
    found = {
        name: each.reason
        for name, each in zip(names, plan.placements, strict=True)
        if each.where == "cpu"
    }
    sums, total = plan.placements[5].node, plan.placements[8].node
    assert found == {
        "d": f"it converts bytes for node {plan.placements[4].node!r}, which runs on the CPU",
        "n": f"its float32 result goes to node {sums!r}: the accelerator has no CumSum",
        "c": "the accelerator has no CumSum",
        "y": f"it reads the float32 result of node {sums!r}",
        "e": f"it converts bytes for node {total!r}, which runs on the CPU",
        "t": "sums over axes [1] of 2; required the height and width of an image, or its channels "
        "with keepdims",
        "w": f"it reads the float32 result of node {total!r}",
    }


def test_a_target_is_found_by_its_configurations_name() -> None:
    assert find_vta("").config.name == DEFAULT_CONFIG
    assert find_vta("tiny").name == "vta:tiny"
    own = find_config("ecp5_25")
    assert find_vta(own) == Vta(own)
    with pytest.raises(TargetError, match="target 'vta:tinny': no configuration is called 'tinny'"):
        find_vta("tinny")


def test_sizes_that_are_given_leave_none_open() -> None:
    net = Network(np.random.default_rng(1))
    proto = net.model(net.conv(net.input(3, 4, 4), 4))
    for dim, name in zip(proto.graph.input[0].type.tensor_type.shape.dim, "BCHW", strict=True):
        dim.dim_param = name if name != "H" else "rows, and more"
    said = r"shape \[1, C, rows, and more, 4\]; .* \(--dim C=SIZE --dim 'rows, and more'=SIZE"
    with pytest.raises(ModelError, match=said):
        find_vta("tiny").load(SourceModel(proto), {"W": 4})
    found = find_vta("tiny").load(SourceModel(proto), {"C": 3, "rows, and more": 4, "W": 4})
    assert [found.graph.types[name].shape for name in found.graph.inputs] == [(1, 3, 4, 4)]


def test_a_model_with_data_in_its_first_shape_is_for_cpus() -> None:
    """The condition is an input: it is none of the outputs of what can be imported."""
    bodies = {}
    for branch, axes in (("then_branch", [0]), ("else_branch", [0, 1])):
        y = helper.make_tensor_value_info(branch, TensorProto.FLOAT, None)
        node = helper.make_node("ReduceMax", ["x"], [branch], axes=axes, keepdims=0)
        bodies[branch] = helper.make_graph([node], branch, [], [y])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], **bodies)], "if", [x, c], [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(ModelError, match=r"value of .c., which .* and nothing runs before it; co"):
        find_vta("tiny").load(SourceModel(proto), {})


def test_open_sizes_are_refused() -> None:
    class Never:
        def __getattr__(self, name: str) -> None:
            raise AssertionError(name)

    with pytest.raises(ModelError, match="fixed sizes only"):
        find_vta("tiny").compile_open(Never(), {}, CompileOptions())  # type: ignore[arg-type]


def test_a_model_of_16_bits_is_refused_with_what_to_try() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> agraph (float[1, 4] x) => (y)
        <float s = {0.5}, uint16 z = {7}> {
            q = QuantizeLinear (x, s, z)
            y = DequantizeLinear (q, s, z)
        }"""
    )
    told = "quantises to uint16; required int8 or uint8; no node of the .*; compile it for cpu"
    with pytest.raises(UnsupportedOperatorError, match=told):
        compile(model, "vta:tiny")
