"""Halves of paired products, on Amaranth's simulator and by the page's formula, against NumPy."""

import numpy as np
from amaranth.hdl import Module, Signal, signed
from amaranth.sim import Simulator

from dovetail.vta_hw.paired_products import (
    high_excess,
    low_excess,
    paired_operand,
    split_product,
)


def test_the_formula_holds_for_every_pair_of_weights_and_every_input() -> None:
    byte = np.arange(-128, 128)
    low, high = byte[:, None], byte[None, :]
    operand = high * 2**17 + 2 * low + 257
    assert operand.min() >= -(1 << 24)
    assert operand.max() < 1 << 24
    for act in np.arange(-255, 256):
        product = operand * act
        low_half = (product >> 1) & 0xFFFF
        high_half = product >> 17
        assert (low_half - 128 * act - (act >> 1) - ((act < 0) << 16) == low * act).all()
        assert (high_half + (act < 0) == high * act).all()


def test_the_gateware_follows_the_formula_at_the_ends_and_at_random() -> None:
    low, high, act = Signal(signed(8)), Signal(signed(8)), Signal(signed(9))
    results = [Signal(signed(17)) for _ in range(2)]
    m = Module()
    low_half, high_half = split_product(paired_operand(low, high) * act)
    m.d.comb += [
        results[0].eq(low_half - 128 * act - low_excess(act) - (high_excess(act) << 16)),
        results[1].eq(high_half + high_excess(act)),
    ]
    rng = np.random.default_rng(1)
    weights, inputs = [-128, -127, -1, 0, 1, 127], [-255, -254, -129, -128, -1, 0, 1, 254, 255]
    ends = np.array(np.meshgrid(weights, weights, inputs)).reshape(3, -1).T
    drawn = rng.integers([-128, -128, -255], [128, 128, 256], (1000, 3))
    cases = np.concatenate([ends, drawn]).tolist()

    async def bench(ctx):  # type: ignore[no-untyped-def]
        for values in cases:
            for signal, value in zip((low, high, act), values, strict=True):
                ctx.set(signal, value)
            await ctx.delay(1e-9)
            found = [ctx.get(result) for result in results]
            assert found == [values[0] * values[2], values[1] * values[2]], values

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
