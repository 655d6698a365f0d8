"""Random steps: each is for a loop that it fits."""

import random

import pytest

from dovetail.compiler.loops.ir import LoopKind
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.schedule.steps.loop_steps import Fuse, Partition, SetKind, Split
from dovetail.compiler.schedule.steps.order_steps import Reorder
from dovetail.compiler.schedule.steps.schedule import Step
from dovetail.compiler.schedule.steps.storage_steps import CacheRead
from dovetail.compiler.tune.steps import draw_step, varied_step

FUNCTION = parse("""function "f"
  input x: float32[200, 6]
  output y: float32[200, 6, 64]
  for p in 200:
    for q in 6:
      for r in 64:
        y[p, q, r] = x[p, q] * 2.0:float32
  for s in 200:
    y[s, 0, 0] = x[s, 0]""")
EXTENTS = {"p": 200, "q": 6, "r": 64, "s": 200}
INNER = {"p": "q", "q": "r"}


def drawn(threads: int) -> list[Step]:
    rng = random.Random(1)
    return [step for _ in range(1500) for step in draw_step(FUNCTION, threads, rng)]


@pytest.mark.parametrize("threads", [1, 4])
def test_every_step_fits_its_loop(threads: int) -> None:
    found = set(drawn(threads))
    kinds = {(each.loop, each.kind) for each in found if isinstance(each, SetKind)}
    unrolled = {loop for loop, kind in kinds if kind is LoopKind.UNROLLED}
    assert unrolled == {"q", "p.i", "r.i", "s.i"}
    assert {loop for loop, kind in kinds if kind is LoopKind.VECTOR} == {"r", "s.i"}
    shared = {loop for loop, kind in kinds if kind is LoopKind.PARALLEL}
    assert shared == ({"p", "s"} if threads > 1 else set())
    splits = [each for each in found if isinstance(each, Split)]
    assert {each.loop for each in splits} == set(EXTENTS)
    assert all((EXTENTS[s.loop] % s.factor == 0) or s.tail != "exact" for s in splits)
    assert all(2 <= each.factor < EXTENTS[each.loop] for each in splits if each.loop != "q")
    assert {s.tail for s in splits} == {"exact", "short", "guard"}
    cuts = {(each.loop, each.at) for each in found if isinstance(each, Partition)}
    assert cuts == {(n, at) for n, e in EXTENTS.items() for at in (1, 2, e - 1, e - 2, e // 2)}
    assert {(f.outer, f.inner) for f in found if isinstance(f, Fuse)} == set(INNER.items())
    assert {each.loops for each in found if isinstance(each, Reorder)} >= {("q", "p"), ("r", "q")}
    assert {(c.buffer, c.loop) for c in found if isinstance(c, CacheRead)} == {
        ("x", name) for name in EXTENTS
    }


def test_a_varied_step_has_another_number() -> None:
    rng = random.Random(2)
    assert {varied_step(Partition("p", 5), rng) for _ in range(20)} == {
        Partition("p", 4),
        Partition("p", 6),
    }
    assert {varied_step(Partition("p", 1), rng) for _ in range(20)} == {
        Partition("p", 1),
        Partition("p", 2),
    }
    split = varied_step(Split("p", 5, "exact"), rng)
    assert isinstance(split, Split)
    assert split.tail == "short"
    assert {varied_step(Reorder(("p", "q")), rng) for _ in range(20)} == {
        Reorder(("p", "q")),
        Reorder(("q", "p")),
    }
    assert varied_step(Fuse("p", "q"), rng) == Fuse("p", "q")
