"""Whole schedules, and traces as JSON."""

import json

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.equal import equal
from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.ir import LoopKind
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.steps.schedule import STEPS, Schedule
from dovetail.compiler.schedule.steps.trace import from_record, replay, to_record

from .programs import body_of, keeps, program, scheduled
from .test_placement import MATMUL


def tiled() -> Schedule:
    return (
        scheduled("matmul", MATMUL)
        .split("p", 4)
        .split("q", 4)
        .reorder("p.o", "q.o", "p.i", "q.i")
        .compute_at("t", "q.o")
        .set_scope("t", Scope.REGISTER)
        .reorder("k", "i", "j")
        .cache_read("b", "q.o", Scope.LOCAL, "panel")
        .vectorize("j")
        .unroll("i")
        .vectorize("j0")
        .unroll("i0")
        .vectorize("q.i")
        .unroll("p.i")
        .bind("p.o", LoopKind.PARALLEL)
    )


def test_a_matrix_product_for_registers() -> None:
    schedule = tiled()
    verify(schedule.function, scheduled=True)
    keeps(schedule, program("matmul", MATMUL))
    assert body_of(schedule).splitlines()[:8] == [
        "  for p.o in 2 parallel:",
        "    for q.o in 2:",
        "      alloc t: int32[4, 4] register:",
        "        alloc panel: int32[10, 4] local:",
        "          for panel.0 in 10:",
        "            for panel.1 in 4:",
        "              panel[panel.0, panel.1] = b[panel.0, q.o * 4 + panel.1]",
        "          for i0 in 4 unrolled:",
    ]


def test_a_scan_may_be_unrolled_but_not_reordered() -> None:
    text = """
      function "scan"
        input x: float32[5, 8]
        output y: float32[5, 8]
        for j in 8:
          y[0, j] = x[0, j]
        for t in 4:
          for k in 8:
            y[t + 1, k] = y[t, k] * 0.5:float32 + x[t + 1, k]
      """
    schedule = Schedule.of(parse(text)).split("k", 4).reorder("k.o", "t", "k.i").vectorize("k.i")
    keeps(schedule.parallel("k.o").unroll("t"), parse(text))
    with pytest.raises(ScheduleError, match="touch the same element of y"):
        schedule.parallel("t")


def test_a_trace_is_json_and_replays_to_an_equal_function() -> None:
    schedule = tiled()
    record = json.loads(json.dumps(to_record(schedule)))
    again = replay(program("matmul", MATMUL), record)
    assert again.trace == schedule.trace
    assert equal(again.function, schedule.function)
    assert record[0] == {
        "step": "split",
        "loop": "p",
        "factor": 4,
        "tail": "guard",
        "outer": "",
        "inner": "",
    }


def test_every_step_has_a_method() -> None:
    kinds = {"set_kind": ("vectorize", "parallel", "unroll", "bind")}
    for name in STEPS:
        for method in kinds.get(name, (name,)):
            assert callable(getattr(Schedule, method))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"step": "melt"}, "no step 'melt'; there are: split, fuse"),
        ({}, "no step None"),
        ({"step": "fuse", "outer": "i"}, r"found the fields \['outer'\]; required"),
        ({"step": "partition", "loop": "i", "at": "2"}, "partition: at cannot be '2'"),
        ({"step": "partition", "loop": "i", "at": True}, "partition: at cannot be True"),
        ({"step": "set_kind", "loop": "i", "kind": "fast"}, "set_kind: kind cannot be 'fast'"),
        ({"step": "reorder", "loops": ["i", 3]}, "reorder: loops cannot be 3"),
        ({"step": "reorder", "loops": "ij"}, "reorder: loops cannot be 'ij'"),
        ({"step": "annotate", "loop": "i", "name": "a", "value": 1.5}, "value cannot be 1.5"),
        (
            {"step": "set_layout", "buffer": "t", "tiles": [[1]], "order": []},
            r"set_layout: tiles cannot be \[1\]",
        ),
    ],
)
def test_an_entry_that_is_no_step_is_refused(entry: dict[str, object], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        from_record(entry)


def test_a_trace_that_does_not_apply_names_its_entry() -> None:
    record = [
        {"step": "partition", "loop": "p", "at": 2},
        {"step": "partition", "loop": "z", "at": 2},
    ]
    with pytest.raises(ScheduleError, match="trace entry 1: f has no loop 'z'"):
        replay(program("matmul", MATMUL), record)
