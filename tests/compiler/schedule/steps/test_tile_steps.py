"""Widen, Stage and Overlap: before, after, and what is refused."""

import numpy as np
import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function, LoopKind
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.steps.schedule import Schedule

TEXT = """function "f"
  input x: float32[5, 7]
  input w: float32[7, 3]
  output y: float32[5, 3]
  for p in 5:
    for q in 3:
      alloc acc: float32[] register:
        acc[] = 0.0:float32
        for k in 7:
          acc[] add= x[p, k] * w[k, q]
        let v: float32 = acc[]:
          y[p, q] = v * 2.0:float32"""

RNG = np.random.default_rng(3)
GIVEN = {
    "x": RNG.integers(-9, 9, (5, 7)).astype(np.float32),
    "w": RNG.integers(-9, 9, (7, 3)).astype(np.float32),
}
WANTED = GIVEN["x"] @ GIVEN["w"] * 2


def agrees(function: Function) -> str:
    verify(function)
    np.testing.assert_array_equal(interpret(function, GIVEN)["y"], WANTED)
    return to_text(function)


def test_widened_loops_repeat_their_last_iteration_and_store_nothing_more() -> None:
    schedule = Schedule.of(parse(TEXT)).widen("q", 4).widen("p", 4)
    lines = agrees(schedule.function)
    assert "for p in 8:" in lines
    assert "for q in 4:" in lines
    assert "x[min(p, 4), k]" in lines


def test_a_widened_sum_adds_nothing() -> None:
    lines = agrees(Schedule.of(parse(TEXT)).widen("k", 4).function)
    assert "for k in 8:" in lines
    assert "select(k < 7, x[p, k], 0.0:float32) * select(k < 7, w[k, q], 0.0:float32)" in lines


def test_a_factor_of_the_extent_changes_nothing() -> None:
    assert agrees(Schedule.of(parse(TEXT)).widen("p", 5).function) == TEXT


def test_what_is_staged_is_read_once() -> None:
    schedule = Schedule.of(parse(TEXT)).widen("k", 4)
    lines = agrees(schedule.stage("x", "p", ("k",), Scope.LOCAL, "row", 2).function)
    assert "alloc row: float32[10] local:" in lines
    assert "row[row.0] = select(row.0 < 7, x[p, row.0], 0.0:float32)" in lines


def test_what_widen_does_not_know_is_refused() -> None:
    text = TEXT.replace("x[p, k] * w[k, q]", "x[p, k]").replace("  input w: float32[7, 3]\n", "")
    with pytest.raises(ScheduleError, match="widen of k to multiples of 4: what is summed is not"):
        Schedule.of(parse(text)).widen("k", 4)
    twice = parse(TEXT.replace("y[p, q] = v", "y[p, q] add= v"))
    with pytest.raises(ScheduleError, match="iterations too many would change"):
        Schedule.of(twice).widen("p", 4)


def test_what_stage_does_not_know_is_refused() -> None:
    schedule = Schedule.of(parse(TEXT))
    with pytest.raises(ScheduleError, match="it depends on k; found the dimensions q"):
        schedule.stage("x", "p", ("q",), Scope.LOCAL, "row")
    guarded = parse(
        TEXT.replace("          acc[] add=", "          if k < 5:\n            acc[] add=")
    )
    with pytest.raises(ScheduleError, match="it is read under a condition"):
        Schedule.of(guarded).stage("x", "p", ("k",), Scope.LOCAL, "row")
    with pytest.raises(ScheduleError, match="it is written there"):
        schedule.stage("y", "p", ("q",), Scope.LOCAL, "row")
    with pytest.raises(ScheduleError, match="required a dimension"):
        schedule.stage("x", "k", (), Scope.LOCAL, "row")


def test_fills_overlap_with_what_uses_them() -> None:
    schedule = Schedule.of(parse(TEXT)).widen("k", 2).split("k", 2, "exact", "s", "t")
    lines = agrees(schedule.stage("x", "s", ("t",), Scope.SHARED, "row").overlap("s").function)
    assert "alloc row: float32[2, 2] shared:" in lines
    assert lines.index("row[0, row.0.first] =") < lines.index("invoke wait()")
    assert "row[(s + 1) % 2, row.0] =" in lines
    assert "acc[] add= row[s % 2, t] *" in lines


def test_loops_without_shared_memory_do_not_overlap() -> None:
    with pytest.raises(ScheduleError, match="it does not allocate shared memory alone"):
        Schedule.of(parse(TEXT)).overlap("q")
    with pytest.raises(ScheduleError, match="the loop is not serial"):
        Schedule.of(parse(TEXT)).bind("p", LoopKind.BLOCK).overlap("p")
