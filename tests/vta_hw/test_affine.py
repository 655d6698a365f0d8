"""The walker of loop nests, against the addresses of ``dovetail.isa.footprint.nest``."""

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from dovetail.isa.footprint import nest
from dovetail.vta_hw.affine import NestWalker
from dovetail.vta_hw.ports import ADDRESS_BITS

from .test_gemm import extents

LEVELS = 4
EXTENT_BITS = 6
OPERANDS = ("left", "right")
LIMIT = 1 << ADDRESS_BITS


@pytest.mark.parametrize("cycles", [1, 2])
def test_walked_nests_have_the_addresses_and_flags_of_their_indices(cycles: int) -> None:
    """Nests of any shape, one after the other with gaps and without, in every cycle."""
    rng = np.random.default_rng(1)
    walker = NestWalker(LEVELS, EXTENT_BITS, OPERANDS, cycles)
    simulator = Simulator(walker)
    simulator.add_clock(1e-6)

    async def start(context: Any) -> tuple[tuple[int, ...], dict[str, np.ndarray]]:
        counts = extents(rng, LEVELS, 63)
        context.set(walker.start, 1)
        addresses = {}
        for level, count in enumerate(counts):
            context.set(walker.extents[level], count)
        for name in OPERANDS:
            base = int(rng.integers(0, LIMIT))
            strides = [int(step) for step in rng.integers(0, LIMIT, LEVELS)]
            context.set(getattr(walker, f"{name}_base"), base)
            for level, step in enumerate(strides):
                context.set(getattr(walker, f"{name}_strides")[level], step)
            addresses[name] = nest(base, counts, strides, LIMIT)
        await context.tick()
        # What is not read without start must not matter.
        context.set(walker.start, 0)
        for name in OPERANDS:
            context.set(getattr(walker, f"{name}_base"), int(rng.integers(0, LIMIT)))
        return counts, addresses

    async def bench(context: Any) -> None:
        assert not context.get(walker.valid)
        for _ in range(150):
            counts, addresses = await start(context)
            visits = int(np.prod(counts))
            indices = np.unravel_index(np.arange(visits), counts, order="F")
            for step in range(cycles * visits):
                visit, turn = divmod(step, cycles)
                index = [int(along[visit]) for along in indices]
                assert context.get(walker.valid)
                assert context.get(walker.last) == (step == cycles * visits - 1)
                assert context.get(walker.turn) == 1 << turn
                assert context.get(walker.index_odd) == index[0] % 2
                for level, place in enumerate(index):
                    assert context.get(walker.index_zero[level]) == (place == 0)
                    assert context.get(walker.index_last[level]) == (place == counts[level] - 1)
                for name in OPERANDS:
                    assert context.get(getattr(walker, name)) == addresses[name][visit]
                if step < cycles * visits - 1:
                    await context.tick()
            # The next nest starts in the last visit's cycle, or some idle cycles later.
            for _ in range(rng.integers(0, 3) * rng.integers(0, 2)):
                await context.tick()
                assert not context.get(walker.valid)

    simulator.add_testbench(bench)
    simulator.run()
