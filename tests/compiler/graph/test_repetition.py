"""Loops mean what NumPy gives iteration by iteration."""

from itertools import product

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction, Cast
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
