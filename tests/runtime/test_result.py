"""Figures of runs: added up over parts, and times by a clock that ticks once each time."""

import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.isa.assembly import assemble
from dovetail.isa.configs import find_config
from dovetail.isa.program import program_to_bytes
from dovetail.runtime import Session
from dovetail.runtime.errors import InputError
from dovetail.runtime.program import run_program
from dovetail.runtime.result import RunResult, TimelineEntry, join_results

from .sample import COPY, SHAPE, copy_module

TINY = find_config("tiny")


def entry(index: int, layer: int, start: int) -> TimelineEntry:
    return TimelineEntry(index, "LOAD", layer, start - 2, start, start + 9, 0, 0, 1)


A = RunResult(
    *({}, "sim", 9.0, 1.0, 2.0, 100, 640, 40, 0.5, 7, 11, {"cycles": 100, "stall": 3}),
    timeline=(entry(0, 0, 5), entry(1, 2, 20)),
)
B = RunResult(
    *({}, "sim", 9.0, 4.0, 8.0, 50, 160, 20, 0.25, 5, 13, {"cycles": 50, "stall": 4}),
    timeline=(entry(0, 0, 6), entry(1, 1, 30)),
)
CPU = RunResult({}, "cpu", 16.0, 0.0, 16.0)


def test_figures_of_parts_are_added_up_and_timelines_put_behind_each_other() -> None:
    found = join_results([A, CPU, B, replace(A, timeline=A.timeline[:1])], {}, "both", 99.0)
    assert found.figures() == {
        "device": "both", "wall_seconds": 99.0, "host_seconds": 22.0, "device_seconds": 12.0,
        "cycles": 250, "macs": 1440, "gemm_busy_cycles": 100, "dram_bytes_read": 19,
        "dram_bytes_written": 35,
        "gemm_utilization": 1440 / (1280 + 640 + 1280),
    }  # fmt: skip
    assert found.counters == {"cycles": 250, "stall": 10}
    assert found.ends == ((100, 2), (150, 4))
    assert [(each.index, each.layer) for each in found.timeline] == [
        (0, 0), (1, 2), (2, 3), (3, 4), (4, 5),
    ]  # fmt: skip
    assert found.timeline[2] == TimelineEntry(2, "LOAD", 3, 104, 106, 115, 0, 0, 1)
    assert found.timeline[4].start == 155


def test_figures_of_one_program_are_its_own_and_others_are_the_hosts() -> None:
    found = join_results([CPU, A, CPU], {}, "both", 99.0)
    assert found == replace(A, device="both", wall_seconds=99.0, host_seconds=33.0)
    found = join_results([CPU, CPU], {}, "cpu", 99.0)
    assert found == RunResult({}, "cpu", 99.0, 0.0, 32.0)
    assert "cycles" not in found.figures()
    unused = replace(A, macs=0, gemm_utilization=0.0)
    assert join_results([unused, unused], {}, "sim", 1.0).gemm_utilization == 0.0
    bare = join_results([A, replace(A, timeline=())], {}, "sim", 1.0)
    assert (bare.timeline, bare.ends) == ((), ())


def test_a_result_shows_its_tensors_and_cycles() -> None:
    y = {"y": np.zeros((2, 3), np.int8)}
    assert (
        repr(replace(A, outputs=y, cycles=1234))
        == "<RunResult of sim: y: int8[2, 3], 1,234 cycles>"
    )
    assert repr(replace(CPU, outputs=y)) == "<RunResult of cpu: y: int8[2, 3]>"


def test_seconds_are_those_between_beginning_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    code, ticks = program_to_bytes(assemble(COPY, TINY)), itertools.count(1000)
    x: Any = np.zeros(SHAPE, np.int8)
    with Session(copy_module(), "sim") as session:
        session.run(x)
        monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
        found = session.run(x)
        assert found.host_seconds == 2
        assert 4 <= found.wall_seconds < 20
        one, many = found.wall_seconds, session.run_batch(np.concatenate([x] * 3)).wall_seconds
        assert 2 * one < many < 60
    alone = run_program(code, TINY, np.zeros(64, np.uint8))
    assert alone.host_seconds == 1
    assert 2 <= alone.wall_seconds < 20


@pytest.mark.parametrize(
    ("code", "dram", "message"),
    [
        (b"", np.zeros(64, np.uint8), "a program of 0 bytes; required a multiple of 64, not 0"),
        (bytes(65), np.zeros(64, np.uint8), "a program of 65 bytes; required a multiple of 64"),
        (bytes(64), np.zeros((2, 2), np.uint8), r"input 'dram' is uint8\[2, 2\]; required uint8"),
        (bytes(64), np.zeros(4, np.int8), r"input 'dram' is int8\[4\]; required uint8\[N\]"),
    ],
)
def test_programs_that_cannot_be_run_are_refused(code: bytes, dram: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_program(code, TINY, dram)


@pytest.mark.parametrize("size", [0, 1, 64, 65])
def test_a_program_stands_behind_its_data(size: int) -> None:
    code = program_to_bytes(
        assemble("load memory=act sram_address=0 dram_address=0 count_x=1", TINY)
    )
    dram = np.arange(size, dtype=np.uint8)
    result = run_program(code, TINY, dram)
    np.testing.assert_array_equal(result.outputs["dram"], dram)
    assert result.macs == 0
    assert result.timeline[0].unit == "LOAD"
