"""Threads that no barrier orders must not meet."""

import pytest

from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.barriers import barrier_conflict
from dovetail.compiler.loops.parse import parse

HEAD = """function "f"
  input x: float32[8, 16]
  output y: float32[8, 16]
  for b in 8 block:
"""


def conflict(text: str) -> str | None:
    lines = [f"    {line}" for line in text.strip("\n").splitlines()]
    return barrier_conflict(parse(HEAD + "\n".join(lines)).body)


REVERSED = """
alloc t: float32[16] shared:
  for i in 16 thread:
    t[i] = x[b, i]
  {}
  for j in 16 thread:
    y[b, j] = t[{}]
"""


def test_what_another_thread_wrote_is_read_only_after_a_barrier() -> None:
    assert conflict(REVERSED.format("invoke barrier()", "15 - j")) is None
    found = conflict(REVERSED.format("", "15 - j"))
    assert found is not None
    assert "t: a thread of i writes an element that another of j may read" in found


def test_a_thread_may_read_what_it_wrote_itself() -> None:
    assert conflict(REVERSED.format("", "j")) is None


def test_loops_of_other_extents_are_other_threads() -> None:
    text = REVERSED.format("", "j").replace("for j in 16 thread", "for j in 8 thread")
    assert conflict(text) is not None


ROUNDS = """
alloc t: float32[16] shared:
  for k in 4:
    for i in 16 thread:
      t[i] = x[b, i]
    {}
    for j in 16 thread:
      y[b, j] add= t[15 - j]
    {}
"""
WAIT = "invoke barrier()"


def test_the_next_round_must_not_write_what_is_still_read() -> None:
    assert conflict(ROUNDS.format(WAIT, WAIT)) is None
    for planted in ((WAIT, ""), ("", WAIT)):
        found = conflict(ROUNDS.format(*planted))
        assert found is not None
        assert found.startswith("t: a thread of ")


def test_a_barrier_stands_where_all_threads_come_to_it() -> None:
    with pytest.raises(GraphError, match="a barrier inside of the thread loop i"):
        conflict("for i in 16 thread:\n  invoke barrier()")
    with pytest.raises(GraphError, match="a barrier under a condition that depends on data"):
        conflict("if x[b, 0] < 1.0:float32:\n  invoke barrier()")
    assert conflict("if b < 4:\n  invoke barrier()") is None
