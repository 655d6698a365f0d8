"""The part of LOAD that makes weights of nibbles, for every shape of words and beats."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator, SimulatorContext

from dovetail.isa.configs import find_config
from dovetail.isa.nibbles import as_nibbles
from dovetail.vta_hw.load import Load
from dovetail.vta_hw.nibbles import NibbleWeights

TINY = find_config("tiny")


@pytest.mark.parametrize("sizes", [(4, 4), (8, 4), (8, 8), (16, 4), (16, 8), (16, 16), (32, 4)])
def test_each_beat_of_nibbles_becomes_two_of_weights(sizes: tuple[int, int]) -> None:
    config = replace(TINY, block=sizes[0], bus_bytes=sizes[1])
    rng = np.random.default_rng(sum(sizes))
    words = rng.integers(-8, 8, (3, config.block, config.block))
    words = (words * rng.integers(1, 17, (3, config.block, 1))).astype(np.int8)
    words[0] = 16 * rng.integers(-8, 8, words[0].shape)
    unit = NibbleWeights(config)
    head, bus = config.nibble_head_bytes // config.bus_bytes, config.bus_bytes
    packed = as_nibbles(words, config).reshape(len(words), -1, bus)
    made: list[bytes] = []

    async def drive(ctx: SimulatorContext) -> None:
        for word in packed:
            for index, beat in enumerate(word):
                ctx.set(unit.beat, 1)
                ctx.set(unit.index, index)
                ctx.set(unit.data, int.from_bytes(beat.tobytes(), "little"))
                await ctx.tick()
                if index >= head:
                    made.append(int(ctx.get(unit.weights)).to_bytes(2 * bus, "little"))
                ctx.set(unit.beat, 0)
                ctx.set(unit.data, int(rng.integers(0, 256)))
                for _ in range(int(rng.integers(0, 3))):
                    await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    found = np.frombuffer(b"".join(made), np.int8).reshape(words.shape)
    np.testing.assert_array_equal(found, words)


def test_a_configuration_without_nibbles_has_nothing_for_them() -> None:
    with_them, without = (
        rtlil.convert(Load(replace(TINY, nibble_weights=each))) for each in (True, False)
    )
    assert "expand" in with_them
    assert "expand" not in without
    assert "multipliers" not in without
