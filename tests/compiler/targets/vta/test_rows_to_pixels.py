"""Rows become pixels: what each graph turns into, and that its bytes stay."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.norm import RowNorm
from dovetail.compiler.graph.operators.integer.products import Conv2d, Dense
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Multiply, Requantize
from dovetail.compiler.graph.operators.movement import (
    Concatenate,
    Reshape,
    Slice,
    Transpose,
)
from dovetail.compiler.graph.passes.eliminate_dead import EliminateDead
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.rows_to_pixels import ROWS_TO_PIXELS

SUM = Add(0.5, 0.25, 3, -7, 1, -128, 127)


class Rows(GraphBuilder):
    """Builds graphs of int8 tensors."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        super().__init__([], [], {}, {})
        self.rng = np.random.default_rng(3)
        self.given = [
            self.input(f"x{n}", TensorType(shape, DType.INT8)) for n, shape in enumerate(shapes)
        ]

    def put(self, operator: object, *names: str) -> str:
        """A node's result."""
        return self.node(operator, names, "n", "node of the model")  # type: ignore[arg-type]

    def reshape(self, x: str, *shape: int) -> str:
        """The same elements in another shape."""
        return self.put(Reshape(shape), x)

    def dense(self, x: str, out: int = 5) -> str:
        """A dense layer of random weights, requantised."""
        depth = self.types[x].shape[-1]
        weights = self.constant("w", self.rng.integers(-128, 128, (out, depth)).astype(np.int8))
        bias = self.constant("b", self.rng.integers(-99, 99, out).astype(np.int32))
        return self.requantized(self.put(Dense(3, -2), x, weights, bias))

    def requantized(self, sums: str) -> str:
        """Bytes of sums."""
        scales = self.rng.uniform(0.001, 0.01, self.types[sums].shape[-1]).astype(np.float32)
        return self.put(Requantize(4, -128, 120), sums, self.constant("s", scales))

    def table(self, x: str) -> str:
        """A function of each byte."""
        values = self.rng.integers(-128, 128, 256).astype(np.int8)
        return self.put(Lookup(), x, self.constant("t", values))

    def norm(self, x: str) -> str:
        """Rows less their mean, over their deviation."""
        channels = self.types[x].shape[-1]
        bias = self.constant("b", self.rng.integers(-99, 99, channels).astype(np.int32))
        scales = self.constant("s", np.full(channels, 0.0001, np.float32))
        return self.put(RowNorm(1, 100.0), x, bias, scales)


def kinds(builder: Rows, *outputs: str) -> list[str]:
    """Operators, with what they give, that the pass makes of a graph, whose bytes stay."""
    graph = builder.build(outputs)
    found = EliminateDead().run(ROWS_TO_PIXELS.run(graph))
    rng = np.random.default_rng(5)
    values = {
        name: rng.integers(-128, 128, graph.types[name].shape).astype(np.int8)
        for name in builder.given
    }
    for name in outputs:
        wanted = interpret(graph, values)[name]
        np.testing.assert_array_equal(interpret(found, values)[name], wanted)
    assert {node.origin for node in found.nodes} == {"node of the model"}
    return [f"{type(n.operator).__name__}{list(found.types[n.output].shape)}" for n in found.nodes]


def test_rows_of_a_product_are_pixels_of_a_convolution() -> None:
    b = Rows((2, 3, 4))
    assert kinds(b, b.dense(b.given[0])) == [
        *("Reshape[1, 1, 6, 4]", "Conv2d[1, 1, 6, 5]", "Requantize[1, 1, 6, 5]"),
        "Reshape[2, 3, 5]",
    ]


def test_a_product_of_an_image_keeps_its_shape() -> None:
    b = Rows((1, 2, 3, 4))
    assert kinds(b, b.dense(b.given[0])) == ["Conv2d[1, 2, 3, 5]", "Requantize[1, 2, 3, 5]"]
    b = Rows((1, 2, 3, 4))
    assert kinds(b, b.dense(b.reshape(b.given[0], 1, 6, 4))) == [
        *("Conv2d[1, 2, 3, 5]", "Requantize[1, 2, 3, 5]", "Reshape[1, 6, 5]")
    ]


def test_a_product_of_one_row_stays() -> None:
    b = Rows((1, 4))
    assert kinds(b, b.dense(b.given[0])) == ["Dense[1, 5]", "Requantize[1, 5]"]


