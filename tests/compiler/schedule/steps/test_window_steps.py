"""Clip, Drop, Separate and Frame: before, after, and what is refused."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.schedule.steps.frame import Frame
from dovetail.compiler.schedule.steps.schedule import Schedule, Step
from dovetail.compiler.schedule.steps.separate import Separate
from dovetail.compiler.schedule.steps.windows import Clip, Drop

from .programs import body_of, keeps, program, scheduled

WINDOW = """
  for i in 10:
    y[i] = -9:int32
    for k in 3:
      if {guard}:
        y[i] max= x[{place}]"""
BOTH = WINDOW.format(guard="(0 <= i + k - 1) & (i + k - 1 < 10)", place="i + k - 1")
DEEP = """
  for i in 10:
    y[i] = 0:int32
    for k in 3:
      for m in 2:
        if 0 <= i + {begin} - 2:
          y[i] add= x[i + {begin} - 2]"""
COUNTDOWN = """
  for i in 10:
    y[i] = 0:int32
  for k in 8:
    if cast(int64, y[0]) < k:
      y[0] = 6:int32"""
ONE = """
  for i in 1:
    for j in 10:
      y[i + j] = x[j]"""
SQUARE = """
  for i in 4:
    for j in 6:
      alloc a: int32[] local:
        a[] = 0:int32
        for k in {taps}:
          for m in 3:
            a[] add= {value}
        y[i, j] = a[]"""
OF_ROWS = "select((1 <= j + m) & (j + m < 7), x[i + k, j + m - 1], 0:int32)"
ROWS = SQUARE.format(taps="3", value=OF_ROWS)
SEPARATE = Separate("i", "j", "m")


def small(body: str, inputs: str = "x: int32[6, 6]", outputs: str = "y: int32[4, 6]") -> Schedule:
    """A schedule of a program of these parameters."""
    return Schedule.of(parse(f'function "f"\n  input {inputs}\n  output {outputs}{body}'))


def test_a_loop_is_clipped_at_both_ends() -> None:
    schedule = scheduled("row", BOTH).clip("k")
    assert "for k in min(i + 2, 10) - max(i - 1, 0):" in body_of(schedule)
    assert "if" not in body_of(schedule)
    keeps(schedule, program("row", BOTH))


@pytest.mark.parametrize(
    "body",
    [
        WINDOW.format(guard="2 - i <= k", place="i + k - 2"),
        WINDOW.format(guard="k + i < 10", place="i + k"),
        WINDOW.format(guard="(k + i < 10) & (x[0] < 5:int32)", place="i + k"),
        DEEP.format(begin="k"),
        BOTH.replace("if (0 <= i + k - 1) & (i + k - 1 < 10):\n        y[i] max= x[i + k - 1]",
                     "y[i] max= select(i + k < 10, x[min(i + k, 9)], -2147483648:int32)"),
    ],
)  # fmt: skip
def test_clipped_loops_keep_the_meaning(body: str) -> None:
    keeps(scheduled("row", body).clip("k"), program("row", body))


def test_a_loop_of_one_iteration_is_dropped() -> None:
    schedule = scheduled("row", ONE).drop("i")
    assert body_of(schedule) == "  for j in 10:\n    y[j] = x[j]"
    keeps(schedule, program("row", ONE))


def test_windows_are_reduced_to_rows_and_then_along_them() -> None:
    schedule = small(ROWS).separate("i", "j", "m")
    text = body_of(schedule)
    assert "alloc rows: int32[4, 8] local:" in text
    assert text.count("for k in 3:") == 1, "a row is summed once for all windows"
    assert "a[] add= rows[i.4, j + m]" in text
    keeps(schedule, small(ROWS).function)


@pytest.mark.parametrize(
    "value",
    [
        "x[i + k, j * 2 + m]",
        "x[i + k, j + m * 2] * x[i, j + m * 2]",
        "select((j + m < 5) & (i < 3), x[i + k, j + m], 0:int32)",
        "x[i + k, j + m] * x[i + k, 12 - j - m]",
    ],
)
def test_separated_windows_keep_the_meaning(value: str) -> None:
    schedule = small(SQUARE.format(taps="2", value=value), "x: int32[6, 13]")
    keeps(schedule.separate("i", "j", "m"), schedule.function)


def sides(*which: str) -> str:
    """Statements that write sides of a border of y[4, 6], one to the left and two to the right."""
    texts = {
        "top": "for t in 6:\n    y[0, t] = 7:int32",
        "bottom": "for b in 6:\n    y[3, b] = 7:int32",
        "left": "for l in 2:\n    y[l + 1, 0] = 7:int32",
        "right": "for r in 2:\n    for s in 2:\n      y[r + 1, s + 4] = 7:int32",
        "inside": "for i in 2:\n    for j in 3:\n      y[i + 1, j + 1] = x[i, j]",
        "diagonal": "for d in 4:\n    y[d, d] = 7:int32",
        "other": "for o in 6:\n    y[0, o] = 8:int32",
    }
    return "".join(f"\n  {texts[name]}" for name in which)


def test_a_border_is_one_loop_over_rows() -> None:
    original = small(sides("top", "bottom", "left", "right", "inside"))
    schedule = original.frame("t")
    lines = body_of(schedule).splitlines()
    assert lines[:2] == ["  for t.0 in 4:", "    if (t.0 < 1) | (2 < t.0):"]
    keeps(schedule, original.function)


@pytest.mark.parametrize(
    ("schedule", "step", "message"),
    [
        (scheduled("row", BOTH), Clip("i"), "a guard does not say|0 guards"),
        (
            scheduled("row", WINDOW.format(guard="0 <= k * 2 - i", place="i")),
            Clip("k"),
            "does not say where",
        ),
        (
            scheduled("row", WINDOW.format(guard="k // 2 <= k - 1", place="i")),
            Clip("k"),
            "does not say where",
        ),
        (scheduled("row", DEEP.format(begin="(k + m)")), Clip("k"), "does not say where"),
        (scheduled("row", COUNTDOWN), Clip("k"), "does not say where"),
        (
            scheduled("row", WINDOW.format(guard="(0 < k) & (i < k)", place="i")),
            Clip("k"),
            "2 guards of its begin",
        ),
        (scheduled("row", ONE), Clip("j"), "0 guards of its begin"),
        (scheduled("row", ONE), Drop("j"), "more than one iteration"),
        (small(ROWS), Separate("i", "j", "k"), "not the innermost loop of one reduction"),
        (small(ROWS), Separate("i", "q", "m"), "not the innermost of a nest"),
        (small(ROWS.replace("= 0:int32", "= 1:int32")), SEPARATE, "does not begin with 0"),
        (small(SQUARE.format(taps="3", value="x[i + k, m]")), SEPARATE, "in no index together"),
        (
            small(SQUARE.format(taps="3", value="x[i + k, (j + m) % 6] * x[m, j]")),
            SEPARATE,
            "in no index together",
        ),
        (
            small(SQUARE.format(taps="2", value="x[i + k, j + m] * x[m, j]"), "x: int32[6, 8]"),
            SEPARATE,
            "depends on it alone",
        ),
        (
            small(SQUARE.format(taps="j", value="x[i + k, j + m]"), "x: int32[9, 8]"),
            SEPARATE,
            "depends on it alone",
        ),
        (
            small(
                SQUARE.format(taps="2", value="select(m < j, x[i + k, j + m], 0:int32)"),
                "x: int32[6, 8]",
            ),
            SEPARATE,
            "not of a place in the row",
        ),
        (
            small(
                ROWS.replace("a[] = 0", "a[0] = 0").replace("a[] add", "a[m] add")
                .replace("a[]", "a[0]").replace("int32[]", "int32[3]")
            ),
            SEPARATE,
            "or its result has dimensions",
        ),
        (
            small(
                "\n  for i in 4:\n    for j in 6:\n      y[i, j] = 0:int32"
                + SQUARE.format(taps="1", value="y[max(i - 1, 0), min(j + m, 5)] * x[i, j + m]"),
                "x: int32[6, 8]",
            ),
            Separate("i.2", "j.2", "m"),
            "what it reads changes",
        ),
        (small(sides("inside")), Frame("i"), "does not store a constant"),
        (small(sides("top", "left", "right")), Frame("t"), "not the four sides"),
        (small(sides("bottom", "top")), Frame("b"), "not the four sides"),
        (small(sides("top", "bottom", "diagonal")), Frame("d"), "does not store a constant"),
        (small(sides("top", "inside", "bottom", "left")), Frame("b"), "not the four sides"),
        (small(sides("other", "bottom", "left", "right")), Frame("b"), "not the four sides"),
    ],
)  # fmt: skip
def test_what_would_change_the_meaning_is_refused(
    schedule: Schedule, step: Step, message: str
) -> None:
    with pytest.raises(ScheduleError, match=message):
        schedule.then(step)
