"""Strips and Cut: before, after, and what is refused."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.schedule.steps.schedule import Step
from dovetail.compiler.schedule.steps.strips import Cut, Strips

from .programs import body_of, keeps, program, scheduled

CHAIN = """
  for c in 3:
    z[c] = 0:int32
  alloc v: int32[3, 20] local:
    for b in 3:
      for i in 20:
        v[b, i] = x[b, 2 * i]
    for d in 3:
      for j in 40:
        y[d, j] = v[d, j // 2] + 1:int32"""
PAIRS = """
  for c in 3:
    z[c] = 0:int32
  alloc v: int32[20, 2] local:
    for i in 20:
      for k in 2:
        v[i, k] = {made}
    for d in 3:
      for j in 20:
        for m in 2:
          y[d, 2 * j + m] = {used}"""
BOTH = PAIRS.format(made="x[0, 2 * i + k]", used="v[j, m] + x[d, j]")
NEST = """
  for c in 3:
    z[c] = 0:int32
  for b in 3:
    for i in 40:
      if i < 30:
        y[b, i] = x[b, i]
      if 29 < i:
        y[b, i] = 1:int32"""


@pytest.mark.parametrize("rows", [1, 3, 7, 19, 20])
@pytest.mark.parametrize("joined", [False, True])
def test_strips_of_any_size_keep_the_meaning(rows: int, joined: bool) -> None:
    schedule = scheduled("strips", BOTH).strips(("i", "j"), rows, joined)
    keeps(schedule, program("strips", BOTH))


def test_buffers_have_room_for_one_strip() -> None:
    text = body_of(scheduled("strips", BOTH).strips(("i", "j"), 8))
    assert "for i.s in 2:\n    alloc v: int32[8, 2] local:" in text
    assert "alloc v.last: int32[4, 2] local:" in text
    joined = body_of(scheduled("strips", BOTH).strips(("i", "j"), 8, joined=True))
    assert "for i.s in 3:\n    if i.s < 2:" in joined


@pytest.mark.parametrize("at", [1, 29, 30, 39])
def test_a_nest_is_cut_anywhere(at: int) -> None:
    keeps(scheduled("strips", NEST).cut("b", "i", at), program("strips", NEST))


def test_guards_vanish_where_a_nest_is_cut() -> None:
    assert (
        body_of(scheduled("strips", NEST).cut("b", "i", 30))
        == """
  for c in 3:
    z[c] = 0:int32
  for b in 3:
    for i in 30:
      y[b, i] = x[b, i]
  for b.rest in 3:
    for i.rest in 10:
      y[b.rest, 30 + i.rest] = 1:int32""".strip("\n")
    )


OVER, STRIPS = Strips(("b", "j"), 5), Strips(("i", "j"), 5)
TWICE = BOTH.replace("z[c] = 0", "z[c] = 1")


@pytest.mark.parametrize(
    ("body", "step", "message"),
    [
        (CHAIN, STRIPS, "not gone through part by part"),
        (BOTH, Strips(("i", "j"), 0), "required multiples of one"),
        (BOTH, Strips(("i", "j"), 21), "required multiples of one"),
        (BOTH.replace("j in 20", "j in 19"), STRIPS, "required multiples of one"),
        (BOTH, Strips(("i",), 5), "one loop in each statement"),
        (BOTH, Strips(("j", "i"), 5), "one loop in each statement"),
        (BOTH.replace("v[j, m]", "v[19 - j, m]"), STRIPS, "not gone through part by part"),
        (BOTH.replace("v[j, m]", "v[max(j - 1, 0), m]"), STRIPS, "not gone through part by part"),
        (BOTH.replace("v[j, m]", "v[j + m, m]"), STRIPS, "not gone through part by part"),
        (BOTH.replace("v[j, m]", "v[0, m]"), STRIPS, "not gone through part by part"),
        (
            BOTH.replace("v[i, k] =", "z[k] = x[k, 0]\n        v[i, k] ="),
            STRIPS,
            "share an element",
        ),
        (BOTH.replace("v[j, m] + x", "v[j, m] + y"), STRIPS, "reads or writes what another"),
        (
            BOTH.replace("v[i, k] =", "y[0, 39 - 2 * i - k] = 0:int32\n        v[i, k] ="),
            STRIPS,
            "reads or writes what another",
        ),
        (
            BOTH.replace("for d in 3:", "for d in 3:\n      z[d] add= 1:int32"),
            STRIPS,
            "j is not alone in its nest",
        ),
        (
            BOTH.replace("    for d in 3:", "    if x[0, 0] < 3:int32:\n     for d in 3:"),
            STRIPS,
            "j is not alone in its nest",
        ),
        (BOTH.replace("y[d, 2", "y[0, 2"), STRIPS, "share an element of y"),
        (NEST, Cut("b", "i", 0), "more than 0 iterations"),
        (NEST, Cut("b", "i", 40), "more than 40 iterations"),
        (NEST, Cut("b", "q", 1), "required a loop in it"),
        (NEST, Cut("i", "b", 1), "required a loop in it"),
        (NEST.replace("y[b, i] = x[b", "y[0, i] = x[b"), Cut("b", "i", 9), "share an element of y"),
        (NEST.replace("y[b, i] = x[b", "y[0, 0] = x[b"), Cut("i", "i", 9), "share an element of y"),
    ],
)
def test_what_would_change_the_meaning_is_refused(body: str, step: Step, message: str) -> None:
    schedule = scheduled("strips", body)
    with pytest.raises(ScheduleError, match=message):
        schedule.then(step)


def test_a_nest_whose_extent_changes_is_not_cut() -> None:
    body = """
  alloc n: int64[3] local:
    for c in 3:
      n[c] = 3
      z[c] = 0:int32
    for b in n[0]:
      for i in 40:
        n[b] = 2
        y[b, i] = x[b, i]"""
    with pytest.raises(ScheduleError, match="the extent of b reads n, which is written"):
        scheduled("strips", body).cut("b", "i", 9)
