"""Nodes are read behind those whose results they read."""

import onnx
import pytest
from onnx import helper

from dovetail.compiler.front.onnx.order import in_order


def node(name: str, reads: str, *bodies: onnx.GraphProto) -> onnx.NodeProto:
    """A node that makes the tensor ``name`` of those whose letters are in ``reads``."""
    attributes = {f"body{number}": each for number, each in enumerate(bodies)}
    return helper.make_node("If" if bodies else "Sum", list(reads), [name], name, **attributes)


def body(output: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph(nodes, "g", [], [helper.make_empty_tensor_value_info(output)])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("a:x b:a c:ab", "abc"),
        ("b:a a:x", "ab"),
        ("c:ab b:a a:x", "abc"),
        ("a:b b:a c:x", "abc"),  # a circle stays
        ("a:a b:x", "ab"),
    ],
)
def test_only_nodes_that_read_later_results_are_moved(given: str, wanted: str) -> None:
    nodes = [node(*each.split(":")) for each in given.split()]
    found = in_order(nodes)
    assert "".join(each.name for each in found) == wanted
    assert (found is nodes) == ([each.name for each in nodes] == list(wanted))


def test_bodies_read_too() -> None:
    inner = body("i", node("i", "a"))
    for reader in (
        node("b", "x", inner),
        node("b", "x", body("a")),
        node("b", "x", body("i", node("i", "x", inner))),
    ):
        assert [each.name for each in in_order([reader, node("a", "x")])] == ["a", "b"]
