"""Steps that change loops: before, after, and what is refused."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.ir import LoopKind
from dovetail.compiler.schedule.steps.loop_steps import Annotate, Fuse, Partition, SetKind, Split
from dovetail.compiler.schedule.steps.order_steps import Fission, Join, Reorder
from dovetail.compiler.schedule.steps.schedule import Step

from .programs import body_of, keeps, program, scheduled

MAP = """
  for i in 12:
    y[i] = x[i]"""
COPY = """
  for i in 6:
    for j in 8:
      y[i, j] = x[i, j]"""
SUM = """
  for i in 6:
    y[i] = 0:int32
    for k in 8:
      y[i] add= x[i, k]"""
SCAN = """
  for i in 6:
    y[i, 0] = x[i, 0]
    for j in 7:
      y[i, j + 1] = y[i, j] + x[i, j + 1]"""
SHIFTED = """
  for i in 6:
    for j in 8:
      y[i, j] = x[i, j]
  for i in 5:
    for j in 7:
      y[i + 1, j] = y[i, j + 1]"""
TRIANGLE = """
  for i in 6:
    for j in 8:
      y[i, j] = 0:int32
  for p in 6:
    for q in p + 1:
      y[p, q] = x[p, q]"""

COUNTED = """
  alloc n: int64[] local:
    n[] = 4
    for i in 6:
      for j in 8:
        y[i, j] = 0:int32
    for p in n[]:
      n[] = 2
      for q in 8:
        y[p, q] = x[p, q]"""


@pytest.mark.parametrize(
    ("kind", "before", "step", "after"),
    [
        (
            "map",
            MAP,
            Split("i", 4),
            """
  for i.o in 3:
    for i.i in 4:
      y[i.o * 4 + i.i] = x[i.o * 4 + i.i]""",
        ),
        (
            "map",
            MAP,
            Split("i", 5, outer="a", inner="b"),
            """
  for a in 3:
    for b in 5:
      if a * 5 + b < 12:
        y[a * 5 + b] = x[a * 5 + b]""",
        ),
        (
            "map",
            MAP,
            Split("i", 5, "short"),
            """
  for i.o in 3:
    for i.i in min(5, 12 - i.o * 5):
      y[i.o * 5 + i.i] = x[i.o * 5 + i.i]""",
        ),
        (
            "square",
            COPY,
            Fuse("i", "j", "f"),
            """
  for f in 48:
    y[f // 8, f % 8] = x[f // 8, f % 8]""",
        ),
        (
            "square",
            COPY,
            Reorder(("j", "i")),
            """
  for j in 8:
    for i in 6:
      y[i, j] = x[i, j]""",
        ),
        (
            "square",
            """
  for i.o in 2:
    for i.i in 4:
      if i.o * 4 + i.i < 6:
        let r: int64 = i.o * 4 + i.i:
          for j in 8:
            y[r, j] = x[r, j]""",
            Reorder(("j", "i.i")),
            """
  for i.o in 2:
    for j in 8:
      for i.i in 4:
        if i.o * 4 + i.i < 6:
          let r: int64 = i.o * 4 + i.i:
            y[r, j] = x[r, j]""",
        ),
        (
            "map",
            MAP,
            SetKind("i", LoopKind.VECTOR),
            """
  for i in 12 vector:
    y[i] = x[i]""",
        ),
        (
            "map",
            MAP.replace("12:", "12 {a: 1, b: 2}:"),
            Annotate("i", "a", "x"),
            """
  for i in 12 {b: 2, a: "x"}:
    y[i] = x[i]""",
        ),
        (
            "map",
            """
  for o in 3:
    for i in 5:
      if o * 5 + i < 12:
        y[o * 5 + i] = x[o * 5 + i]""",
            Partition("o", 2),
            """
  for o in 2:
    for i in 5:
      y[o * 5 + i] = x[o * 5 + i]
  for o.tail in 1:
    for i.tail in 2:
      y[i.tail + 10] = x[i.tail + 10]""",
        ),
        (
            "sum",
            SUM,
            Fission("i"),
            """
  for i in 6:
    y[i] = 0:int32
  for i.2 in 6:
    for k in 8:
      y[i.2] add= x[i.2, k]""",
        ),
        (
            "map",
            """
  alloc t: float32[12] local:
    for i in 12:
      t[i] = x[i]
    for j in 12:
      y[j] = t[j]""",
            Join("i", "j"),
            """
  alloc t: float32[12] local:
    for i in 12:
      t[i] = x[i]
      y[i] = t[i]""",
        ),
    ],
)
def test_before_and_after(kind: str, before: str, step: Step, after: str) -> None:
    schedule = scheduled(kind, before).then(step)
    assert body_of(schedule) == after.strip("\n")
    keeps(schedule, program(kind, before))


