"""Steps that change where values are kept: before, after, and what is refused."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.schedule.steps.pipeline import Pipeline
from dovetail.compiler.schedule.steps.schedule import Step
from dovetail.compiler.schedule.steps.storage_steps import (
    CacheRead,
    CacheWrite,
    Lift,
    SetLayout,
    SetScope,
)

from .programs import body_of, keeps, program, scheduled

MATMUL = """
  for i in 6:
    for j in 8:
      c[i, j] = 0:int32
      for k in 10:
        c[i, j] add= a[i, k] * b[k, j]"""
WINDOW = """
  for o in 3:
    for i in 5:
      if o * 5 + i < 12:
        y[o * 5 + i] = select(1 <= o * 5 + i, x[o * 5 + i - 1], 0.0:float32)"""
SUM = """
  for i in 6:
    alloc acc: int32[] register:
      acc[] = 0:int32
      for k in 8:
        acc[] add= x[i, k]
      y[i] = acc[]"""
STAGED = """
  for i in 6:
    alloc t: int32[8] local:
      for l in 8:
        t[l] = x[i, l] + 1:int32
      for j in 8:
        y[i, j] = t[7 - j]"""
TWO = """
  alloc t: int32[6, 8] local:
    for i in 6:
      for j in 8:
        t[i, j] = x[i, j]
    for p in 6:
      for q in 8:
        y[p, q] = t[5 - p, q]"""


@pytest.mark.parametrize(
    ("kind", "before", "step", "after"),
    [
        (
            "matmul",
            MATMUL,
            CacheRead("a", "i", Scope.SHARED, "row"),
            """
  for i in 6:
    alloc row: int32[1, 10] shared:
      for row.1 in 10:
        row[0, row.1] = a[i, row.1]
      for j in 8:
        c[i, j] = 0:int32
        for k in 10:
          c[i, j] add= row[0, k] * b[k, j]""",
        ),
        (
            "map",
            WINDOW,
            CacheRead("x", "o", Scope.LOCAL, "s"),
            """
  for o in 3:
    alloc s: float32[5] local:
      for s.0 in 5:
        if (0 <= o * 5 + s.0 - 1) & (o * 5 + s.0 - 1 < 12):
          s[s.0] = x[o * 5 + s.0 - 1]
      for i in 5:
        if o * 5 + i < 12:
          y[o * 5 + i] = select(1 <= o * 5 + i, s[i], 0.0:float32)""",
        ),
        (
            "matmul",
            MATMUL,
            CacheWrite("c", "j", Scope.REGISTER, "r"),
            """
  for i in 6:
    for j in 8:
      alloc r: int32[1, 1] register:
        r[0, 0] = 0:int32
        for k in 10:
          r[0, 0] add= a[i, k] * b[k, j]
        c[i, j] = r[0, 0]""",
        ),
        (
            "square",
            """
  for i in 6:
    for j in 8:
      y[i, j] = 0:int32
  for p in 6:
    for k in 3:
      for q in 8:
        y[p, q] add= x[p, q]""",
            CacheWrite("y", "p", Scope.LOCAL, "r"),
            """
  for i in 6:
    for j in 8:
      y[i, j] = 0:int32
  for p in 6:
    alloc r: int32[1, 8] local:
      for r.1 in 8:
        r[0, r.1] = y[p, r.1]
      for k in 3:
        for q in 8:
          r[0, q] add= x[p, q]
      for r.1.out in 8:
        y[p, r.1.out] = r[0, r.1.out]""",
        ),
        (
            "sum",
            """
  for i in 6:
    y[i] = 0:int32
    for k in 8:
      y[i] add= x[i, k]""",
            CacheWrite("y", "", Scope.LOCAL, "r"),
            """
  alloc r: int32[6] local:
    for i in 6:
      r[i] = 0:int32
      for k in 8:
        r[i] add= x[i, k]
    for r.0 in 6:
      y[r.0] = r[r.0]""",
        ),
        (
            "sum",
            SUM,
            Lift("acc", "i"),
            """
  alloc acc: int32[6] register:
    for i in 6:
      acc[i] = 0:int32
      for k in 8:
        acc[i] add= x[i, k]
      y[i] = acc[i]""",
        ),
        (
            "square",
            STAGED,
            Lift("t", "i", expand=False),
            """
  alloc t: int32[8] local:
    for i in 6:
      for l in 8:
        t[l] = x[i, l] + 1:int32
      for j in 8:
        y[i, j] = t[7 - j]""",
        ),
        (
            "square",
            STAGED,
            SetScope("t", Scope.SHARED),
            STAGED.replace("local", "shared"),
        ),
        (
            "square",
            TWO,
            SetLayout("t", ((1, 4), (0, 4)), (2, 0, 1, 3)),
            """
  alloc t: int32[2, 2, 4, 4] local:
    for i in 6:
      for j in 8:
        t[j // 4, i // 4, i % 4, j % 4] = x[i, j]
    for p in 6:
      for q in 8:
        y[p, q] = t[q // 4, (5 - p) // 4, (5 - p) % 4, q % 4]""",
        ),
        (
            "square",
            STAGED,
            Pipeline("i", "t"),
            """
  alloc t: int32[2, 8] local:
    for l.first in 8:
      t[0, l.first] = x[0, l.first] + 1:int32
    for i in 6:
      if i + 1 < 6:
        for l in 8:
          t[(i + 1) % 2, l] = x[i + 1, l] + 1:int32
      for j in 8:
        y[i, j] = t[i % 2, 7 - j]""",
        ),
    ],
)
def test_before_and_after(kind: str, before: str, step: Step, after: str) -> None:
    schedule = scheduled(kind, before).then(step)
    assert body_of(schedule) == after.strip("\n")
    keeps(schedule, program(kind, before))


