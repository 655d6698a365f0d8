"""Placement of constants in DRAM, and LOADs of them."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.constant_loads import PIECE_CYCLES, ConstantLoader
from dovetail.compiler.targets.vta.constants import DramMap
from dovetail.isa.configs import find_config
from dovetail.isa.footprint import dram_rows
from dovetail.isa.legality import legality_problem
from dovetail.isa.memories import Memory
from tests.end_to_end.models import Network

from .programs import TINY
from .test_stream import lowered


def test_constants_lie_aligned_and_apart() -> None:
    dram = DramMap(TINY)
    parts = [np.full(size, value, np.int8) for value, size in ((1, 3), (2, 200), (3, 64))]
    place = dram.reserve(10)
    addresses = [dram.add(part) for part in parts]
    image = np.frombuffer(dram.image(), np.int8)
    assert len(image) == dram.size
    assert all(address % TINY.burst_bytes == 0 for address in addresses)
    assert not image[place : place + 10].any()
    for part, address in zip(parts, addresses, strict=True):
        assert np.array_equal(image[address : address + part.size], part)


def test_equal_constants_share_their_place() -> None:
    dram = DramMap(TINY)
    first, other, again = (dram.add(np.full(8, value, np.int8)) for value in (1, 2, 1))
    assert first == again != other


@pytest.mark.parametrize("cut", [False, True])
def test_no_load_takes_long_where_that_is_asked_for(*, cut: bool) -> None:
    net, config = Network(np.random.default_rng(0)), find_config("zynq7020")
    ((layer,), _) = lowered(net.model(net.conv(net.input(4, 5, 5), 4)))
    weights = np.arange(100 * 256).reshape(10, 10, 1, 1, 16, 16).astype(np.int8)
    dram = DramMap(config)
    grant, loads = ConstantLoader(config, dram, cut=cut).load("weights", weights, layer)
    beats = [each.count_x * config.word_bytes(Memory.WGT) // config.bus_bytes for each in loads]
    assert (max(beats) <= PIECE_CYCLES) == cut
    assert max(beats) - min(beats) < max(beats) / 2, "none is short"
    image = np.frombuffer(dram.image(), np.int8)
    assert loads[0].sram_address == grant.start
    words = [image[a : a + size] for each in loads for a, size in dram_rows(each, config)]
    assert np.array_equal(np.concatenate(words), weights.ravel())
    ends = np.cumsum([each.count_x for each in loads])
    assert [each.sram_address for each in loads[1:]] == [grant.start + end for end in ends[:-1]]


@pytest.mark.parametrize("interval", [1, 3, 5, 15])
def test_pieces_of_tables_begin_with_a_beat(interval: int) -> None:
    """Several words of a table share a beat, however slow the memory is."""
    config = find_config("zynq7020")
    config = replace(config, dram=replace(config.dram, beat_interval_cycles=interval))
    net = Network(np.random.default_rng(0))
    ((layer, *_), _) = lowered(net.model(net.unary(net.input(4, 5, 5), "Sigmoid")))
    table = np.repeat(np.arange(256)[:, None], config.block, 1).astype(np.uint8).view(np.int8)
    _, loads = ConstantLoader(config, DramMap(config), cut=True).load("table", table, layer)
    assert [legality_problem(each, config) for each in loads] == [None] * len(loads)
    assert sum(each.count_x for each in loads) == 256
    assert (len(loads) > 1) == (64 * interval > PIECE_CYCLES)
