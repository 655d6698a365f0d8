"""A finish of another package in a lane of the vector unit."""

import gc
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Signal
from amaranth.sim import Simulator

from dovetail.isa.entry_points import ExtensionError
from dovetail.isa.finishes import MOST_LATENCY, OwnFinish
from dovetail.vta_hw.vector_lane import VectorLane, lane_cycles

VALUES = [0, 1, -1, 5, -5, 127, -128, -(1 << 31), (1 << 31) - 1]


def lane_of(finish: OwnFinish, deep: bool) -> VectorLane:
    cycles = lane_cycles(deep, 1 + deep)
    return VectorLane(
        cycles, deep=deep, turns=1, fixed_rounding=False, wide=False, own_finish=finish
    )


def finished(finish: OwnFinish, deep: bool, shift: int, values: list[int]) -> list[int]:
    """Results of a lane that takes one value a cycle."""
    lane, cycles, found = lane_of(finish, deep), lane_cycles(deep, 1 + deep), []
    start, end = cycles.arrived, cycles.finished

    async def bench(ctx: Any) -> None:
        for port, value in ((lane.from_acc, 1), (lane.own, 1), (lane.operand, shift)):
            ctx.set(port, value)
        for cycle in range(len(values) + end - start):
            ctx.set(lane.acc, values[min(cycle, len(values) - 1)])
            if cycle >= end - start:
                found.append(ctx.get(lane.finished))
            await ctx.tick()

    simulator = Simulator(lane)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.mark.parametrize("deep", [False, True])
def test_it_is_computed_in_the_cycles_of_every_other_finish(leaky: OwnFinish, deep: bool) -> None:
    rng = np.random.default_rng(1)
    values = [*VALUES, *map(int, rng.integers(-300, 300, 40))]
    for shift in (0, 1, 7, 31):
        wanted = leaky.meaning(np.array(values, np.int32), shift)
        assert finished(leaky, deep, shift, values) == wanted.tolist()


@pytest.mark.parametrize("latency", [0, MOST_LATENCY])
def test_it_may_take_any_of_the_cycles_there_are(leaky: OwnFinish, latency: int) -> None:
    def negated(m: Any, value: Any, shift: Any) -> Any:
        result = (-value)[:32].as_signed()
        for _ in range(latency):
            before, result = result, Signal(result.shape())
            m.d.sync += result.eq(before)
        return result

    other = replace(leaky, gateware=negated, latency=latency)
    assert finished(other, False, 0, [3, -4, 7]) == [-3, 4, -7]


def test_gateware_of_another_width_is_refused(leaky: OwnFinish) -> None:
    narrow = replace(leaky, gateware=lambda m, value, shift: value[:8])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Amaranth's, of what was not elaborated to its end
        with pytest.raises(ExtensionError, match=r"gives unsigned\(8\); required signed\(32\)"):
            lane_of(narrow, False).elaborate(None)
        gc.collect()
