"""Branches that are added become one convolution with the sum's values, where int8 can hold it."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from dovetail.compiler.front.onnx.quantize import QuantizeOptions, quantize_model
from dovetail.compiler.graph.ir import Array

from .floats import onnx_runtime, random, small_model
from .test_simplify import IMAGE, check, simplified, statistics

NORM = ["s", "o", "m", "v"]
SMALL = {"w": random((3, 1, 3, 3), 1), "p": random((3, 1, 1, 1), 2), "b": random((3,), 3)}


def conv(x: str, y: str, weights: str, groups: int = 3, **more: object) -> onnx.NodeProto:
    return helper.make_node("Conv", [x, *weights.split()], [y], group=groups, **more)


def norm(x: str, y: str) -> onnx.NodeProto:
    return helper.make_node("BatchNormalization", [x, *NORM], [y])


def add(a: str, b: str, y: str = "y", kind: str = "Add") -> onnx.NodeProto:
    return helper.make_node(kind, [a, b], [y])


WIDE = conv("x", "c", "w b", pads=[1, 1, 1, 1])
RELU = helper.make_node("Relu", ["c"], ["r"])
BRANCHES = {
    "of MobileOne": [
        norm("x", "i"),
        WIDE,
        conv("x", "d", "p"),
        norm("d", "e"),
        add("e", "c", "a"),
        add("a", "i"),
    ],
    "of FastViT": [
        norm("x", "i"),
        WIDE,
        add("c", "i", "a", "Sub"),
        helper.make_node("Mul", ["k", "a"], ["n"]),
        add("x", "n"),
    ],
    "normalised together": [WIDE, add("c", "x", "a"), norm("a", "y")],
    "the same twice": [WIDE, add("c", "c")],
    "one behind another": [WIDE, conv("c", "d", "p"), add("c", "d")],
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_become_one_convolution(name: str) -> None:
    constants = SMALL | statistics(3) | {"k": random((3, 1, 1), 4)}
    check(BRANCHES[name], IMAGE, constants, ["Conv"])


@pytest.mark.parametrize(
    ("nodes", "kinds"),
    [
        ([WIDE, conv("x", "d", "q", 1), add("c", "d")], ["Conv", "Conv", "Add"]),
        ([WIDE, RELU, conv("r", "d", "p"), add("c", "d")], ["Conv", "Relu", "Conv", "Add"]),
        ([conv("x", "c", "w", auto_pad="SAME_UPPER"), add("c", "x")], ["Conv", "Add"]),
        ([WIDE, RELU, add("x", "c", "a"), add("a", "r")], ["Conv", "Relu", "Add", "Add"]),
        (
            [WIDE, add("c", "x", "a"), helper.make_node("Relu", ["a"], ["r"]), add("a", "r")],
            ["Conv", "Relu", "Add"],
        ),
        (
            [
                conv("x", "c", "large", pads=[1, 1, 1, 1]),
                conv("x", "d", "w", pads=[1, 1, 1, 1], strides=[2, 2]),
                add("c", "d"),
            ],
            ["Conv", "Conv", "Add"],
        ),
    ],
    ids=["no room", "of another tensor", "unknown pads", "two readers", "read inside", "steps"],
)
def test_other_sums_stay(nodes: Sequence[onnx.NodeProto], kinds: list[str]) -> None:
    constants = {"q": random((3, 3, 1, 1), 5), "large": random((3, 1, 6, 6), 6)}
    check(nodes, IMAGE, SMALL | constants, kinds)


def test_a_tensor_is_not_merged_with_weights_that_int8_would_lose() -> None:
    """576 weights a channel, each less than 1 / 127 of the tensor's own.  Convolutions that int8
    holds no better than their sum are merged.
    """
    x, weights = random((1, 64, 4, 4)), random((64, 64, 3, 3), 1)
    nodes = [conv("x", "c", "w", 1, pads=[1, 1, 1, 1]), add("c", "x")]
    check(nodes, x, {"w": weights / 500}, ["Conv", "Add"])
    check(nodes, x, {"w": weights}, ["Conv"])
    weights[range(64), range(64), 1, 1] = 500
    nodes = [conv("x", each, "w", 1, pads=[1, 1, 1, 1]) for each in "cd"]
    check([*nodes, add("c", "d")], x, {"w": weights / 500}, ["Conv"])


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (QuantizeOptions(), 1),
        (QuantizeOptions(per_channel=False), 2),
        (QuantizeOptions(weight_bits=4), 2),
    ],
    ids=["int8", "one scale a layer", "4 bits"],
)
def test_coarse_weights_keep_their_branches(options: QuantizeOptions, count: int) -> None:
    model = small_model([WIDE, conv("x", "d", "p"), add("c", "d")], IMAGE.shape, SMALL)
    assert quantize_model(model, [{"x": IMAGE}], options).integer["Conv"] == count


@st.composite
def sums(draw: st.DrawFn) -> tuple[list[onnx.NodeProto], dict[str, Array], Array]:
    """Sums and differences of convolutions of one image, in any order."""
    channels, step = draw(st.sampled_from([(4, 1), (4, 2), (6, 1)]))
    nodes, constants = [], {}
    terms = ["x"] if step == 1 and draw(st.booleans()) else []
    for number in range(draw(st.integers(2, 4))):
        groups = draw(st.sampled_from([1, 2, channels]))
        size = [draw(st.sampled_from([1, 3, 5])) for _ in range(2)]
        gap = draw(st.integers(1, 2))
        pads = [each // 2 * gap for each in size] * 2
        constants[f"w{number}"] = random((channels, channels // groups, *size), number)
        constants[f"b{number}"] = random((channels,), 9 + number)
        more = {"pads": pads, "strides": [step] * 2, "dilations": [gap] * 2}
        nodes.append(conv("x", f"c{number}", f"w{number} b{number}", groups, **more))
        terms.append(f"c{number}")
    while len(terms) > 1:
        terms = draw(st.permutations(terms))
        first, second, *rest = terms
        result = f"t{len(nodes)}" if rest else "y"
        nodes.append(add(first, second, result, draw(st.sampled_from(["Add", "Sub"]))))
        terms = [*rest, result]
    return nodes, constants, random((1, channels, 7, 8))


@settings(max_examples=30, deadline=None)
@given(sums())
def test_sums_of_any_branches_keep_their_values(
    drawn: tuple[list[onnx.NodeProto], dict[str, Array], Array],
) -> None:
    nodes, constants, x = drawn
    model = small_model(nodes, x.shape, constants)
    simple, found = simplified(model, x)
    np.testing.assert_allclose(found, onnx_runtime(model, x)[0], rtol=1e-3, atol=1e-4)
    assert len(simple.nodes) <= len(nodes)
