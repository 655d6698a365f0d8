"""Lanes, PartialLanes, Tile and Interleave: before, after, and what is refused."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.schedule.steps.interleave import Interleave
from dovetail.compiler.schedule.steps.lanes import Lanes
from dovetail.compiler.schedule.steps.partial_lanes import PartialLanes
from dovetail.compiler.schedule.steps.schedule import Step
from dovetail.compiler.schedule.steps.tile import Tile
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS

from .programs import body_of, keeps, program, scheduled

SUMS = """
  for i in 6:
    alloc a: int32[] local:
      a[] = 0:int32
      for k in 8:
        a[] add= x[i, k]
      y[i] = a[]"""
COPY = """
  for i in 6:
    for j in 8:
      y[i, j] = x[i, j]"""
SCAN = """
  y[0] = x[0, 0]
  for i in 5:
    y[i + 1] = y[i] + x[i, 0]"""
SHIFTED = """
  for i in 6:
    for j in 8:
      if j < 7 - i:
        y[i, j] = x[i, j]
      if 5 < i + j:
        y[0, j] = x[i, j]"""
OF_A_LENGTH = """
  for i in 6:
    alloc n: int64[] local:
      n[] = i
      y[i] = 0:int32
      for k in {extent}:
        y[i] add= x[i, k]"""
OF_A_TEST = """
  for i in 6:
    alloc n: int32[] local:
      n[] = x[i, 0]
      y[i] = n[]
      if {test} < 1:int32:
        for k in 8:
          y[i] add= x[i, k]"""
ROWS = """
  for i in 40:
    for j in 3:
      let w: uint8 = x[j, i]:
        y[i, j] = max(w, x[0, i])"""
STACKED = """
  for b in 2:
    for i in 40:
      for j in 3:
        let n: int64 = cast(int64, x[0, 0]) % 2:
          y[{place}, i, j] = x[j, i]"""


@pytest.mark.parametrize(
    ("kind", "before", "step", "after"),
    [
        (
            "sum",
            SUMS,
            Lanes("i", 4),
            """
  alloc a: int32[4] local:
    for i.l in 4 vector:
      a[i.l] = 0:int32
    for k in 8:
      for i.l.2 in 4 vector:
        a[i.l.2] add= x[i.l.2, k]
    for i.l.3 in 4 vector:
      y[i.l.3] = a[i.l.3]
  alloc a: int32[2] local:
    for i.l.4 in 2 vector:
      a[i.l.4] = 0:int32
    for k.2 in 8:
      for i.l.5 in 2 vector:
        a[i.l.5] add= x[4 + i.l.5, k.2]
    for i.l.6 in 2 vector:
      y[4 + i.l.6] = a[i.l.6]""",
        ),
        (
            "square",
            COPY,
            Lanes("i", 4, "serial"),
            """
  for j in 8:
    for i.l in 4 vector:
      y[i.l, j] = x[i.l, j]
  for i in 2:
    for j.2 in 8:
      y[i + 4, j.2] = x[i + 4, j.2]""",
        ),
        (
            "sum",
            SUMS,
            PartialLanes("a", "k", 5),
            """
  for i in 6:
    alloc a: int32[5] local:
      for k.l in 5 vector:
        a[k.l] = 0:int32
      for k.l.2 in 5 vector:
        a[k.l.2] add= x[i, k.l.2]
      for k.l.3 in 3 vector:
        a[k.l.3] add= x[i, 5 + k.l.3]
      y[i] = a[0] + a[1] + (a[2] + a[3]) + a[4]""",
        ),
        (
            "square",
            COPY,
            Tile("i", "i", "j", 4),
            """
  for j.o in 2:
    for i.i in 4:
      for j.i in 4:
        y[i.i, j.o * 4 + j.i] = x[i.i, j.o * 4 + j.i]
  for j.o.2 in 2:
    for i.i.2 in 2:
      for j.i.2 in 4:
        y[4 + i.i.2, j.o.2 * 4 + j.i.2] = x[4 + i.i.2, j.o.2 * 4 + j.i.2]""",
        ),
    ],
)
def test_a_step_gives_this_program(kind: str, before: str, step: Step, after: str) -> None:
    schedule = scheduled(kind, before).then(step)
    assert body_of(schedule) == after.strip("\n")
    keeps(schedule, program(kind, before))


def test_columns_are_computed_in_vectors_and_interleaved() -> None:
    schedule = scheduled("bytes", ROWS, INTRINSICS).interleave("i", "interleave_uint8_16x3")
    text = body_of(schedule)
    assert "for i.o in 2:" in text
    assert "for i.l in 16 vector:" in text
    assert "y[i.o * 16 : 16, 0 : 3]" in text
    assert "y[24 : 16, 0 : 3]" in text, "the last rows, of which some come twice"
    keeps(schedule, program("bytes", ROWS))


@pytest.mark.parametrize("size", [1, 3, 8, 9])
def test_lanes_and_tiles_of_any_size_keep_the_meaning(size: int) -> None:
    copy, sums = scheduled("square", COPY), scheduled("sum", SUMS)
    for rest in ("vector", "serial"):
        keeps(copy.lanes("j", size, rest), program("square", COPY))
        keeps(sums.lanes("i", size, rest), program("sum", SUMS))
    keeps(sums.partial_lanes("a", "k", size), program("sum", SUMS))
    keeps(copy.tile("i", "i", "j", size), program("square", COPY))


def with_lines(body: str, **lines: str) -> str:
    """``body`` with other lines in place of those named."""
    for old, new in lines.items():
        found = {"start": "a[] = 0:int32", "end": "y[i] = a[]", "add": "a[] add= x[i, k]"}[old]
        assert found in body
        body = body.replace(found, new)
    return body


TALL, FLAT = PartialLanes("a", "k", 4), Interleave("i", "interleave_uint8_16x3")


@pytest.mark.parametrize(
    ("kind", "body", "step", "message"),
    [
        ("sum", SUMS, Lanes("i", 0), "required at least 1"),
        ("sum", SUMS, Lanes("i", 4, "none"), "one of vector, serial"),
        ("sum", SCAN, Lanes("i", 4), "share an element of y"),
        ("sum", SUMS, Lanes("k", 4), None),
        ("sum", OF_A_LENGTH.format(extent="i"), Lanes("i", 2), "loops inside depend on it"),
        ("sum", OF_A_LENGTH.format(extent="n[]"), Lanes("i", 2), "loops inside depend on it"),
        ("sum", OF_A_LENGTH.format(extent="i"), Lanes("k", 2), "serial loop of constant extent"),
        ("sum", OF_A_TEST.format(test="n[]"), Lanes("i", 2), "loops inside depend on it"),
        ("sum", OF_A_TEST.format(test="x[i, 0]"), Lanes("i", 2), "loops inside depend on it"),
        ("sum", OF_A_TEST.format(test="x[0, 0]"), Lanes("i", 2), None),
        ("sum", SUMS, PartialLanes("a", "k", 0), "at least 1 lane"),
        ("sum", with_lines(SUMS, start="a[] = 1:int32"), TALL, "a value other than 0"),
        ("sum", with_lines(SUMS, add="a[] add= a[] * x[i, k]"), TALL, "reads after it"),
        ("sum", with_lines(SUMS, add="a[] = a[] + x[i, k]"), TALL, "one store before the loop"),
        ("sum", with_lines(SUMS, end="y[i] = a[]\n      a[] add= 1:int32"), TALL, "updates by one"),
        ("sum", with_lines(SUMS, end="y[i] = a[]\n      a[] = 0:int32"), TALL, "one store before"),
        ("sum", with_lines(SUMS, end="invoke f(a[], y[i:1])"), TALL, "reads after it"),
        (
            "sum",
            with_lines(SUMS, add="a[] add= x[i, k]\n        y[i] = x[i, k]"),
            TALL,
            "share an element of y",
        ),
        ("square", COPY, Tile("i", "j", "j", 2), "not two loops of a nest"),
        ("square", COPY, Tile("i", "j", "i", 2), "not two loops of a nest"),
        ("square", COPY, Tile("i", "i", "j", 0), "not two loops of a nest"),
        ("square", SHIFTED, Tile("i", "i", "j", 2), "touch the same element of y"),
        ("bytes", ROWS.replace("x[0, i]", "y[i, 0]"), FLAT, "y is read"),
        ("bytes", ROWS, Interleave("i", "interleave_uint8_16x4"), "no such intrinsic"),
        ("bytes", ROWS, Interleave("j", "interleave_uint8_16x3"), "a loop over columns"),
        ("bytes", ROWS.replace("in 40", "in 15"), FLAT, "16 rows of y or more"),
        ("bytes", ROWS.replace("y[i, j]", "y[39 - i, j]"), FLAT, "16 rows of y or more"),
        ("blocks", STACKED.format(place="1 - b"), FLAT, None),
        ("blocks", STACKED.format(place="i"), FLAT, "are not side by side"),
        ("blocks", STACKED.format(place="j"), FLAT, "are not side by side"),
        ("blocks", STACKED.format(place="n"), FLAT, "are not side by side"),
    ],
)
def test_what_would_change_the_meaning_is_refused(
    kind: str, body: str, step: Step, message: str | None
) -> None:
    schedule = scheduled(kind, body, INTRINSICS)
    if message is None:
        keeps(schedule.then(step), program(kind, body))
        return
    with pytest.raises(ScheduleError, match=message):
        schedule.then(step)
