"""The matrix core on Verilator, against the semantics and docs/timing.md."""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
import pytest

from dovetail.isa.instructions import Gemm

from .compute_top import BUILDS, CONFIG, TESTED, TOPS
from .rtl import parameters, simulate_all, start_clock
from .unit_driver import run_units

LEVELS = 6


def extents(rng: np.random.Generator, levels: int, most: int) -> tuple[int, ...]:
    """Random extents with a product of at most ``most``, often 1."""
    values = [1] * levels
    for level in rng.permutation(levels)[: rng.integers(0, levels + 1)]:
        room = most // int(np.prod(values))
        values[level] = int(rng.integers(1, min(room, 9) + 1))
    return tuple(values)


def random_gemm(rng: np.random.Generator, most_stride: int) -> Gemm:
    """Any legal nest of at most 60 tiles; a small ``most_stride`` keeps it to few ACC words."""

    def strides(limit: int) -> tuple[int, ...]:
        return tuple(int(step) for step in rng.integers(-limit, limit + 1, LEVELS))

    near = min(most_stride + 1, CONFIG.acc_depth)
    return Gemm(
        act_address=int(rng.integers(0, 1 << 16)),
        wgt_address=int(rng.integers(0, 1 << 16)),
        acc_address=int(rng.integers(0, near)),
        extent=extents(rng, LEVELS, 60),
        act_stride=strides((1 << 15) - 1),
        wgt_stride=strides((1 << 15) - 1),
        acc_stride=strides(most_stride),
        reduction=int(rng.integers(0, 64)),
        accumulate=bool(rng.integers(0, 2)),
        weight_offset=int(rng.integers(-256, 256)) if rng.integers(0, 2) else 0,
        act_zero_point=int(rng.integers(-128, 128)) if rng.integers(0, 2) else 0,
    )


@cocotb.test()
async def random_sequences(dut: Any) -> None:
    """Sequences with random gaps, from tight reuse of one ACC word to any address."""
    rng, config = np.random.default_rng(parameters()["seed"]), BUILDS[parameters()["build"]]
    await start_clock(dut)
    for most_stride in (0, 1, 2, 3, 40, (1 << 15) - 1):
        await run_units(
            dut, rng, gemm=[random_gemm(rng, most_stride) for _ in range(60)], config=config
        )


@cocotb.test()
async def single_tiles(dut: Any) -> None:
    """One-tile instructions close together, returning to an ACC word at distances from 1 to 9."""
    rng, config = np.random.default_rng(parameters()["seed"]), BUILDS[parameters()["build"]]
    await start_clock(dut)
    program = []
    most_gap = 0 if config.tile_cycles == 1 else 3
    for distance in range(1, 10):
        for step in range(4 * distance):
            tile = replace(random_gemm(rng, 0), extent=(1,) * LEVELS, acc_address=step % distance)
            program.append(replace(tile, accumulate=bool(rng.integers(0, 4))))
    await run_units(dut, rng, gemm=program, most_gap=most_gap, config=config)


@cocotb.test()
async def extreme_values(dut: Any) -> None:
    """Long accumulations into one word; sums wrap at 32 bits in the semantics and here."""
    rng, config = np.random.default_rng(parameters()["seed"]), BUILDS[parameters()["build"]]
    await start_clock(dut)
    long = replace(random_gemm(rng, 0), extent=(4095, 1, 1, 1, 1, 1), acc_stride=(0,) * LEVELS)
    program = [replace(long, act_stride=(1, 0, 0, 0, 0, 0), accumulate=True)]
    program.append(replace(program[0], extent=(1, 7, 1, 5, 3, 11), act_stride=(0,) * LEVELS))
    await run_units(dut, rng, gemm=program, config=config)


@pytest.mark.parametrize("build", TESTED)
def test_all_sequences_equal_the_semantics_in_every_cycle(build: str) -> None:
    """Random ones; single tiles back to back and long accumulations, which see every earlier
    sum."""
    runs = [(random_sequences, {"seed": 1, "build": build})]
    if build in ("plain", "deep_turns", "fast_core"):
        runs.append((single_tiles, {"seed": 3, "build": build}))
    if build in ("plain", "deep_turns"):
        runs.append((extreme_values, {"seed": 4, "build": build}))
    simulate_all(TOPS[build], runs)
