"""Models that no exporter writes: names, opsets, numbers that quantisation has no meaning for."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.front.onnx.model import import_model
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.front.onnx.wellformed import LARGEST_OPSET, NEWEST, require_wellformed
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.runtime import run

HEAD = '<ir_version: 9, opset_import: ["": 18, "com.microsoft": 1]> m '
TARGETS = ("cpu", "vta:tiny")


def _model(body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{HEAD} (float[2] x) => (float[2] y) {{ {body} }}")


def _convolution(**values: object) -> onnx.ModelProto:
    """A convolution in QDQ form; ``values`` take the place of constants."""
    model = onnx.parser.parse_model(
        f"{HEAD} (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] y) <float sx = {{0.1}}, "
        "uint8 zx = {3}, int8[1, 1, 1, 1] w = {2}, float sw = {0.1}, int8 zw = {0}, "
        "float[1] b = {0.05}, float so = {0.1}, uint8 zo = {7}> { "
        "a = QuantizeLinear (x, sx, zx) d = DequantizeLinear (a, sx, zx) "
        "e = DequantizeLinear (w, sw, zw) c = Conv (d, e, b) g = QuantizeLinear (c, so, zo) "
        "y = DequantizeLinear (g, so, zo) }"
    )
    for tensor in model.graph.initializer:
        if tensor.name in values:
            kind = numpy_helper.to_array(tensor).dtype
            tensor.CopyFrom(
                numpy_helper.from_array(np.asarray(values[tensor.name], kind), tensor.name)
            )
    return model


def _refused(model: onnx.ModelProto, said: str) -> None:
    for target in TARGETS:
        with pytest.raises(ModelError, match=said):
            compile(model, target)


@pytest.mark.parametrize(
    "body",
    [
        "a = Abs (x) a = Neg (x) y = Add (a, x)",
        "x = Abs (x) y = Neg (x)",
        "a, a = Split <num_outputs = 2> (x) y = Neg (a)",
        "k = Constant <value = int64 {2}> () t = Constant <value = bool {1}> () y = Loop (k, t, x) "
        "<body = b (int64 i, bool g, float[2] s) => (bool h, float[2] r) "
        "{ r = Abs (s) r = Neg (s) h = Identity (g) }>",
    ],
)
def test_a_name_that_is_defined_twice_is_refused(body: str) -> None:
    _refused(_model(body), "defines '[arx]' twice")


@pytest.mark.parametrize("opset", [1 << 62, 0, -1, -(1 << 63), 99])
def test_an_opset_that_there_is_not_is_refused(opset: int) -> None:
    model = _model("y = Abs (x)")
    model.opset_import[0].version = opset
    _refused(model, rf"the model is of opset {opset} of ai.onnx; required 1 to \d+")


@pytest.mark.parametrize(("domain", "most"), [("", NEWEST), ("own", LARGEST_OPSET)])
def test_the_newest_opset_is_taken_and_none_behind_it(domain: str, most: int) -> None:
    model = _model("y = Abs (x)")
    model.opset_import.add(domain="own", version=1)
    (entry,) = (each for each in model.opset_import if each.domain == domain)
    entry.version = most
    require_wellformed(model)
    entry.version = most + 1
    said = f"opset {most + 1} of {domain or 'ai.onnx'}; required 1 to {most};"
    _refused(model, f"the model is of {said}")


def test_functions_are_looked_at_too() -> None:
    text = HEAD.replace('"com.microsoft"', '"l"') + "(float[2] x) => (float[2] y) { y = l.f (x) }"
    text += ' <domain: "l", opset_import: ["": 18]> f (a) => (b) { b = Abs (a) }'
    model = onnx.parser.parse_model(text)
    require_wellformed(model)
    model.functions[0].opset_import[0].version = 99
    _refused(model, "function 'f' is of opset 99 of ai.onnx")
    model.functions[0].opset_import[0].version = 18
    model.functions[0].node[0].output[0] = "a"
    _refused(model, "function 'f' defines 'a' twice")


def test_a_function_that_calls_itself_is_refused() -> None:
    text = HEAD.replace('"com.microsoft"', '"l"') + "(float[2] x) => (float[2] y) { y = l.f (x) }"
    text += ' <domain: "l", opset_import: ["l": 1]> f (a) => (b) { b = l.f (a) }'
    _refused(onnx.parser.parse_model(text), "node '[^']+': 'f' calls itself")


def test_nodes_in_another_order_are_read() -> None:
    """ONNX Runtime takes such files, which some quantisers write."""
    model = _model("a = Abs (x) b = Neg (a) y = Exp (b)")
    for order in ([2, 0, 1], [2, 1, 0], [1, 2, 0]):
        nodes = [model.graph.node[place] for place in order]
        moved = onnx.ModelProto()
        moved.CopyFrom(model)
        del moved.graph.node[:]
        moved.graph.node.extend(nodes)
        graph = SourceModel(moved).to_graph(1).graph
        assert [node.origin for node in graph.nodes] == [n.output[0] for n in model.graph.node]
    del moved.graph.node[:]
    moved.graph.node.extend(
        onnx.parser.parse_graph(
            "g (float[2] x) => (float[2] y) { a = Add (x, b) b = Neg (a) y = Exp (b) }"
        ).node
    )
    _refused(moved, "reads 'b', which no node before it computes")


def test_two_opsets_of_one_domain_are_refused() -> None:
    model = _model("y = Abs (x)")
    model.opset_import.add(version=11)
    _refused(model, "two opsets of ai.onnx, 18 and 11")


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\n", "\x00"])
def test_a_name_with_control_characters_is_refused(name: str) -> None:
    model = _model("a = Abs (x) y = Neg (a)")
    model.graph.node[0].output[0] = model.graph.node[1].input[0] = name
    _refused(model, "has control characters")
    model = _model("y = Abs (x)")
    model.graph.node[0].name = name
    _refused(model, "has control characters")


@pytest.mark.parametrize("name", ["sx", "sw", "so", "b"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_quantisation_by_what_is_no_number_is_refused(name: str, value: float) -> None:
    found = _convolution(**{name: [value] if name == "b" else value})
    _refused(found, r"(has a value|its bias has a value) -?(nan|inf); required finite")


def test_weights_that_are_no_numbers_are_not_quantised() -> None:
    model = _model(
        "w = Constant <value = float[2] {1, 2}> () s = Constant <value = float {0.1}> () "
        "z = Constant <value = int8 {0}> () q = QuantizeLinear (w, s, z) "
        "d = DequantizeLinear (q, s, z) y = Mul (x, d)"
    )
    values = np.array([1, np.nan], np.float32)
    model.graph.node[0].attribute[0].t.CopyFrom(numpy_helper.from_array(values))
    _refused(model, r"node 'q' \(QuantizeLinear\): input 0, 'w', has a value nan")


@pytest.mark.parametrize("bias", [3e7, 1e30, -1e30])
def test_a_bias_beyond_int32_hides_the_products(bias: float) -> None:
    model = _convolution(b=[bias])
    for target in ("cpu", "vta:tiny"):
        y = run(compile(model, target), np.zeros((1, 1, 2, 2), np.float32)).outputs["y"]
        assert np.all(y == np.float32(0.1) * (255 - 7 if bias > 0 else -7))


@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_list_of_zero_points_where_one_is_meant_is_refused(place: int) -> None:
    model = onnx.parser.parse_model(
        f"{HEAD} (uint8[2, 2] a, uint8[2, 2] b) => (uint8[2, 2] y) <float s = {{0.1}}, "
        "uint8 z = {3}, float[2] ss = {0.1, 0.1}, uint8[2] zz = {3, 4}> "
        "{ y = com.microsoft.QLinearAdd (a, s, z, b, s, z, s, z) }"
    )
    node = model.graph.node[0]
    first = place + 1 if place < 6 else place
    node.input[first], node.input[first + 1] = "ss", "zz"
    _refused(model, r"shape \[2\]; required one number")


def test_an_input_that_is_not_given_is_named() -> None:
    with pytest.raises(ModelError, match=r"input 'x' is not given; required are \['x'\]"):
        import_model(_model("y = Relu (x)"), {}, GraphBuilder())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(seq(float[2]) s) => (int64 y) { y = SequenceLength (s) }", "input 's' is not a tensor"),
        ("(float[2] x) => (seq(float[2]) y) { y = SequenceConstruct (x) }", "output 'y' is not"),
        (
            "(float[2] x) => (float[2] y) { k = Constant <value = int64 {2}> () y = Loop (k, , x) "
            "<body = b (int64 i, bool g) => (bool h, float[2] r) "
            "{ r = Abs (x) h = Identity (g) }> }",
            "node 'y': its body has 2 inputs; it is given 3",
        ),
        (
            "(float[2] x) => (float[2] y) { o = Optional <type = float[2]> () "
            "y = OptionalGetElement (o) }",
            "node 'y'.*: the optional is empty",
        ),
    ],
)
def test_what_is_no_tensor_is_said(text: str, said: str) -> None:
    with pytest.raises((ModelError, UnsupportedOperatorError), match=said):
        SourceModel(onnx.parser.parse_model(HEAD + text)).to_graph()


def test_a_file_without_nodes_is_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").write_bytes(onnx.ModelProto().SerializeToString())
    with pytest.raises(ModelError, match=r"empty\.onnx is not an ONNX model.*, or it has no nodes"):
        SourceModel.load(tmp_path / "empty.onnx")
