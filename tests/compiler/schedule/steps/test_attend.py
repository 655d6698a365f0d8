"""Attention by warps: what the step finds, and what it refuses."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.ir import Function, LoopKind
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.targets.gpu.tensor_cores import INTRINSICS

TEXT = """
function "attention"
  input q: float16[2, 20, 16]
  input k: float16[2, 40, 16]
  input v: float16[2, 40, 32]
  input b: float32[40]
  output y: float16[2, 20, 32]
  for o0 in 2:
    for rows0 in 1:
      alloc acc0: float32[32, 32] local:
        alloc total0: float32[32] local:
          alloc best0: float32[32] local:
            for r0 in 32:
              best0[r0] = -1.0:float32
              total0[r0] = 0.0:float32
            for r1 in 32:
              for e0 in 32:
                acc0[r1, e0] = 0.0:float32
            for columns0 in 2:
              alloc weight0: float16[32, 40] local:
                alloc score0: float32[32, 33] local:
                  for r2 in 32:
                    for c0 in 32:
                      alloc sum0: float32[] register:
                        sum0[] = 0.0:float32
                        for k0 in 16:
                          sum0[] add= QUERY * KEY
                        score0[r2, c0] = select(columns0 * 32 + c0 < 40, SCORE, -inf:float32)
                  for r7 in 32:
                    for e2 in 32:
                      for c4 in 32:
                        acc0[r7, e2] add= cast(float32, weight0[r7, c4]) * VALUE
            for r8 in 32:
              for e3 in 32:
                if rows0 * 32 + r8 < 20:
                  y[o0, rows0 * 32 + r8, e3] = RESULT
"""
PARTS = {
    "QUERY": "cast(float32, select(rows0 * 32 + r2 < 20, q[o0, rows0 * 32 + r2, k0], 0.0:float16))",
    "KEY": "cast(float32, select(columns0 * 32 + c0 < 40, k[o0, columns0 * 32 + c0, k0], "
    "0.0:float16))",
    "SCORE": "sum0[] * 0.5:float32 + b[columns0 * 32 + c0]",
    "VALUE": "cast(float32, select(columns0 * 32 + c4 < 40, v[o0, columns0 * 32 + c4, e2], "
    "0.0:float16))",
    "RESULT": "cast(float16, acc0[r8, e3] / total0[r8])",
}


def function(text: str = TEXT, **changes: str) -> Function:
    for name, part in {**PARTS, **changes}.items():
        text = text.replace(name, part)
    return parse(text)


def attended(loops: Function) -> list[str]:
    found = Schedule.of(loops, INTRINSICS).attend(1, 2, 32).function
    return [each.strip() for each in to_text(found).splitlines()]


def test_what_loops_compute_is_computed_in_fragments() -> None:
    lines = attended(
        function(
            SCORE="select(columns0 * 32 + c0 < 40, b[columns0 * 32 + c0], 0.0:float32) + sum0[]"
        )
    )
    assert "alloc k.tile: float16[32, 24] shared:" in lines
    assert "alloc score.own: float32[2, 8, 4, 1, 2, 2, 2, 2] register:" in lines
    (mask,) = [each for each in lines if each.startswith("let mask.0")]
    assert "b[min(columns0 * 32 + " in mask
    (stored,) = [each for each in lines if each.startswith("y[")]
    assert stored.startswith("y[o0, end.warp * 16 + end.acc.3 * 8 + end.group, end.acc.1 * 16")
    assert any(each.endswith("end.group < 20:") for each in lines)
    (narrowed,) = [each for each in lines if each.startswith("invoke narrow_float16(power.own")]
    assert narrowed.count("0 : 2]") == 2, "both numbers of a pair, of either buffer"
    assert not any("r2" in each or "acc0" in each for each in lines)


@pytest.mark.parametrize("turned", [False, True])
def test_keys_may_have_columns_as_neighbours(turned: bool) -> None:
    text = (
        TEXT.replace("input k: float16[2, 40, 16]", "input k: float16[2, 16, 40]")
        if turned
        else TEXT
    )
    where = "k[o0, k0, columns0 * 32 + c0]"
    key = f"cast(float32, select(columns0 * 32 + c0 < 40, {where}, 0.0:float16))"
    lines = attended(function(text, KEY=key) if turned else function())
    kind = "columns" if turned else "rows"
    (product,) = [each for each in lines if "query.own" in each and "product" in each]
    assert product.startswith(f"invoke product_of_{kind}_float16")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"QUERY": "cast(float32, q[o0, r2 % 20, k0])"}, "something depends on rows0"),
        (
            {"QUERY": "cast(float32, q[o0, min(rows0 * 32 + r2, 19), k0]) * 2.0:float32"},
            "a factor is not an element",
        ),
        ({"KEY": "cast(float32, q[o0, min(rows0 * 32 + r2, 19), k0])"}, "another place in q"),
        (
            {"SCORE": "select(sum0[] < 0.0:float32, b[columns0 * 32 + c0 - 1], sum0[])"},
            "b is not read everywhere",
        ),
        ({"RESULT": "cast(float16, acc0[r8, e3] + total0[r8])"}, "something depends on rows0"),
        ({"VALUE": "2.0:float32"}, "the loop c4 does not weigh values"),
    ],
)
def test_other_loops_are_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        attended(function(**changes))


def test_what_there_is_no_loop_or_intrinsic_for_is_refused() -> None:
    text, result = TEXT.replace("r8", "r9"), PARTS["RESULT"].replace("r8", "r9")
    with pytest.raises(ScheduleError, match="found no loop r8"):
        attended(function(text, RESULT=result))
    with pytest.raises(ScheduleError, match="no such intrinsic: copy_float16"):
        Schedule.of(function()).attend(1, 2, 32)
    with pytest.raises(ScheduleError, match="64 copies for 128 threads"):
        Schedule.of(function(), INTRINSICS).attend(1, 4, 32)
    with pytest.raises(ScheduleError, match="required multiples of 16"):
        Schedule.of(function(), INTRINSICS).attend(1, 2, 24)


def test_the_loop_over_rows_stays_of_its_kind() -> None:
    schedule = Schedule.of(function(), INTRINSICS).bind("rows0", LoopKind.BLOCK)
    assert "for rows0 in 1 block:" in to_text(schedule.attend(1, 2, 32).function)
