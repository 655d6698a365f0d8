"""Instructions that differ in addresses alone, as one, and LOADs before others that wait."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.merge import merges, merging
from dovetail.compiler.targets.vta.overtake import exchanged, hastened, overtaken
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import (
    Finish,
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Store,
    Vector,
)
from dovetail.isa.memories import Memory
from dovetail.isa.semantics import execute
from dovetail.isa.state import MachineState

TINY = find_config("tiny")
GEMM = Gemm(
    act_address=3,
    wgt_address=5,
    acc_address=40,
    extent=(2, 3, 1, 1, 1, 1),
    act_stride=(1, 0, 0, 0, 0, 0),
    wgt_stride=(1, 2, 0, 0, 0, 0),
    acc_stride=(0, 1, 0, 0, 0, 0),
    reduction=1,
)
PAIR = Vector(
    source=Memory.ACT,
    destination=Memory.ACT,
    source_address=100,
    destination_address=300,
    par_address=2,
    extent=(2, 4, 1, 1, 1),
    source_stride=(-60, 1, 0, 0, 0),
    destination_stride=(1, 0, 0, 0),
    fold=Fold.MAC,
    multiplier=Multiplier.PAIR,
    finish=Finish.REQUANTIZE,
)
STORE = Store(dram_address=64, sram_address=7, count_x=2, count_z=2, dram_stride_z=32)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (GEMM, replace(GEMM, act_address=9, wgt_address=1, acc_address=7)),
        (
            PAIR,
            replace(PAIR, destination_address=320, source_stride=(-50, 1, 0, 0, 0), par_address=9),
        ),
        (STORE, replace(STORE, dram_address=512, sram_address=90)),
    ],
)
def test_one_instruction_does_what_two_do(one: Instruction, other: Instruction) -> None:
    both = merging(one, other)
    assert both is not None
    rng = np.random.default_rng(4)
    states = [MachineState.zeros(TINY, np.zeros(1024, np.uint8)) for _ in range(2)]
    for state in states:
        rng = np.random.default_rng(4)
        state.act[:] = rng.integers(-128, 128, state.act.shape)
        state.wgt[:] = rng.integers(-128, 128, state.wgt.shape)
        state.par.scale[:] = rng.uniform(0.001, 0.01, state.par.scale.shape)
    execute(states[0], one)
    execute(states[0], other)
    execute(states[1], both)
    for name in ("act", "acc", "dram"):
        found, expected = (getattr(state, name) for state in states[::-1])
        np.testing.assert_array_equal(found, expected)


def test_others_stay_two() -> None:
    assert merging(GEMM, replace(GEMM, weight_offset=1)) is None
    assert merging(GEMM, replace(GEMM, extent=(2, 4, 1, 1, 1, 1))) is None
    assert merging(PAIR, replace(PAIR, zero_point=3)) is None
    assert merging(PAIR, replace(PAIR, par_address=2, lookup=True)) is None
    assert merging(STORE, replace(STORE, dram_stride_z=64)) is None


def test_two_are_one_where_what_they_depend_on_lets_them() -> None:
    other = replace(GEMM, acc_address=60)
    program = [GEMM, PAIR, other]
    nothing: frozenset[int] = frozenset()
    assert [m[:3] for m in merges(program, [nothing, frozenset({0}), nothing])] == [(0, 2, 0)]
    assert [m[:3] for m in merges(program, [nothing, nothing, frozenset({1})])] == [(0, 2, 2)]
    assert not list(merges(program, [nothing, frozenset({0}), frozenset({1})]))


def test_a_load_comes_before_one_that_waits_with_what_it_needs() -> None:
    load = Load(memory=Memory.WGT, sram_address=0)
    program = [load, STORE, load, GEMM, load]
    before = [frozenset[int](), frozenset[int](), frozenset({1}), frozenset({0}), frozenset({3})]
    expected = [(0, 9), (5, 90), (91, 99), (20, 30), (100, 110)]
    assert list(overtaken(program, before, expected)) == [[0, 1, 3, 4, 2]]
    before[4] = frozenset({2})
    assert not list(overtaken(program, before, expected))
    assert hastened(program, before, 4) == [0, 1, 2, 4, 3]


def test_two_loads_change_places_where_nothing_between_needs_the_first() -> None:
    load = Load(memory=Memory.WGT, sram_address=0)
    program = [load, GEMM, load, STORE, load]
    nothing: frozenset[int] = frozenset()
    before = [nothing, nothing, nothing, frozenset({2}), nothing]
    assert list(exchanged(program, before, 0)) == [[1, 2, 0, 3, 4], [2, 0, 1, 3, 4]]
    assert list(exchanged(program, before, 1)) == [[0, 1, 4, 2, 3]]
    assert not list(exchanged(program, before, 2))
    assert not list(exchanged(program, [*before[:4], frozenset({3})], 1))


def test_twelve_loads_are_tried_before_one_that_waits_more_than_eight_cycles() -> None:
    load = Load(memory=Memory.WGT, sram_address=0)
    program, before = [load] * 15, [frozenset[int]()] * 15

    def tried(*waits: int) -> list[list[int]]:
        starts = [100 * number for number in range(15)]
        ends = [start + 100 - wait for start, wait in zip(starts, waits, strict=True)]
        return list(overtaken(program, before, list(zip(starts, ends, strict=True))))

    assert not tried(*[8] * 15)
    orders = tried(9, *[0] * 14)
    assert orders == [[0, n, *range(1, n), *range(n + 1, 15)] for n in range(2, 14)]
    orders = tried(*[0] * 11, 9, 30, 12, 0)
    assert [order[12:] for order in orders] == [[12, 14, 13], [13, 12, 14], [14, 12, 13]]


def test_loads_come_so_many_instructions_earlier_but_pass_no_other_load() -> None:
    load = Load(memory=Memory.WGT, sram_address=0)
    program = [GEMM, GEMM, load, GEMM, load, load]
    before = [frozenset[int]()] * 6
    assert hastened(program, before, 0) == [0, 1, 2, 3, 4, 5]
    assert hastened(program, before, 1) == [0, 2, 1, 4, 5, 3]
    assert hastened(program, before, 2) == [2, 0, 4, 5, 1, 3]
    assert hastened(program, before, 9) == [2, 4, 5, 0, 1, 3]
    assert hastened(program, [*before[:4], frozenset({1}), frozenset()], 9) == [2, 0, 1, 4, 5, 3]
