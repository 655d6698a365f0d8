"""Steps that change where values are computed: before, after, and what is refused."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.schedule.steps.compute_at import ComputeAt
from dovetail.compiler.schedule.steps.inline import Inline
from dovetail.compiler.schedule.steps.rfactor import Rfactor
from dovetail.compiler.schedule.steps.schedule import Schedule, Step

from .programs import body_of, keeps, program, scheduled

CHAIN = """
  alloc t: int32[6, 8] local:
    for i in 6:
      for j in 8:
        t[i, j] = x[i, 7 - j] * 2:int32
    for p in 6:
      for q in 8:
        y[p, q] = t[5 - p, q] + t[p, 0]"""
MATMUL = """
  alloc t: int32[6, 8] local:
    for i0 in 6:
      for j0 in 8:
        t[i0, j0] = 0:int32
    for i in 6:
      for j in 8:
        for k in 10:
          t[i, j] add= a[i, k] * b[k, j]
    for p in 6:
      for q in 8:
        c[p, q] = max(t[p, q], 0:int32)"""
SUM = """
  for i in 6:
    y[i] = 0:int32
    for o in 2:
      for l in 4:
        y[i] add= x[i, o * 4 + l]"""
WINDOW = """
  alloc t: float32[12] local:
    for i in 12:
      t[i] = x[i] + x[i]
    for o in 3:
      for j in 4:
        y[o * 4 + j] = select(1 <= o * 4 + j, t[o * 4 + j - 1], 0.0:float32) + t[o * 4 + j]"""


@pytest.mark.parametrize(
    ("kind", "before", "step", "after"),
    [
        (
            "square",
            CHAIN,
            Inline("t"),
            """
  for p in 6:
    for q in 8:
      y[p, q] = x[5 - p, 7 - q] * 2:int32 + x[p, 7] * 2:int32""",
        ),
        (
            "square",
            """
  for i in 6:
    alloc t: int32[1, 8] local:
      for j in 8:
        let v: int32 = x[i, j]:
          t[0, j] = v + v
      for q in 8:
        y[i, q] = t[0, q]""",
            Inline("t"),
            """
  for i in 6:
    for q in 8:
      y[i, q] = x[i, q] + x[i, q]""",
        ),
        (
            "matmul",
            MATMUL,
            ComputeAt("t", "p"),
            """
  for p in 6:
    alloc t: int32[1, 8] local:
      for i0 in 1:
        for j0 in 8:
          t[0, j0] = 0:int32
      for i in 1:
        for j in 8:
          for k in 10:
            t[0, j] add= a[p, k] * b[k, j]
      for q in 8:
        c[p, q] = max(t[0, q], 0:int32)""",
        ),
        (
            "map",
            WINDOW,
            ComputeAt("t", "o"),
            """
  for o in 3:
    alloc t: float32[5] local:
      for i in 5:
        if 0 <= o * 4 + i - 1:
          t[i] = x[o * 4 + i - 1] + x[o * 4 + i - 1]
      for j in 4:
        y[o * 4 + j] = select(1 <= o * 4 + j, t[j], 0.0:float32) + t[j + 1]""",
        ),
        (
            "sum",
            SUM,
            Rfactor("l", "o", "p"),
            """
  for i in 6:
    y[i] = 0:int32
    alloc p: int32[4, 1] local:
      for p.first.0 in 4:
        p[p.first.0, 0] = 0:int32
      for o in 2:
        for l in 4:
          p[l, 0] add= x[i, o * 4 + l]
      for p.last.0 in 4:
        y[i] add= p[p.last.0, 0]""",
        ),
    ],
)
def test_before_and_after(kind: str, before: str, step: Step, after: str) -> None:
    schedule = scheduled(kind, before).then(step)
    assert body_of(schedule) == after.strip("\n")
    if kind != "map":
        keeps(schedule, program(kind, before))


@pytest.mark.parametrize(
    ("function", "dtypes"),
    [
        ("add", ("int8", "uint16", "float64")),
        ("mul", ("int8", "uint16")),
        ("min", ("int8", "uint16", "float64")),
        ("max", ("int8", "uint16", "float64")),
        ("and", ("int8", "uint16", "bool")),
        ("or", ("int8", "uint16", "bool")),
        ("xor", ("int8", "uint16", "bool")),
    ],
)
def test_every_reduction_can_be_factored(function: str, dtypes: tuple[str, ...]) -> None:
    before = SUM.replace("y[i] = 0:int32", "y[i] = x[i, 0]").replace("add=", f"{function}=")
    text = to_text(program("sum", before))
    for dtype in dtypes:
        original = parse(text.replace("int32", dtype))
        keeps(Schedule.of(original).rfactor("l", "o"), original)


@pytest.mark.parametrize(
    ("kind", "body", "step", "message"),
    [
        ("square", CHAIN, Inline("x"), "no allocation of 'x'"),
        ("matmul", MATMUL, Inline("t"), "required one store that writes it, found 2 writes"),
        (
            "square",
            CHAIN.replace("t[i, j] =", "t[5 - i, j] ="),
            Inline("t"),
            "written at an index that is not a loop variable",
        ),
        (
            "square",
            """
  alloc t: int32[8, 8] local:
    for i in 6:
      for j in 8:
        t[j, j] = x[i, j]
    for p in 6:
      for q in 8:
        y[p, q] = t[q, q]""",
            Inline("t"),
            "written at one variable in two dimensions",
        ),
        (
            "square",
            """
  alloc t: int32[8] local:
    for i in 6:
      for j in 8:
        t[j] = x[i, j]
    for p in 6:
      for q in 8:
        y[p, q] = t[q]""",
            Inline("t"),
            "its value depends on i, which is not an index of it",
        ),
        (
            "square",
            """
  for i in 6:
    for j in 8:
      y[i, j] = x[i, j]
  alloc t: int32[6] local:
    for i in 6:
      t[i] = y[i, 0]
    for i in 6:
      y[i, 0] = 0:int32
    for i in 6:
      y[i, 1] = t[i]""",
            Inline("t"),
            "y, from which it is computed, is written later",
        ),
        ("square", CHAIN, ComputeAt("t", "i"), "it is written in or after the loop"),
        (
            "square",
            """
  alloc t: int32[6, 8] local:
    for i in 6:
      for j in 8:
        t[i, j] = x[i, j]
    for p in 6:
      for q in 8:
        y[p, q] = t[p, q]
    y[0, 0] = t[1, 1]""",
            ComputeAt("t", "p"),
            "it is read outside the loop too",
        ),
        (
            "square",
            """
  for p in 6:
    for q in 8:
      y[p, q] = x[p, q]
  alloc t: int32[6] local:
    for i in 6:
      t[i] = y[i, 0]
    for r in 6:
      y[r, 0] = t[5 - r]""",
            ComputeAt("t", "r"),
            "y, from which it is computed, is written later",
        ),
        (
            "square",
            """
  alloc t: int32[6, 8] local:
    for i in 6:
      for j in 8:
        t[i, j] = x[i, j]
        y[i, j] = 0:int32
    for p in 6:
      for q in 8:
        y[p, q] = t[p, q]""",
            ComputeAt("t", "p"),
            "writes y too; separate them by fission",
        ),
        (
            "square",
            CHAIN.replace("i in 6", "io in 3").replace(
                "      for j in 8:\n        t[i, j] = x[i, 7 - j]",
                "      for j in 8:\n        t[io, j] = x[io, 7 - j]",
            ),
            ComputeAt("t", "p"),
            "loop io does not write all of it",
        ),
        (
            "matmul",
            MATMUL.replace("t[i0, j0]", "t[5 - i0, j0]"),
            ComputeAt("t", "p"),
            "dimension 0 is not written at a loop variable of its own",
        ),
        (
            "square",
            """
  alloc t: int32[8] local:
    t[0] = x[0, 0]
    for j in 7:
      t[j + 1] = t[j] + x[0, j]
    for p in 6:
      for q in 8:
        y[p, q] = t[q]""",
            Inline("t"),
            "required one store that writes it, found 2 writes",
        ),
        (
            "square",
            """
  alloc t: int32[8] local:
    for j in 8:
      t[j] = t[7 - j]
    for p in 6:
      for q in 8:
        y[p, q] = t[q]""",
            Inline("t"),
            "its value depends on it",
        ),
        (
            "square",
            """
  alloc t: int32[8] local:
    for j in 8:
      t[j] = x[0, j]
    invoke sum(t[0 : 8], y[0 : 6, 0 : 8])""",
            Inline("t"),
            "found 2 writes|an intrinsic reads it",
        ),
        (
            "square",
            CHAIN.replace("t[5 - p, q] + t[p, 0]", "x[p, q]"),
            ComputeAt("t", "p"),
            "the loop does not read it",
        ),
        (
            "square",
            """
  alloc t: int32[6] local:
    for i in 6:
      t[i] = x[i, 0]
    for p in 6:
      y[p, 0] = t[p]
      for q in 7:
        y[p, q + 1] = t[p]""",
            ComputeAt("t", "q"),
            "it is read outside the loop too",
        ),
        (
            "square",
            """
  for z in 6:
    y[z, 0] = x[z, 0]
  alloc t: int32[6] local:
    for i in 6:
      t[i] = x[i, 0]
    for p in 6:
      y[p, 1] = x[p, 0]""",
            ComputeAt("t", "z"),
            "the loop is not where the buffer is",
        ),
        (
            "square",
            """
  alloc t: int32[8] local:
    for i in 8:
      t[i] = select(0 < i, t[max(i - 1, 0)], 0:int32) + x[0, i]
    for p in 6:
      for q in 8:
        y[p, q] = t[q]""",
            ComputeAt("t", "p"),
            "it is written from other elements of itself",
        ),
        (
            "sum",
            """
  for i in 6:
    y[i] = 0:int32
  for o in 3:
    for l in 4:
      y[o * 2] add= x[o, l]""",
            Rfactor("l", "o"),
            "not shown that all of the box",
        ),
        ("square", CHAIN, ComputeAt("t", "z"), "f has no loop 'z'"),
        ("sum", SUM, Rfactor("l", "i"), "there is more than one update in i"),
        ("sum", SUM, Rfactor("o", "l"), "the first is not in the second"),
        (
            "square",
            """
  for i in 6:
    for j in 8:
      y[i, j] = 0:int32
  for p in 6:
    for q in 8:
      y[p, q] add= x[p, q]""",
            Rfactor("q", "p"),
            "the update is of another element for each iteration of it",
        ),
        (
            "sum",
            SUM.replace("add= x[i, o * 4 + l]", "add= x[i, o * 4 + l] * y[i]"),
            Rfactor("l", "o"),
            "its result is read there",
        ),
        ("sum", SUM, Rfactor("l", "o", "x"), "a buffer 'x' already"),
        ("sum", SUM.replace("l in 4", "l in o + 3"), Rfactor("l", "o"), "extent is not constant"),
    ],
)
def test_what_would_change_the_meaning_is_refused(
    kind: str, body: str, step: Step, message: str
) -> None:
    schedule = scheduled(kind, body)
    with pytest.raises(ScheduleError, match=message):
        schedule.then(step)
