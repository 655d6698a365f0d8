"""Convolutions whose channels are read in parts: what they become, and that bytes stay."""

from itertools import pairwise

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Lookup
from dovetail.compiler.graph.operators.movement import Concatenate, Slice
from dovetail.compiler.targets.vta.passes.own_channels import OwnChannels

from .test_rows_to_pixels import Rows


def part(b: Rows, x: str, start: int, count: int) -> str:
    """Some channels."""
    shape = (*b.types[x].shape[:3], count)
    return b.put(Slice((0, 0, 0, start), (1, 1, 1, 1), shape), x)


def conv(b: Rows, x: str, out: int, size: int) -> str:
    """A convolution that keeps the image's size, requantised."""
    shape = (out, size, size, b.types[x].shape[3])
    weights = b.constant("w", b.rng.integers(-128, 128, shape).astype(np.int8))
    bias = b.constant("b", b.rng.integers(-99, 99, out).astype(np.int32))
    pads = (size // 2,) * 4
    return b.requantized(b.put(Conv2d((1, 1), pads, 1, 3, -2), x, weights, bias))


def rewritten(b: Rows, *outputs: str) -> list[str]:
    """Operators that the pass makes of a graph, whose bytes stay."""
    graph = b.build(outputs)
    found = OwnChannels(4).run(graph)
    assert OwnChannels(4).run(found) is found
    shape = graph.types["x0"].shape
    values = {"x0": np.random.default_rng(5).integers(-128, 128, shape).astype(np.int8)}
    for name in outputs:
        wanted = interpret(graph, values)[name]
        np.testing.assert_array_equal(interpret(found, values)[name], wanted)
    return [f"{type(n.operator).__name__}{found.types[n.output].shape[3]}" for n in found.nodes]


@pytest.mark.parametrize("table", [False, True])
def test_each_part_is_a_convolution_of_its_own(*, table: bool) -> None:
    b = Rows((1, 3, 2, 5))
    x = conv(b, b.given[0], 12, 1)
    x = b.table(x) if table else x
    windows, rest = conv(b, part(b, x, 8, 4), 4, 3), part(b, x, 0, 8)
    layer = ["Conv2d{}", "Requantize{}", *["Lookup{}"][:table]]
    assert sorted(rewritten(b, b.put(Concatenate(3), windows, rest))) == sorted(
        [each.format(n) for n in (8, 4) for each in layer]
        + ["Conv2d4", "Requantize4", "Concatenate12"]
    )


def test_a_convolution_that_is_read_as_a_whole_too_stays() -> None:
    b = Rows((1, 3, 2, 5))
    x = conv(b, b.given[0], 12, 1)
    parts = conv(b, part(b, x, 8, 4), 4, 3), part(b, x, 0, 8)
    assert "Slice8" in rewritten(b, b.put(Concatenate(3), *parts, x))


@pytest.mark.parametrize(
    ("height", "cuts", "why"),
    [
        (1, (0, 8, 12), "one row"),
        (3, (0, 2, 7, 12), "more blocks"),
        (3, (0, 12), "one part"),
    ],
)
def test_where_nothing_is_gained_a_convolution_stays(
    height: int, cuts: tuple[int, ...], why: str
) -> None:
    b = Rows((1, height, 2, 5))
    x = conv(b, b.given[0], 12, 1)
    parts = [part(b, x, a, z - a) for a, z in pairwise(cuts)]
    assert "Slice" in "".join(rewritten(b, b.put(Concatenate(3), *map(b.table, parts)))), why


def test_parts_that_single_pixels_are_read_of_stay() -> None:
    b = Rows((1, 3, 2, 5))
    x = conv(b, b.given[0], 12, 1)
    outputs = [conv(b, part(b, x, start, 6), 4, 1) for start in (0, 6)]
    assert "Slice6" in rewritten(b, *outputs)
    assert Lookup not in {type(each.operator) for each in b.nodes}
