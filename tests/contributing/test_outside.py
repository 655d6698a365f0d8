"""Boards and operators of other packages, found by their entry points."""

import re
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from dovetail.bitstreams.boards import BOARDS, any_board, find_board
from dovetail.compiler import compile
from dovetail.compiler.__main__ import main
from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.isa.entry_points import ExtensionError
from dovetail.isa.errors import ConfigError
from dovetail.runtime.session import run
from tests.outside import install

BOARD = "from dataclasses import replace\nfrom dovetail.bitstreams.boards import *\n"
SQUARE = """
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
def square(context, node, inputs):
    return (context.emit(Binary(BinaryFunction.MUL), inputs[0], inputs[0]),)
"""


def test_a_board_of_another_package_is_one_of_the_boards(packages: Path) -> None:
    text = BOARD + 'OWN = replace(BOARDS["ulx3s-25f"], name="own-25f")'
    install(packages, "own_board", "dovetail.boards", "own-25f", text, "OWN")
    assert find_board("own-25f").part == BOARDS["ulx3s-25f"].part
    said = CliRunner().invoke(main, ["bitstream", "--help"], terminal_width=300).output
    assert "pynq-z2, own-25f." in said
    with pytest.raises(ConfigError, match=r"no board is called 'other'; there are: .*, own-25f$"):
        any_board("other")
    with pytest.raises(ConfigError, match="pynq-z1 is a Zynq board"):
        find_board("pynq-z1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("OWN = 3", "own_bad:OWN of own_bad is a int; required a Board or a ZynqBoard"),
        (f"{BOARD}OWN = BOARDS['ulx3s-25f']", "is called 'ulx3s-25f'; required the same name"),
        ("import nothing_like_this", "cannot be imported: No module named 'nothing_like_this'"),
        ("", "cannot be imported: module 'own_bad' has no attribute 'OWN'"),
    ],
)
def test_what_is_no_board_is_refused_by_the_packages_name(
    text: str, said: str, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "own_bad", raising=False)
    install(packages, "own_bad", "dovetail.boards", "bad", text, "OWN")
    with pytest.raises(ExtensionError, match=re.escape(said)):
        any_board("bad")


def quantised(square: onnx.NodeProto) -> onnx.ModelProto:
    """A convolution, the square of its result, and another convolution."""
    weights = np.random.default_rng(1).integers(-9, 9, (4, 4, 1, 1)).astype(np.int8)
    constants = {"w": weights, "s": np.float32(0.02), "z": np.int8(0)}
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["weights"])]

    def quantise(name: str, result: str) -> str:
        nodes.append(helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{result}q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{result}q", "s", "z"], [result]))
        return result

    nodes.append(helper.make_node("Conv", [quantise("x", "a"), "weights"], ["b"]))
    quantise("b", "h")
    nodes.append(square)
    nodes.append(helper.make_node("Conv", [quantise("g", "c"), "weights"], ["d"]))
    quantise("d", "y")
    x, y = (helper.make_tensor_value_info(it, TensorProto.FLOAT, [1, 4, 4, 4]) for it in "xy")
    known = [numpy_helper.from_array(np.array(each), name) for name, each in constants.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    graph = helper.make_graph(nodes, "own", [x], [y], known)
    return helper.make_model(graph, opset_imports=opsets)


def test_an_operator_of_another_package_runs_on_the_accelerator(packages: Path) -> None:
    own = quantised(helper.make_node("Square", ["h"], ["g"], "square", domain="own"))
    with pytest.raises(UnsupportedOperatorError, match=r"operator own.Square is not supported"):
        compile(own, "vta:tiny")
    install(packages, "own_square", "dovetail.onnx", "own.Square", SQUARE, "square")
    module = compile(own, "vta:tiny")
    assert {each.where for each in module.placement if each.operator == "Square"} == {"accelerator"}
    usual = quantised(helper.make_node("Mul", ["h", "h"], ["g"], "square"))
    x = np.random.default_rng(2).standard_normal((1, 4, 4, 4)).astype(np.float32)
    wanted = run(compile(usual, "cpu"), x).outputs["y"]
    np.testing.assert_array_equal(run(module, x).outputs["y"], wanted)
    install(packages, "own_other", "dovetail.onnx", "own.Square", SQUARE, "square")
    with pytest.raises(
        ExtensionError, match=r"own_\w+:square of .* and own_\w+:square of .* bring"
    ):
        compile(own, "vta:tiny")


def test_a_converter_is_a_function(packages: Path) -> None:
    install(packages, "own_number", "dovetail.onnx", "own.Square", "square = 3", "square")
    own = quantised(helper.make_node("Square", ["h"], ["g"], "square", domain="own"))
    with pytest.raises(ExtensionError, match="own_number:square of own_number is a int; required"):
        compile(own, "vta:tiny")
