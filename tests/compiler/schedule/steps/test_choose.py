"""Choices, guards and sums that leave a loop: results stay, and what does not suit is refused."""

import numpy as np
import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.fills import fill_of
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, Function, If
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.schedule.steps.trace import replay, to_record

HEAD = """function "f"
  input x: float32[64]
  output y: float32[8, 8]
"""
BORDER = (
    HEAD
    + """  for i in 8:
    for j in 8:
      y[i, j] = select({condition}, x[i * 8 + j], 0.0:float32)
"""
)
GUARDED = (
    HEAD
    + """  for i in 8:
    for j in 8:
      y[i, j] = 0.0:float32
  for k in 8:
    for l in 8:
      if {condition}:
        y[k, l] = x[k * 8 + l]
"""
)
SUM = """function "f"
  input x: float32[4, 24]
  output y: float32[4]
  for p in 4:
    alloc s: float32[]:
      s[] = {start}:float32
      for k in 24:
        s[] add= x[p, k]
      let v: float32 = s[]:
        y[p] = v + 1.0:float32
"""


def same(before: Function, schedule: Schedule) -> None:
    """Also by its trace."""
    rng = np.random.default_rng(0)
    given = {x.name: rng.integers(-9, 9, x.shape).astype(np.float32) for x in before.inputs}
    want = interpret(before, given)["y"]
    np.testing.assert_array_equal(interpret(schedule.function, given)["y"], want)
    again = replay(before, to_record(schedule)).function
    np.testing.assert_array_equal(interpret(again, given)["y"], want)


@pytest.mark.parametrize("condition", ["i < 5", "(i < 6) & (2 <= i)", "i * 8 + j < 40"])
def test_a_choice_is_made_before_the_loop(condition: str) -> None:
    """In the last one, eight elements at a time are on one side."""
    function = parse(BORDER.format(condition=condition))
    schedule = Schedule.of(function).choose("j")
    (choice,) = (each for each in walk(schedule.function.body) if isinstance(each, If))
    assert isinstance(choice.then, For)
    assert isinstance(choice.otherwise, For)
    same(function, schedule)


@pytest.mark.parametrize(
    "condition", ["j < 5", "i * 8 + j < 41", "x[j] < 0.0:float32", "i * 8 + j // 3 * 8 + j < 40"]
)
def test_a_choice_that_differs_in_the_loop_stays(condition: str) -> None:
    with pytest.raises(ScheduleError, match="choose before j"):
        Schedule.of(parse(BORDER.format(condition=condition))).choose("j")


def test_only_zeros_where_a_copy_would_write_belong_to_it() -> None:
    function = parse(BORDER.format(condition="i < 5"))
    choice = Schedule.of(function).choose("j").function.body
    assert all(fill_of(each) is None for each in walk(choice)), "there is no copy"


@pytest.mark.parametrize("condition", ["k < 5", "(k < 5) & (1 <= k)"])
def test_a_guard_is_tested_before_the_loop(condition: str) -> None:
    function = parse(GUARDED.format(condition=condition))
    schedule = Schedule.of(function).hoist_guard("l")
    (guard,) = (each for each in walk(schedule.function.body) if isinstance(each, If))
    assert isinstance(guard.then, For)
    same(function, schedule)


@pytest.mark.parametrize("condition", ["l < 5", "x[k] < 0.0:float32"])
def test_a_guard_of_the_loop_or_of_memory_stays(condition: str) -> None:
    with pytest.raises(ScheduleError, match="none that may stand outside"):
        Schedule.of(parse(GUARDED.format(condition=condition))).hoist_guard("l")


@pytest.mark.parametrize("parts", [2, 3, 24])
def test_a_sum_of_parts_is_the_sum(parts: int) -> None:
    function = parse(SUM.format(start="0.0"))
    same(function, Schedule.of(function).split_sum("k", parts))


@pytest.mark.parametrize(
    ("start", "loop", "parts", "reason"),
    [
        ("0.0", "k", 5, "a divisor of its 24 iterations"),
        ("0.0", "k", 1, "a divisor"),
        ("1.0", "k", 2, "a sum from 0"),
        ("0.0", "p", 2, "a start, the sum"),
    ],
)
def test_other_sums_are_refused(start: str, loop: str, parts: int, reason: str) -> None:
    with pytest.raises(ScheduleError, match=reason):
        Schedule.of(parse(SUM.format(start=start))).split_sum(loop, parts)
