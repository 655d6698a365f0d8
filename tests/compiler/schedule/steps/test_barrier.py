"""Barrier: before, after, and what is refused."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.schedule.steps.schedule import Schedule

TEXT = """function "f"
  output y: float32[4, 8]
  for b in 4 block:
    for i in 2 thread:
      for j in 4 thread:
        y[b, i * 4 + j] = 1.0:float32
  for k in 2:
    y[0, k] add= 1.0:float32"""


def test_a_barrier_stands_before_the_threads_or_after_them() -> None:
    lines = to_text(Schedule.of(parse(TEXT)).barrier("i").barrier("i", after=True).function)
    found = [each.strip() for each in lines.splitlines()]
    assert found.index("invoke barrier()") < found.index("for i in 2 thread:")
    assert found.count("invoke barrier()") == 2
    assert parse(lines) == Schedule.of(parse(TEXT)).barrier("i").barrier("i", True).function


@pytest.mark.parametrize("loop", ["b", "j", "k"])
def test_only_the_outermost_threads_have_barriers(loop: str) -> None:
    with pytest.raises(ScheduleError, match="required the outermost of a block's thread loops"):
        Schedule.of(parse(TEXT)).barrier(loop)
