"""Cycles of units and of DRAM before there are instructions, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.model import (
    RowCosts,
    Traffic,
    issue_counts,
    row_cycles,
    slides,
    unit_cycles,
)
from dovetail.compiler.targets.vta.schedules import Limits
from dovetail.compiler.targets.vta.tile_limits import constants_fit, layer_cycles, limits_of
from dovetail.isa.configs import find_config
from dovetail.isa.memories import Unit
from tests.end_to_end.models import Network

from .programs import TINY
from .test_stream import lowered

LARGE = find_config("zynq7020")


def test_units_issue_each_iteration_and_windows_of_a_row_at_once() -> None:
    net = Network(np.random.default_rng(5))
    x = net.conv(net.input(3, 6, 6), 8, pads=(1, 1, 1, 1))
    y = net.conv(x, 8, pads=(1, 1, 1, 1), depthwise=True)
    z = net.conv(x, 8, pads=(1, 1, 1, 1), strides=(2, 2), depthwise=True)
    layers, _ = lowered(net.model(net.add(net.max_pool(y, 2, 2), z)))
    kernels = [layer.kernel for layer in layers]
    # 2 blocks of 36 pixels with 9 taps; rows of 6 and of 2 * 3 pixels take 8 columns; a pool of 4
    # pixels for each of 9; and two tensors of 9.
    sums, wide, strided, pool = [648, 72], [0, 2 * 6 * 3 * 8], [0, 2 * 3 * 3 * 8], [0, 2 * 9 * 4]
    expected = [sums, wide, strided, pool, [0, 2 * 9]]
    units = Unit.GEMM, Unit.VECTOR
    assert [[unit_cycles(k, TINY)[unit] for unit in units] for k in kernels] == expected
    expected[-1] = [0, 2 * 2 * 9]
    assert [[issue_counts(k, TINY)[unit] for unit in units] for k in kernels] == expected
    assert [slides(k) for k in kernels] == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("size", "start", "cycles", "bursts"),
    [
        (64, None, 16, 1),  # a whole burst of 16 beats
        (256, None, 64, 4),
        (8, None, (12 + 8 / 4) / 4 + 7 / 64 * 3, 1 + 7 / 64),  # 7 of 64 rows are cut in two
        (8, 56, 3.5, 1),  # 12 cycles, then 2 beats; four such bursts are under way
        (8, 60, 6.5, 2),
        (4, 0, 3.25, 1),
    ],
)
def test_a_row_is_cut_at_multiples_of_the_longest_burst(
    size: int, start: int | None, cycles: float, bursts: float
) -> None:
    assert row_cycles(size, TINY, start) == pytest.approx((cycles, bursts))


def test_the_busiest_of_load_store_and_dram_decides() -> None:
    tiny, large = (Traffic(config, RowCosts(config)) for config in (TINY, LARGE))
    for each in (tiny, large):
        each.read(3, 320, 2)
        each.write(2, 64, 1)
    # Three rows of five bursts and two of one: 240 + 32 beats, and turns about two writes.
    assert (tiny.dram_cycles, tiny.cycles) == (240 + 32 + 2 * 2 * 4, 288)
    bursts, rows = 64 / 128 + 1 - 1 / 128, 320 / 128 + 1 - 1 / 128
    assert large.read_bursts == 3 * rows
    assert (large.dram_cycles, large.cycles) == (int(120 + 16 + 2 * 2 * bursts * 4), 176)
    loads, stores = Traffic(TINY, RowCosts(TINY)), Traffic(TINY, RowCosts(TINY))
    loads.read(1, 64, 9)
    stores.write(1, 64, 9)
    assert (loads.cycles, stores.cycles) == (16 + 9 * 16, 16 + 9 * 20)


def test_tiles_may_use_a_bank_of_acc_and_half_of_what_is_loaded() -> None:
    assert limits_of(TINY) == Limits(acc_words=32, wgt_words=64, tap_words=32, rows=8)
    assert limits_of(LARGE) == Limits(acc_words=512, wgt_words=512, tap_words=128, rows=64)


def test_constants_fit_where_half_of_wgt_holds_a_block_and_tap_and_par_all() -> None:
    net = Network(np.random.default_rng(5))
    x = net.conv(net.input(3, 6, 6), 16, pads=(1, 1, 1, 1))
    layers, _ = lowered(net.model(net.conv(x, 16, pads=(1, 1, 1, 1), depthwise=True)))
    sums, depthwise = layers
    # 9 tiles of a block of channels, twice.
    for words, fits in ((32, True), (16, False)):
        assert constants_fit(sums, replace(TINY, wgt_depth=words)) == fits
        assert constants_fit(depthwise, replace(TINY, wgt_depth=words))
    weights, parameters = 4 * 9 * 16, 16 * 8
    assert layer_cycles(sums, TINY) == (4 * 9 * 36, (weights + parameters) // TINY.bus_bytes)
    assert layer_cycles(sums, replace(TINY, wgt_depth=16)) is None
