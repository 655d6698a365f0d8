"""Intrinsics in the place of loops."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.intrinsic import Intrinsic, by_name
from dovetail.compiler.loops.parse import parse

from .programs import body_of, keeps, program, scheduled

DOT = Intrinsic(
    "dot4",
    parse(
        """
        function "dot4"
          input a: int32[4]
          input b: int32[4]
          output c: int32[]
          for k in 4:
            c[] add= a[k] * b[k]
        """
    ),
)
OUTER = Intrinsic(
    "outer",
    parse(
        """
        function "outer"
          input a: int32[2, 5]
          input b: int32[5, 4]
          output c: int32[2, 4]
          for k in 5:
            for i in 2:
              for j in 4:
                c[i, j] add= a[i, k] * b[k, j]
        """
    ),
)
ZERO = Intrinsic(
    "zero",
    parse(
        """
        function "zero"
          output c: int32[2, 4]
          for i in 2:
            for j in 4:
              c[i, j] = 0:int32
        """
    ),
)
SQUARE = Intrinsic(
    "square",
    parse(
        """
        function "square"
          input a: int32[4]
          output c: int32[]
          for k in 4:
            c[] add= a[k] * a[k]
        """
    ),
)
IDLE = Intrinsic(
    "idle",
    parse(
        """
        function "idle"
          input a: int32[4]
          input b: int32[4]
          output c: int32[]
          for k in 4:
            c[] add= a[k]
        """
    ),
)
TABLE = by_name(DOT, OUTER, ZERO, SQUARE, IDLE)

MATMUL = """
  for i in 6:
    for j in 8:
      c[i, j] = 0:int32
  for p in 6:
    for q in 8:
      for k in 10:
        c[p, q] add= b[k, q] * a[p, k]"""
SUM = """
  for i in 6:
    y[i] = 0:int32
    for o in 2:
      for l in 4:
        y[i] add= x[i, o * 4 + l] * x[5 - i, o * 4 + l]"""


def test_a_dot_product_is_recognised() -> None:
    schedule = scheduled("sum", SUM, TABLE).tensorize("l", "dot4")
    assert body_of(schedule).splitlines()[-1] == (
        "      invoke dot4(x[i : 1, o * 4 : 4], x[5 - i : 1, o * 4 : 4], y[i : 1])"
    )
    keeps(schedule, program("sum", SUM))


def test_places_are_those_of_the_iterations_there_are() -> None:
    """Four iterations: ``l // 4`` is always 0, and ``max(l, 0)`` always ``l``."""
    found = SUM.replace("x[i, o * 4 + l]", "x[i + l // 4, o * 4 + max(l, 0)]")
    schedule = scheduled("sum", found, TABLE).tensorize("l", "dot4")
    assert "invoke dot4(x[i : 1, o * 4 : 4], x[5 - i : 1, " in body_of(schedule)
    with pytest.raises(ScheduleError):
        scheduled("sum", SUM.replace("x[i,", "x[i + l // 3,"), TABLE).tensorize("l", "dot4")


def test_a_matrix_product_in_tiles_is_recognised_with_its_operands_swapped() -> None:
    schedule = (
        scheduled("matmul", MATMUL, TABLE)
        .split("i", 2)
        .split("j", 4)
        .reorder("j.o", "i.i")
        .split("p", 2)
        .split("q", 4)
        .split("k", 5)
        .reorder("p.o", "q.o", "k.o", "k.i", "p.i", "q.i")
        .tensorize("k.i", "outer")
        .tensorize("i.i", "zero")
    )
    assert "invoke zero(c[i.o * 2 : 2, j.o * 4 : 4])" in body_of(schedule)
    assert (
        "invoke outer(a[p.o * 2 : 2, k.o * 5 : 5], b[k.o * 5 : 5, q.o * 4 : 4], "
        "c[p.o * 2 : 2, q.o * 4 : 4])" in body_of(schedule)
    )
    keeps(schedule, program("matmul", MATMUL))


def test_what_is_tensorized_may_be_parallel_outside() -> None:
    schedule = scheduled("sum", SUM, TABLE).tensorize("l", "dot4").parallel("i")
    keeps(schedule, program("sum", SUM))
    with pytest.raises(ScheduleError, match="touch the same element of y"):
        schedule.parallel("o")


@pytest.mark.parametrize(
    ("body", "loop", "name", "message"),
    [
        (SUM, "l", "dot8", "no such intrinsic; there are: dot4, outer, zero, square, idle"),
        (SUM, "o", "dot4", "loop o has the extent 2; required 4"),
        (SUM.replace("4 + l]", "4 - l + 3]"), "l", "dot4", "the values computed differ"),
        (
            SUM.replace("add=", "max="),
            "l",
            "dot4",
            "found an update of y by max; required an update",
        ),
        (SUM.replace(" * x[5", " + x[5"), "l", "dot4", "the values computed differ"),
        (
            SUM.replace("x[i, o * 4 + l]", "x[i, l * 2]"),
            "l",
            "dot4",
            "the values computed differ",
        ),
        (SUM.replace("y[i] add=", "y[l] add="), "l", "dot4", "y is written in another way than c"),
        (
            SUM.replace("y[i] add= x[i, o * 4 + l]", "y[0] add= y[l]"),
            "l",
            "dot4",
            "y is written and is another operand too",
        ),
        (SUM, "l", "square", "a is more than one box of a buffer"),
        (
            SUM.replace(" * x[5 - i, o * 4 + l]", ""),
            "l",
            "idle",
            "its meaning does not use b",
        ),
        (SUM, "i", "zero", "loop i has the extent 6; required 2"),
    ],
)
def test_what_means_something_else_is_refused(
    body: str, loop: str, name: str, message: str
) -> None:
    with pytest.raises(ScheduleError, match=message):
        scheduled("sum", body, TABLE).tensorize(loop, name)
