"""The gateware around an accelerator whose multipliers have a clock of their own."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.bitstreams.emulator import Emulator
from dovetail.bitstreams.flow import write_sources
from dovetail.bitstreams.zynq_top import require_ports
from dovetail.isa.configs import find_config
from dovetail.isa.errors import ConfigError
from dovetail.isa.instructions import Finish, Instruction, Load, Store, Vector
from dovetail.isa.launch import Launch
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.program import program_to_bytes
from dovetail.runtime.board.device import BoardDevice
from dovetail.vta_sim.device import SimulatorDevice
from tests.instructions import gemm

from .boards import SMALL_BOARD, device_name

CONFIG = replace(
    SMALL_BOARD.config,
    block=4,
    bus_bytes=4,
    lane_groups=2,
    core_clock_ratio=2,
    deep_pipelines=True,
)
"""Its bus is half as wide as what the link moves at a time; the other board's is as wide."""

BOARD = replace(SMALL_BOARD, name="small_fast", config=CONFIG)
WORDS = 16
"""Inputs, and tiles of weights, all pairs of which are multiplied."""
WEIGHTS, PROGRAM, RESULTS, END = 64, 320, 832, 864
"""Addresses; the inputs are at 0.  Every byte travels over the serial line, both ways."""


def products() -> list[Instruction]:
    """Each input by a tile of its own, added up over four, shifted into bytes."""
    loads = frozenset({Unit.LOAD})
    act = Load(memory=Memory.ACT, dram_address=0, sram_address=0, count_x=WORDS, act_write_banks=1)
    wgt = Load(
        memory=Memory.WGT,
        dram_address=WEIGHTS,
        sram_address=0,
        count_x=WORDS,
        post=frozenset({Unit.GEMM}),
    )
    sums = gemm(
        (4, 1, 1, 0),
        (4, 4, 4, 1),
        reduction=1,
        act_read_banks=1,
        acc_banks=1,
        wait=loads,
        post=frozenset({Unit.VECTOR}),
    )
    vector = Vector(
        source=Memory.ACC,
        destination=Memory.ACT,
        source_address=0,
        destination_address=WORDS,
        extent=(1, 4, 1, 1, 1),
        source_stride=(0, 1, 0, 0, 0),
        destination_stride=(1, 0, 0, 0),
        finish=Finish.SHIFT,
        shift=9,
        act_write_banks=1,
        acc_banks=1,
        wait=frozenset({Unit.GEMM}),
        post=frozenset({Unit.STORE}),
    )
    store = Store(
        dram_address=RESULTS,
        sram_address=WORDS,
        count_x=4,
        act_read_banks=1,
        wait=frozenset({Unit.VECTOR}),
    )
    return [act, wgt, sums, vector, store]


def launch(seed: int) -> Launch:
    dram = np.random.default_rng(seed).integers(0, 256, END, dtype=np.uint8)
    program = products()
    code = np.frombuffer(program_to_bytes(program), np.uint8)
    dram[PROGRAM : PROGRAM + code.size] = code
    return Launch(CONFIG, dram, PROGRAM, len(program), 100_000)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(BOARD, garbage=True) as running:
        yield running


def test_the_gateware_multiplies_as_the_simulator_in_as_many_cycles(emulator: Emulator) -> None:
    device = BoardDevice(device_name(emulator.port))
    results = set()
    for seed in range(3):
        # Resets come at any cycle: which half of one the multipliers are in is found again.
        if seed % 2:
            emulator.reset()
        found, expected = device.run(launch(seed)), SimulatorDevice().run(launch(seed))
        assert found.finished
        assert np.array_equal(found.dram, expected.dram)
        assert found.counters == expected.counters
        inputs, weights = np.split(expected.dram.view(np.int8).astype(int)[:PROGRAM], [WEIGHTS])
        tiles = weights.reshape(4, 4, 4, 4) @ inputs.reshape(4, 4, 4, 1)
        stored = found.dram[RESULTS : RESULTS + 16].view(np.int8).reshape(4, 4)
        exact = tiles.sum(axis=1)[..., 0] / 512
        assert np.abs(np.clip(exact, -128, 127) - stored).max() <= 1
        results.add(found.dram[RESULTS : RESULTS + 16].tobytes())
    device.close()
    assert len(results) == 3


@pytest.mark.filterwarnings("ignore:Using platform.request:DeprecationWarning")
def test_an_ecp5_board_makes_both_clocks_in_one_pll(tmp_path: Path) -> None:
    pytest.importorskip("amaranth_boards", reason="needs the extra board")
    write_sources(replace(BOARD, baud=2_000_000), tmp_path)
    text = (tmp_path / "top.il").read_text()
    (cell,) = re.findall(r"cell \\EHXPLLL.*?\n  end", text, re.DOTALL)
    wires = dict(re.findall(r"connect \\(CLKO\w+) (.*)", cell))
    assert wires["CLKOS2"] == "\\core_clk"
    assert "parameter \\CLKOP_DIV 16\n" in cell
    assert "parameter \\CLKOS2_DIV 8\n" in cell


def test_a_zynq_has_one_clock() -> None:
    config = replace(find_config("ecp5_85_fast"), name="two")
    with pytest.raises(ConfigError, match="two: core_clock_ratio = 2; required 1 on a Zynq-7000"):
        require_ports(config)
