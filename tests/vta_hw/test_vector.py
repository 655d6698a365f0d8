"""The vector unit on Verilator, against the semantics and docs/timing.md."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import cocotb
import numpy as np
import pytest

from dovetail.isa.footprint import scratchpad_reads, scratchpad_writes
from dovetail.isa.instructions import Finish, Fold, Multiplier, Vector
from dovetail.isa.memories import Memory

from .compute_top import BUILDS, CONFIG, TESTED, TOPS
from .rtl import parameters, simulate_all, start_clock
from .test_gemm import extents
from .unit_driver import run_units, touched_banks

LEVELS = 5
FOLDS = [(fold, Multiplier.TAP) for fold in Fold]
FOLDS += [(Fold.MAC, multiplier) for multiplier in Multiplier if multiplier]


@dataclass(frozen=True, slots=True)
class Operation:
    """One of everything VECTOR can be told to do."""

    source: Memory
    destination: Memory
    lookup: bool
    fold: Fold
    multiplier: Multiplier
    finish: Finish


OPERATIONS = [
    Operation(source, destination, lookup, fold, multiplier, finish)
    for source, (destination, lookup), (fold, multiplier), finish in product(
        (Memory.ACT, Memory.ACC),
        ((Memory.ACT, False), (Memory.ACT, True), (Memory.ACC, False)),
        FOLDS,
        tuple(Finish)[: Finish.CUSTOM],
    )
]


def random_vector(rng: np.random.Generator, operation: Operation, most: int = 60) -> Vector:
    """A legal nest of at most ``most`` elements that reads no bank it writes."""
    while True:
        instruction = _any_vector(rng, operation, most)
        reads = touched_banks(scratchpad_reads(instruction, CONFIG))
        if not reads & touched_banks(scratchpad_writes(instruction, CONFIG)):
            return instruction


def _any_vector(rng: np.random.Generator, operation: Operation, most: int) -> Vector:
    def integers(low: int, high: int, count: int) -> tuple[int, ...]:
        return tuple(int(value) for value in rng.integers(low, high + 1, count))

    def integer(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    low, high = sorted(integers(-128, 127, 2)) if rng.integers(0, 2) else (-128, 127)
    width = integer(1, 23)
    reach = int(rng.choice([1, 3, (1 << 15) - 1]))
    return Vector(
        source=operation.source,
        destination=operation.destination,
        lookup=operation.lookup,
        fold=operation.fold,
        multiplier=operation.multiplier,
        finish=operation.finish,
        source_address=integer(0, (1 << 16) - 1),
        destination_address=integer(0, (1 << 16) - 1),
        extent=extents(rng, LEVELS, most),
        source_stride=integers(-reach, reach, LEVELS),
        destination_stride=integers(-reach, reach, LEVELS - 1),
        reduction_levels=integer(1, LEVELS),
        zero_point=integer(-128, 127),
        low=low,
        high=high,
        shift=integer(0, 31),
        m0=integer(-1 << width, (1 << width) - 1),
        m1=integer(-1 << width, (1 << width) - 1),
        par_address=integer(0, (1 << 12) - 1),
        par_stride=integers(-1 << 11, (1 << 11) - 1, LEVELS - 1),
        tap_address=integer(0, (1 << 12) - 1),
        tap_stride=integers(-1 << 11, (1 << 11) - 1, LEVELS),
        tab_address=256 * integer(0, 15),
        window_skip=integer(0, 3),
        wide_window=bool(integer(0, 1)),
    )


def random_product(rng: np.random.Generator, first: int, second: int) -> Vector:
    """Words times others, of which three stay while 4 x 5 move; what is added to both."""
    operation = Operation(
        (Memory.ACT, Memory.ACC)[rng.integers(0, 2)],
        Memory.ACC,
        False,
        Fold.MAC,
        Multiplier.PAIR,
        Finish.NONE,
    )
    while True:
        drawn = random_vector(rng, operation, most=1)
        moved = replace(
            drawn,
            extent=(2, 4, 5, 3, 1),
            reduction_levels=1,
            source_stride=(drawn.source_stride[0], 1, 4, 20, 0),
            tap_stride=(0, 0, 0, 1, 0),
            destination_stride=(1, 4, 20, 0),
            m0=first,
            m1=second,
        )
        reads = touched_banks(scratchpad_reads(moved, CONFIG))
        if not reads & touched_banks(scratchpad_writes(moved, CONFIG)):
            return moved


@cocotb.test()
async def every_operation(dut: Any) -> None:
    """Each operation, in random order."""
    rng, config = np.random.default_rng(parameters()["seed"]), BUILDS[parameters()["build"]]
    await start_clock(dut)
    program = [random_vector(rng, OPERATIONS[k]) for k in rng.permutation(len(OPERATIONS))]
    await run_units(dut, rng, vector=program, config=config)


@cocotb.test()
async def single_elements(dut: Any) -> None:
    """One-element instructions of changing kind, from ACC to ACT, so that none has to wait."""
    rng, config = np.random.default_rng(parameters()["seed"]), BUILDS[parameters()["build"]]
    await start_clock(dut)
    kinds = [one for one in OPERATIONS if one.source is not one.destination]
    for source in (Memory.ACT, Memory.ACC):
        chosen = [one for one in kinds if one.source is source]
        program = [random_vector(rng, chosen[k], most=1) for k in rng.integers(0, len(chosen), 200)]
        await run_units(dut, rng, vector=program, most_gap=0, config=config)


@cocotb.test()
async def extreme_values(dut: Any) -> None:
    """Shifts and limits at the ends of int32, multipliers at the ends of 24 bits, and products of
    elements that are raised by as much as can be.
    """
    rng, config = np.random.default_rng(parameters()["seed"]), BUILDS[parameters()["build"]]
    await start_clock(dut)
    words = np.array([-(1 << 31), -(1 << 31) + 1, (1 << 31) - 1, -1, 0, 1, -(1 << 23), 1 << 23])
    edges = np.resize(words, (CONFIG.acc_depth, CONFIG.block)).astype(np.int32)
    program = []
    for shift, multiplier in product(range(32), (None, -(1 << 23), (1 << 23) - 1)):
        fold = Fold.ADD if multiplier is None else Fold.MAC
        kind = Multiplier.TAP if multiplier is None else Multiplier.IMMEDIATE
        finish = Finish.SHIFT
        operation = Operation(Memory.ACC, Memory.ACT, False, fold, kind, finish)
        nest = replace(
            random_vector(rng, operation, most=1), extent=(2, 9, 1, 1, 1), reduction_levels=1
        )
        nest = replace(nest, m0=multiplier or 0, m1=multiplier or 0)
        program.append(replace(nest, source_stride=(1, 1, 0, 0, 0), shift=shift))
    program += [random_product(rng, *offsets) for offsets in product((-256, -1, 0, 255), repeat=2)]
    await run_units(dut, rng, vector=program, acc=edges, config=config)


@pytest.mark.parametrize("build", [each for each in TESTED if each != "fast_core"])
def test_every_operation_equals_the_semantics_in_every_cycle(build: str) -> None:
    """Single elements of changing kind, without a bubble, and the ends of int32 among them."""
    cases = [(every_operation, 6), (single_elements, 4), (extreme_values, 5)]
    cases += [(every_operation, 1), (every_operation, 2)] if build == "plain" else []
    runs = [(case, {"seed": seed, "build": build}) for case, seed in cases]
    simulate_all(TOPS[build], runs)
