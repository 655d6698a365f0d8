"""The parameters of rows, against their meaning."""

import numpy as np
import pytest
from amaranth.sim import Simulator
from numpy.typing import NDArray

from dovetail.isa.instructions import Row
from dovetail.isa.rows import largest_lane, over_root, over_sum
from dovetail.vta_hw.rows import ROW_LATENCY, RowParameters

LANES = 4


def _expected(
    row: Row,
    largest: bool,
    values: NDArray[np.int32],
    bias: int,
    scale: np.float32,
    start: int,
    shift: int,
) -> tuple[int, int]:
    """Bits of bias and scale of one row."""
    biases, scales = np.array([bias], np.int32), np.array([scale], np.float32)
    starts = np.array([start], np.int32)
    made = {
        Row.LESS: lambda: (starts - values.sum(axis=1, dtype=np.int32), scales),
        Row.OVER: lambda: (starts, over_sum(values, biases, scales)),
        Row.ROOT: lambda: (biases, over_root(values, starts, scales, shift)),
    }
    if row is Row.LESS and largest:
        biases, scales = starts - largest_lane(values), np.ones(1, np.float32)
    else:
        biases, scales = made[row]()
    return int(biases.view(np.uint32)[0]), int(scales.view(np.uint32)[0])


@pytest.mark.parametrize("turns", [1, 2])
def test_rows_equal_their_meaning(turns: int) -> None:
    rng = np.random.default_rng(turns)
    count, lanes = 600, LANES // turns
    values = rng.integers(-(1 << 31), 1 << 31, (count, LANES)) >> rng.integers(0, 31, (count, 1))
    values[: count // 2] = np.abs(values[: count // 2]) >> 2
    values = values.astype(np.int32)
    bits = rng.integers(0, 255 << 23, count).astype(np.uint32)
    rows = [Row(int(each)) for each in rng.integers(1, len(Row), count)]
    cases = [
        (
            rows[k],
            bool(rng.integers(0, 2)) and rows[k] is Row.LESS,
            values[k : k + 1],
            int(rng.integers(-(1 << 31), 1 << 31) >> int(rng.integers(0, 31))),
            np.float32(bits[k : k + 1].view(np.float32)[0]),
            int(rng.integers(-(1 << 23), 1 << 23)),
            int(rng.integers(0, 32)),
        )
        for k in range(count)
    ]
    dut = RowParameters(lanes, turns)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    found = []

    async def feed(context) -> None:  # type: ignore[no-untyped-def]
        for number in range(turns * count + ROW_LATENCY):
            if number < turns * count:
                row, largest, lane, bias, scale, start, shift = cases[number // turns]
                turn = number % turns
                for place in range(lanes):
                    context.set(dut.lanes[place], int(lane[0, turn * lanes + place]))
                context.set(dut.first, turn == 0)
                context.set(dut.row, int(row))
                context.set(dut.largest, largest)
                context.set(dut.start, start)
                context.set(dut.shift, shift)
                context.set(dut.bias, bias if turn == 0 else 0)
                context.set(dut.scale, int(scale.view(np.uint32)) if turn == 0 else 0)
            if number >= ROW_LATENCY:
                found.append((context.get(dut.row_bias), context.get(dut.row_scale)))
            await context.tick()

    simulator.add_testbench(feed)
    simulator.run()
    for case, got in zip(cases, found[turns - 1 :: turns], strict=True):
        assert got == _expected(*case), case