PARTLY = """
  for i in 6:
    for j in 8:
      y[i, j] = 0:int32
  for p in 6:
    for q in 8:
      if x[p, q] < 0:int32:
        y[p, q] = x[p, q]"""


@pytest.mark.parametrize(
    ("kind", "body", "step", "message"),
    [
        ("matmul", MATMUL, CacheRead("d", "i", Scope.LOCAL), "it is not touched there"),
        ("matmul", MATMUL, CacheRead("c", "i", Scope.LOCAL), "written there; use cache_write"),
        ("matmul", MATMUL, CacheRead("a", "i", Scope.LOCAL, "b"), "a buffer 'b' already"),
        ("square", STAGED, CacheWrite("t", "", Scope.LOCAL), "allocated inside; lift it first"),
        ("matmul", MATMUL, CacheWrite("a", "i", Scope.LOCAL), "only read there; use cache_read"),
        (
            "square",
            PARTLY,
            CacheWrite("y", "p", Scope.LOCAL),
            "not shown that one iteration writes",
        ),
        (
            "map",
            """
  for i in 12:
    y[i] = x[i]
  for j in 6:
    y[2 * j] = x[j]
    y[2 * j + 1] = y[2 * j]""",
            CacheWrite("y", "", Scope.LOCAL),
            None,
        ),
        (
            "map",
            """
  for i in 6:
    y[2 * i] = x[i]
    y[2 * i + 1] = x[i]""",
            CacheWrite("y", "", Scope.LOCAL),
            "not shown that one iteration writes all of the box",
        ),
        (
            "square",
            """
  for i in 6:
    for j in 8:
      y[i, 7 - j] = x[i, j]
      y[i, j] = x[i, j]""",
            CacheWrite("y", "j", Scope.LOCAL),
            "not shown that one iteration writes all of the box",
        ),
        (
            "map",
            """
  for i in 12:
    y[i] = 0.0:float32
  for j in 12:
    if x[j] < 0.0:float32:
      y[j] = x[j]
    y[j] add= 1.0:float32""",
            CacheWrite("y", "j", Scope.LOCAL),
            "not shown that the box holds anything before it",
        ),
        (
            "square",
            """
  alloc t: int32[8] local:
    for l in 8:
      t[l] = 0:int32
    invoke any(t[0 : 8])
    for i in 6:
      for j in 8:
        y[i, j] = t[j]""",
            SetLayout("t", ((0, 4),)),
            "an intrinsic uses it; set the layout before tensorize",
        ),
        (
            "square",
            """
  for i in 6:
    alloc t: int32[8] local:
      for l in 8:
        t[l] = x[i, l]
        y[i, l] = t[l]""",
            Pipeline("i", "t"),
            "the loop does not begin by writing it, or does no more",
        ),
        ("sum", SUM, Lift("acc", "k"), "it is allocated in the loops i"),
        ("sum", SUM, Lift("t", "i"), "f has no allocation of 't'; there are: acc"),
        ("sum", SUM, Lift("acc", "i", 1), "axis 1; required 0 to 0"),
        (
            "sum",
            SUM.replace("i in 6", "i in 6 parallel"),
            Lift("acc", "i", expand=False),
            "the loop is parallel; its iterations cannot share it",
        ),
        (
            "square",
            """
  for i in 6:
    for j in 8:
      alloc t: int32[] local:
        t[] = x[i, j]
        y[i, j] = t[]""",
            Lift("t", "i"),
            "j is between them; lift it out of that first",
        ),
        ("square", TWO, SetLayout("t", ((2, 4),)), "no tiles of 4 in dimension 2"),
        ("square", TWO, SetLayout("t", (), (0, 0)), r"order \(0, 0\) is none of 2 dimensions"),
        ("square", TWO, SetLayout("x", (), (1, 0)), "no allocation of 'x'"),
        ("square", TWO, SetScope("x", Scope.LOCAL), "no allocation of 'x'"),
        ("square", TWO, Pipeline("i", "t"), "it is not allocated directly in the loop"),
        (
            "square",
            STAGED.replace("i in 6", "i in 6 parallel"),
            Pipeline("i", "t"),
            "the loop is not serial, or its extent not constant",
        ),
        (
            "square",
            STAGED.replace("local", "register"),
            Pipeline("i", "t"),
            "it is in registers",
        ),
        (
            "square",
            """
  for i in 6:
    alloc t: int32[8] local:
      for l in 8:
        t[l] = x[i, l]
      y[i, 0] = t[0]
      for j in 8:
        t[j] = 0:int32
        y[i, j] = t[j]""",
            Pipeline("i", "t"),
            "it is written again after its load",
        ),
        (
            "square",
            """
  for p in 8:
    y[0, p] = x[0, p]
  for i in 5:
    alloc t: int32[8] local:
      for l in 8:
        t[l] = y[i, l]
      for j in 8:
        y[i + 1, j] = t[j] + x[i, j]""",
            Pipeline("i", "t"),
            "its load reads y, which the loop writes",
        ),
        (
            "square",
            """
  for i in 6:
    alloc t: int32[8] local:
      for l in 8:
        t[l] = x[i, l]
        y[i, l] = t[l]
      y[i, 0] = t[0]""",
            Pipeline("i", "t"),
            "what writes it writes more",
        ),
    ],
)
def test_what_would_change_the_meaning_is_refused(
    kind: str, body: str, step: Step, message: str | None
) -> None:
    schedule = scheduled(kind, body)
    if message is None:
        keeps(schedule.then(step), program(kind, body))
        return
    with pytest.raises(ScheduleError, match=message):
        schedule.then(step)
