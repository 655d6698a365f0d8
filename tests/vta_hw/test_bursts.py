"""Rows cut into bursts, anywhere in the 4 GiB of addresses."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from amaranth.sim import Simulator, SimulatorContext

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.vta_hw.bursts import BurstCutter

TINY = find_config("tiny")
WORD = 1 << 32
Block = dict[str, int]


def expected(block: Block, config: HardwareConfig) -> Iterator[tuple[int, int]]:
    """Address and beats of every burst: each row cut at multiples of a burst's length."""
    length = config.burst_beats * config.bus_bytes
    for z in range(block["count_z"]):
        for y in range(block["count_y"]):
            at = block["address"] + z * block["stride_z"] + y * block["stride_y"]
            left = block["row_beats"]
            while left:
                beats = min(left, (length - at % length) // config.bus_bytes)
                yield at % WORD, beats
                at, left = at + beats * config.bus_bytes, left - beats


def found(block: Block, config: HardwareConfig) -> list[tuple[int, int]]:
    cutter, bursts = BurstCutter(config), list[tuple[int, int]]()

    async def bench(ctx: SimulatorContext) -> None:
        for name, value in block.items():
            ctx.set(getattr(cutter, name), value)
        ctx.set(cutter.start, 1)
        await ctx.tick()
        ctx.set(cutter.start, 0)
        while ctx.get(cutter.more):
            valid = ctx.get(cutter.valid)
            if valid:
                bursts.append((ctx.get(cutter.burst.address), ctx.get(cutter.burst.beats)))
            ctx.set(cutter.take, valid)
            await ctx.tick()

    simulator = Simulator(cutter)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return bursts


@pytest.mark.parametrize("deep", [False, True])
def test_rows_are_cut_wherever_they_lie(deep: bool) -> None:
    config = replace(TINY, deep_pipelines=deep)
    rng = np.random.default_rng(7)
    for top in range(0, WORD, 1 << 29):
        block = {
            "address": top + 4 * int(rng.integers(1 << 27)),
            "stride_y": 4 * int(rng.integers(-(1 << 29), 1 << 29)),
            "stride_z": 4 * int(rng.integers(-(1 << 29), 1 << 29)),
            "count_y": int(rng.integers(1, 4)),
            "count_z": int(rng.integers(1, 4)),
            "row_beats": int(rng.integers(1, 3 * config.burst_beats)),
        }
        assert found(block, config) == list(expected(block, config)), block
