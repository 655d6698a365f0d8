"""Loops mean what NumPy gives iteration by iteration."""

from itertools import product

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction, Cast
from dovetail.compiler.graph.operators.movement import Expand, Iota
from dovetail.compiler.graph.operators.repetition import Repeat
from dovetail.compiler.graph.types import TensorType

ADD, SUB, MUL = map(Binary, (BinaryFunction.ADD, BinaryFunction.SUB, BinaryFunction.MUL))
COUNT = 5
ROW = TensorType((3,), DType.FLOAT32)
RNG = np.random.default_rng(0)


def body() -> Graph:
    """A state ``s = s * c + a`` of the last iteration; ``b - s`` and ``b * n`` of every one."""
    builder = GraphBuilder()
    builder.input("n", TensorType((), DType.INT64))
    for name in "sabc":
        builder.input(name, ROW)
    number = builder.node(Cast(DType.FLOAT32), ("n",), "number", "n")
    state = builder.node(MUL, ("s", "c"), "scaled", "n")
    state = builder.node(ADD, (state, "a"), "state", "n")
    first = builder.node(SUB, ("b", "s"), "first", "n")
    second = builder.node(MUL, ("b", number), "second", "n")
    return builder.build((state, first, second))


@pytest.mark.parametrize("turns", [*product((False, True), repeat=4)])
def test_slices_are_taken_and_collected_from_either_end(turns: tuple[bool, ...]) -> None:
    s, c = RNG.normal(size=(2, 3)).astype(np.float32)
    a, b = RNG.normal(size=(2, COUNT, 3)).astype(np.float32)
    found = Repeat(body(), COUNT, 1, turns[:2], turns[2:]).evaluate([s, a, b, c])
    each_a, each_b = (x[::-1] if turn else x for x, turn in zip((a, b), turns[:2], strict=True))
    first, second = [], []
    for n in range(COUNT):
        first.append(each_b[n] - s)
        second.append(each_b[n] * np.float32(n))
        s = s * c + each_a[n]
    ends = zip((first, second), turns[2:], strict=True)
    wanted = (s, *(x[::-1] if turn else x for x, turn in ends))
    for value, right in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(value, right)


def counting(result: TensorType, condition: TensorType) -> Graph:
    """A body whose state becomes a ``result``, and goes on by a ``condition``."""
    builder = GraphBuilder()
    builder.input("n", TensorType((), DType.INT64))
    builder.input("s", ROW)
    going = builder.node(Iota(condition.shape, 0), (), "places", "n")
    going = builder.node(Cast(condition.dtype), (going,), "going", "n")
    state = builder.node(Expand((*result.shape[:-1], 3)), ("s",), "wide", "n")
    return builder.build((going, state))


def test_states_and_conditions_keep_their_types() -> None:
    number, flag = TensorType((), DType.INT64), TensorType((1,), DType.BOOL)
    loop = Repeat(counting(ROW, flag), COUNT, 1, conditional=True, guarded=True)
    assert loop.result((flag, ROW)) == (ROW, number)
    slices = Repeat(body(), COUNT, 1, (False, False), (False, False))
    many = TensorType((COUNT, 3), DType.FLOAT32)
    assert slices.result((ROW, many, many, ROW)) == (ROW, many, many)
    wide = Repeat(counting(TensorType((2, 3), DType.FLOAT32), flag), COUNT, 1, conditional=True)
    two = Repeat(counting(ROW, TensorType((2,), DType.BOOL)), COUNT, 1, conditional=True)
    whole = Repeat(counting(ROW, TensorType((1,), DType.INT64)), COUNT, 1, conditional=True)
    for operator, inputs, message in (
        (slices, (ROW, ROW, many, ROW), r"required .*float32\[5, 3\]"),
        (slices, (ROW, many, many), "required 4"),
        (loop, (flag, many), r"found float32\[5, 3\], required float32\[3\]"),
        (loop, (number, ROW), "a bool that says whether it goes on"),
        (wide, (ROW,), r"found float32\[2, 3\], required states of float32\[3\]"),
        (two, (ROW,), r"found bool\[2\], required a bool that says whether it goes on"),
        (whole, (ROW,), r"found int64\[1\], required a bool that says whether it goes on"),
    ):
        with pytest.raises(GraphError, match=message):
            operator.result(inputs)