def test_a_reshape_that_mixes_channels_stays_before() -> None:
    b = Rows((1, 2, 3, 4))
    assert kinds(b, b.dense(b.reshape(b.given[0], 1, 3, 8)))[:2] == [
        *("Reshape[1, 3, 8]", "Reshape[1, 1, 3, 8]")
    ]


def test_two_reshapes_are_one_or_none() -> None:
    b = Rows((1, 2, 3, 4))
    rows = b.reshape(b.table(b.given[0]), 1, 6, 4)
    assert kinds(b, b.reshape(rows, 6, 4)) == ["Lookup[1, 2, 3, 4]", "Reshape[6, 4]"]
    b = Rows((1, 2, 3, 4))
    rows = b.reshape(b.table(b.given[0]), 1, 6, 4)
    assert kinds(b, b.table(b.reshape(rows, 1, 2, 3, 4))) == ["Lookup[1, 2, 3, 4]"] * 2


@pytest.mark.parametrize(
    ("strides", "pads", "kernel", "made"),
    [
        ((1, 1), 0, 1, ["Conv2d[1, 2, 3, 5]", "Reshape[1, 1, 6, 5]"]),
        ((1, 2), 0, 1, ["Reshape[1, 1, 6, 4]", "Conv2d[1, 1, 3, 5]"]),
        ((1, 1), 1, 1, ["Reshape[1, 1, 6, 4]", "Conv2d[1, 3, 8, 5]"]),
        ((1, 1), 0, 2, ["Reshape[1, 1, 6, 4]", "Conv2d[1, 1, 5, 5]"]),
    ],
)
def test_a_convolution_of_single_pixels_takes_them_in_any_order(
    strides: tuple[int, int], pads: int, kernel: int, made: list[str]
) -> None:
    b = Rows((1, 2, 3, 4))
    weights = b.constant("w", b.rng.integers(-128, 128, (5, 1, kernel, 4)).astype(np.int8))
    bias = b.constant("b", b.rng.integers(-99, 99, 5).astype(np.int32))
    conv = Conv2d(strides, (pads,) * 4, 1, 3, -2)
    assert kinds(b, b.put(conv, b.reshape(b.given[0], 1, 1, 6, 4), weights, bias)) == made


def test_sums_of_rows_are_sums_of_images() -> None:
    b = Rows((1, 2, 3, 4), (1, 6, 4))
    rows = b.reshape(b.given[0], 1, 6, 4)
    assert kinds(b, b.put(SUM, b.given[1], rows)) == [
        *("Reshape[1, 2, 3, 4]", "Add[1, 2, 3, 4]", "Reshape[1, 6, 4]")
    ]
    b = Rows((1, 2, 3, 4), (1, 2, 3, 4))
    assert kinds(b, b.put(SUM, *(b.reshape(each, 1, 6, 4) for each in b.given))) == [
        *("Add[1, 2, 3, 4]", "Reshape[1, 6, 4]")
    ]


@pytest.mark.parametrize(("part", "alike"), [((1, 1, 4), []), ((1, 6, 1), ["Gather[1, 1, 6, 4]"])])
def test_rows_times_one_row_or_one_channel_are_images(
    part: tuple[int, ...], alike: list[str]
) -> None:
    b = Rows((1, 6, 4), part)
    found = kinds(b, b.put(Multiply(0.01, 3, -2, 1, -128, 127), *b.given))
    shapes = [f"Reshape{[1, *shape]}" for shape in ((1, 6, 4), part)]
    assert found == [*shapes, *alike, "Multiply[1, 1, 6, 4]", "Reshape[1, 6, 4]"]
    one = Rows((1, 6, 4), (1, 6, 4))
    same = kinds(one, one.put(Multiply(0.01, 3, -2, 1, -128, 127), *one.given))
    assert same == ["Multiply[1, 6, 4]"]


def test_a_constant_of_rows_is_one_of_an_image() -> None:
    b = Rows((1, 2, 3, 4))
    fixed = b.constant("k", np.arange(24, dtype=np.int8).reshape(1, 6, 4))
    assert kinds(b, b.put(SUM, b.reshape(b.given[0], 1, 6, 4), fixed)) == [
        *("Add[1, 2, 3, 4]", "Reshape[1, 6, 4]")
    ]