@pytest.mark.parametrize(
    ("kind", "body", "step", "message"),
    [
        ("map", MAP, Split("k", 4), "f has no loop 'k'; there are: i"),
        ("map", MAP, Split("i", 0), "required at least 1"),
        ("square", COUNTED, Split("p", 2), "the extent of p reads n, which is written"),
        ("square", COUNTED, Fission("p"), "the extent of p reads n, which is written"),
        ("map", MAP, Split("i", 4, "ragged"), "tail 'ragged'; required guard, short or exact"),
        ("map", MAP, Split("i", 5, "exact"), "5 does not divide its extent 12"),
        ("square", COPY, Split("i", 2, inner="j"), "there is a loop 'j' already"),
        ("map", MAP.replace("12:", "12 vector:"), Split("i", 5, "short"), "no tail may be short"),
        ("square", COPY, Fuse("j", "i"), "the second is not directly and alone in the first"),
        ("sum", SUM, Fuse("i", "k"), "the second is not directly and alone in the first"),
        ("square", TRIANGLE, Fuse("p", "q"), "the extent of the second depends on the first"),
        (
            "square",
            COPY.replace("8:", "8 vector:"),
            Fuse("i", "j"),
            "the first is serial, the second vector",
        ),
        ("square", COPY, Reorder(("i", "i")), "required different loops"),
        ("sum", SUM, Reorder(("k", "i")), "k is not alone in i; separate what is beside it"),
        ("square", TRIANGLE, Reorder(("q", "p")), "the extent of q depends on p"),
        (
            "square",
            SHIFTED,
            Reorder(("j.2", "i.2")),
            "the order of accesses to y, by .* in two iterations changes",
        ),
        (
            "square",
            """
  for i in 6:
    if x[i, 0] < 3:int32:
      for j in 8:
        y[i, j] = x[i, j]""",
            Reorder(("j", "i")),
            "a condition or let between them reads memory",
        ),
        (
            "square",
            """
  for j in 8:
    for i in 6 parallel:
      y[i, j % 2] add= x[i, j]""",
            Reorder(("i", "j")),
            None,
        ),
        (
            "square",
            """
  for j in 3:
    for i in 5 parallel:
      y[i + j, 0] add= x[i, j]""",
            Reorder(("i", "j")),
            "iterations of the parallel loop i would touch the same element of y",
        ),
        (
            "square",
            SCAN,
            SetKind("j", LoopKind.PARALLEL),
            "parallel loop j: iterations touch the same element of y",
        ),
        ("square", SCAN, SetKind("j", LoopKind.VECTOR), "touch the same element of y"),
        ("sum", SUM, SetKind("k", LoopKind.PARALLEL), "touch the same element of y"),
        ("square", TRIANGLE, SetKind("q", LoopKind.UNROLLED), "its extent is not constant"),
        ("map", MAP, Partition("i", 12), "required 1 to one less than its extent, 12"),
        ("square", TRIANGLE, Partition("q", 2), "which is not constant"),
        ("map", MAP, Fission("i"), "its body has 1 statements; lift allocations out of it first"),
        (
            "map",
            """
  for i in 11:
    y[i] = x[i]
    y[i + 1] = y[i]""",
            Fission("i"),
            "the order of accesses to y, by",
        ),
        ("square", TRIANGLE, Join("i", "p"), None),
        (
            "map",
            """
  for i in 12:
    y[i] = x[i]
  for j in 12:
    y[j] = y[11 - j]""",
            Join("i", "j"),
            "the order of accesses to y, by",
        ),
        ("square", TRIANGLE, Join("p", "i"), "the second does not directly follow the first"),
        ("square", SHIFTED, Join("i", "i.2"), "they differ in extent or kind"),
    ],
)
def test_what_would_change_the_meaning_is_refused(
    kind: str, body: str, step: Step, message: str | None
) -> None:
    schedule = scheduled(kind, body)
    if message is None:
        schedule.then(step)
        return
    with pytest.raises(ScheduleError, match=message):
        schedule.then(step)


@pytest.mark.parametrize(
    ("kind", "body", "step"),
    [
        ("square", SCAN, SetKind("i", LoopKind.PARALLEL)),
        ("sum", SUM, SetKind("k", LoopKind.VECTOR)),
        ("sum", SUM, SetKind("i", LoopKind.THREAD)),
        ("square", TRIANGLE, Join("i", "p")),
        ("square", TRIANGLE, Split("q", 3)),
        ("square", TRIANGLE, Split("p", 4)),
        ("square", SHIFTED, Split("i.2", 2, "short")),
    ],
)
def test_what_keeps_the_meaning_is_done(kind: str, body: str, step: Step) -> None:
    schedule = scheduled(kind, body).then(step)
    keeps(schedule, program(kind, body))


def test_loops_of_one_name_get_names_of_their_own() -> None:
    assert body_of(scheduled("square", SHIFTED)).splitlines()[3:5] == [
        "  for i.2 in 5:",
        "    for j.2 in 7:",
    ]


@pytest.mark.parametrize("rows", [1, 2, 6])
@pytest.mark.parametrize("columns", [1, 4, 8])
def test_tiles_of_one_iteration_are_reordered_too(rows: int, columns: int) -> None:
    tiles = scheduled("square", COPY).split("i", rows).split("j", columns)
    keeps(tiles.reorder("i.o", "j.o", "i.i", "j.i"), program("square", COPY))
