"""Products of adders and wide products, against Python's."""

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, Shape, Signal, signed, unsigned
from amaranth.sim import Simulator

from dovetail.vta_hw.multiply import (
    ADDERS_LATENCY,
    WIDE_LATENCY,
    product_of_adders,
    wide_product,
)


class Product(Elaboratable):
    """One product of two inputs, as wide as its low ``bits``."""

    def __init__(self, first: Shape, second: Shape, bits: int, *, wide: bool) -> None:
        self.first, self.second = Signal(first), Signal(second)
        self.product = Signal(bits)
        self._wide = wide

    def elaborate(self, platform: object) -> Module:
        m = Module()
        make = wide_product if self._wide else product_of_adders
        product = make(m, self.first, self.second, len(self.product), "product")
        m.d.comb += self.product.eq(product)
        return m


def operands(rng: np.random.Generator, shape: Shape, count: int) -> list[int]:
    """Any values of ``shape``, and its ends among them."""
    low = -(1 << (shape.width - 1)) if shape.signed else 0
    high = low + (1 << shape.width)
    some = rng.integers(low, high, count)
    ends = rng.choice([low, low + 1, 0, 1, high - 1], count)
    return [int(value) for value in np.where(rng.integers(0, 2, count) == 1, some, ends)]


@pytest.mark.parametrize(
    ("first", "second", "bits", "wide"),
    [
        (signed(8), signed(10), 18, False),
        (signed(7), unsigned(16), 15, False),
        (unsigned(5), unsigned(24), 29, False),
        (unsigned(24), unsigned(24), 48, True),
        (signed(16), signed(24), 32, True),
    ],
)
def test_products_are_exact_one_a_cycle(
    first: Shape, second: Shape, bits: int, *, wide: bool
) -> None:
    rng = np.random.default_rng(bits)
    pairs = list(zip(operands(rng, first, 400), operands(rng, second, 400), strict=True))
    top = Product(first, second, bits, wide=wide)
    latency = WIDE_LATENCY if wide else ADDERS_LATENCY
    simulator = Simulator(top)
    simulator.add_clock(1e-6)

    async def bench(context) -> None:  # type: ignore[no-untyped-def]
        for cycle in range(len(pairs) + latency):
            if cycle < len(pairs):
                context.set(top.first, pairs[cycle][0])
                context.set(top.second, pairs[cycle][1])
            if cycle >= latency:
                a, b = pairs[cycle - latency]
                assert context.get(top.product) == a * b % (1 << bits), (a, b)
            await context.tick()

    simulator.add_testbench(bench)
    simulator.run()