def test_what_a_layer_makes_decides_the_shape_of_a_sum() -> None:
    """The other one of two images of as many pixels is moved."""
    b = Rows((1, 3, 2, 4), (1, 2, 3, 4))
    moved = b.reshape(b.put(Transpose((0, 2, 1, 3)), b.given[0]), 1, 6, 4)
    made = b.reshape(b.table(b.given[1]), 1, 6, 4)
    assert "Add[1, 2, 3, 4]" in kinds(b, b.put(SUM, moved, made))


@pytest.mark.parametrize(
    ("shape", "made"),
    [
        ((2, 4), ["Reshape[1, 1, 2, 4]", "RowNorm[1, 1, 2, 4]", "Reshape[2, 4]"]),
        ((1, 6, 4), ["Reshape[1, 1, 6, 4]", "RowNorm[1, 1, 6, 4]", "Reshape[1, 6, 4]"]),
        ((2, 1, 3, 4), ["Reshape[1, 1, 6, 4]", "RowNorm[1, 1, 6, 4]", "Reshape[2, 1, 3, 4]"]),
        ((1, 4), ["RowNorm[1, 4]"]),
        ((1, 2, 3, 4), ["RowNorm[1, 2, 3, 4]"]),
    ],
)
def test_rows_that_are_normalised_are_pixels(shape: tuple[int, ...], made: list[str]) -> None:
    b = Rows(shape)
    assert kinds(b, b.norm(b.given[0])) == made


def _turned(b: Rows) -> str:
    return b.put(Transpose((0, 2, 1)), b.table(b.given[0]))


def test_a_function_of_moved_rows_comes_before_the_moves() -> None:
    b = Rows((1, 3, 4))
    moved = b.reshape(_turned(b), 1, 12)
    assert kinds(b, b.table(moved)) == [
        *("Lookup[1, 3, 4]", "Lookup[1, 3, 4]", "Transpose[1, 4, 3]", "Reshape[1, 12]")
    ]


def test_a_function_of_turned_images_stays() -> None:
    b = Rows((1, 2, 3, 4))
    turned = b.put(Transpose((0, 2, 1, 3)), b.table(b.given[0]))
    assert kinds(b, b.table(turned))[-1] == "Lookup[1, 3, 2, 4]"


def test_a_function_stays_behind_moves_that_something_else_reads() -> None:
    b = Rows((1, 3, 4))
    turned = _turned(b)
    assert kinds(b, b.table(turned), turned)[-1] == "Lookup[1, 4, 3]"
    b = Rows((1, 3, 4))  # Of an input, nothing is made that could have the function.
    assert kinds(b, b.table(b.put(Transpose((0, 2, 1)), b.given[0])))[-1] == "Lookup[1, 4, 3]"


@pytest.mark.parametrize(
    ("shapes", "axis", "joined"),
    [
        (((1, 3, 4), (1, 2, 4)), 1, "Concatenate[1, 1, 5, 4]"),
        (((1, 3, 4), (1, 3, 2)), 2, "Concatenate[1, 1, 3, 6]"),
        (((1, 3), (1, 4)), 1, "Concatenate[1, 1, 1, 7]"),
        (((2, 3), (2, 4)), 1, "Concatenate[2, 7]"),
    ],
)
def test_rows_are_joined_as_pixels(
    shapes: tuple[tuple[int, ...], ...], axis: int, joined: str
) -> None:
    b = Rows(*shapes)
    assert joined in kinds(b, b.put(Concatenate(axis), *b.given))


@pytest.mark.parametrize(
    ("shape", "part", "made"),
    [
        ((1, 3, 8), Slice((0, 0, 2), (1, 1, 1), (1, 3, 4)), "Slice[1, 1, 3, 4]"),
        ((1, 8), Slice((0, 1), (1, 2), (1, 3)), "Slice[1, 1, 1, 3]"),
        ((1, 3, 8), Slice((0, 1, 0), (1, 1, 1), (1, 2, 8)), "Slice[1, 2, 8]"),
        ((2, 8), Slice((0, 1), (1, 2), (2, 3)), "Slice[2, 3]"),
    ],
)
def test_channels_of_rows_are_channels_of_pixels(
    shape: tuple[int, ...], part: Slice, made: str
) -> None:
    b = Rows(shape)
    assert made in kinds(b, b.put(part, *b.given))
