"""The scratchpads on Verilator: every port at once, against arrays."""

from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped
from cocotb.triggers import FallingEdge

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import scratchpad_reads, scratchpad_writes
from dovetail.isa.instructions import Finish, Fold, Gemm, Instruction, Multiplier, Vector
from dovetail.isa.memories import Memory
from dovetail.vta_hw.banked_scratchpad import BankedScratchpad
from dovetail.vta_hw.load_writes import table_rows, write_port
from dovetail.vta_hw.ports import ReadPort, WritePort
from dovetail.vta_hw.scratchpad import SimpleScratchpad
from dovetail.vta_hw.table_scratchpad import TablePort, TableScratchpad

from .compute_top import CONFIG, make_compute_top
from .rtl import parameters, simulate, start_clock
from .test_gemm import random_gemm
from .test_vector import Operation, random_vector
from .unit_driver import run_units, touched_banks

READERS, WRITERS = ("gemm", "vector", "store"), ("load", "vector")
ADDRESSES = 1 << 16


class ScratchpadTop(wiring.Component):
    """ACT, PAR and TAB with all their ports."""

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        act, par = (8 * config.word_bytes(memory) for memory in (Memory.ACT, Memory.PAR))
        super().__init__(
            {
                **{f"read_{name}": In(ReadPort(act)) for name in READERS},
                **{f"write_{name}": In(WritePort(act)) for name in WRITERS},
                "read_par": In(ReadPort(par)),
                "write_par": In(WritePort(par)),
                "read_tab": In(TablePort(config.block)),
                "write_tab": In(write_port(Memory.TAB, config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.act = act = BankedScratchpad(self._config, Memory.ACT, READERS, WRITERS)
        m.submodules.par = par = SimpleScratchpad(self._config, Memory.PAR)
        m.submodules.tab = tab = TableScratchpad(self._config)
        for name in (*(f"read_{n}" for n in READERS), *(f"write_{n}" for n in WRITERS)):
            connect(m, flipped(getattr(self, name)), getattr(act, name))
        for name, memory in (("par", par), ("tab", tab)):
            read = par.read_0 if memory is par else tab.read
            connect(m, flipped(getattr(self, f"read_{name}")), read)
            connect(m, flipped(getattr(self, f"write_{name}")), memory.write)
        return m


def make_scratchpad_top() -> ScratchpadTop:
    """The scratchpads of the smallest configuration."""
    return ScratchpadTop(CONFIG)


class Model:
    """The right contents of one memory, uint8[depth, word bytes], and the ports that reach it."""

    def __init__(self, dut: Any, memory: Memory) -> None:
        self.dut = dut
        self.size = CONFIG.word_bytes(memory)
        self.words = np.zeros((CONFIG.depth(memory), self.size), np.uint8)

    def port(self, name: str, member: str) -> Any:
        return getattr(self.dut, f"{name}__{member}")

    def write(self, rng: np.random.Generator, name: str, address: int) -> tuple[int, np.ndarray]:
        """Write a random word in this cycle; return what to apply to ``words`` at its end."""
        data = rng.integers(0, 256, self.size).astype(np.uint8)
        # Of TAB several words may be written at once, each with data of its own.
        piece = address % table_rows(CONFIG) if name == "write_tab" else 0
        self.port(name, "enable").value = 1 << piece
        self.port(name, "address").value = address
        word = int.from_bytes(data.tobytes(), "little")
        self.port(name, "data").value = word << 8 * self.size * piece
        return address % len(self.words), data

    def read(self, name: str, address: int) -> np.ndarray:
        """Read in this cycle; return what follows in the next."""
        self.port(name, "enable").value = 1
        self.port(name, "address").value = address
        return self.words[address % len(self.words)].copy()

    def check(self, name: str, expected: np.ndarray) -> None:
        data = int(self.port(name, "data").value).to_bytes(self.size, "little")
        found = np.frombuffer(data, np.uint8)
        assert (found == expected).all(), f"{name}: {found}, not {expected}"


@cocotb.test()
async def all_ports_at_once(dut: Any) -> None:
    """Every port in use or idle at random; readers apart by bank, writers too; 16-bit addresses.

    No word is written and read in the same cycle: what such a read gives is not defined.
    """
    rng = np.random.default_rng(parameters()["seed"])
    await start_clock(dut)
    act, par, tab = (Model(dut, memory) for memory in (Memory.ACT, Memory.PAR, Memory.TAB))
    words = CONFIG.bank_words(Memory.ACT)
    expected: list[tuple[Model, str, np.ndarray]] = []
    lanes = np.arange(CONFIG.block)
    # First every word is written once, since what a memory holds at first is not defined.
    for address in range(max(len(model.words) for model in (act, par, tab))):
        for model, name in ((act, "load"), (par, "par"), (tab, "tab")):
            place, data = model.write(rng, f"write_{name}", address)
            model.words[place] = data
        await FallingEdge(dut.clk)
    for _ in range(3000):
        for name in (*WRITERS, "par", "tab"):
            getattr(dut, f"write_{name}__enable").value = 0
        for name in (*READERS, "par", "tab"):
            getattr(dut, f"read_{name}__enable").value = 0
        for model, name, word in expected:
            model.check(name, word)
        expected, writes = [], []
        bank_order = rng.permutation(CONFIG.act_banks)
        for name, bank in zip(WRITERS, bank_order, strict=False):
            if rng.integers(0, 2):
                address = int(rng.integers(0, ADDRESSES // words // CONFIG.act_banks))
                address = (address * CONFIG.act_banks + int(bank)) * words
                address += int(rng.integers(0, words // 2)) * 2
                writes.append((act, *act.write(rng, f"write_{name}", address)))
        for name, bank in zip(READERS, rng.permutation(CONFIG.act_banks), strict=False):
            if rng.integers(0, 2):
                address = int(bank) * words + int(rng.integers(0, words))
                if address not in [place for model, place, _ in writes if model is act]:
                    port = f"read_{name}"
                    expected.append((act, port, act.read(port, address)))
        for model, name in ((par, "par"), (tab, "tab")):
            if rng.integers(0, 2):
                address = 2 * int(rng.integers(0, ADDRESSES // 2))
                writes.append((model, *model.write(rng, f"write_{name}", address)))
        expected.append((par, "read_par", par.read("read_par", 2 * int(rng.integers(0, 999)) + 1)))
        places = 2 * rng.integers(0, ADDRESSES // 2, CONFIG.block) + 1
        dut.read_tab__enable.value = 1
        dut.read_tab__address.value = sum(int(p) << 16 * lane for lane, p in enumerate(places))
        expected.append((tab, "read_tab", tab.words[places % len(tab.words), lanes]))
        await FallingEdge(dut.clk)
        for model, place, data in writes:
            model.words[place] = data


@cocotb.test()
async def both_units_at_once(dut: Any) -> None:
    """GEMM and VECTOR instructions in banks of their own, all in flight together."""
    rng = np.random.default_rng(parameters()["seed"])
    await start_clock(dut)
    for split in (1, 2, 3):
        gemm: list[Gemm] = []
        while len(gemm) < 80:
            tile = random_gemm(rng, 3)
            if all(bank < split for _, bank in _banks(tile)):
                gemm.append(tile)
        vector: list[Vector] = []
        while len(vector) < 80:
            source, destination = (
                (Memory.ACT, Memory.ACC)[k] for k in rng.integers(0, 2, 2).tolist()
            )
            finish = Finish(int(rng.integers(0, 3)))
            kind = Operation(source, destination, False, Fold.ADD, Multiplier.TAP, finish)
            step = random_vector(rng, kind, most=12)
            if all(bank >= split for _, bank in _banks(step)):
                vector.append(step)
        await run_units(dut, rng, gemm=gemm, vector=vector)


def _banks(instruction: Instruction) -> set[tuple[Memory, int]]:
    """The ACT and ACC banks that the instruction reads or writes."""
    touches = scratchpad_reads(instruction, CONFIG) + scratchpad_writes(instruction, CONFIG)
    return touched_banks([t for t in touches if t.memory in (Memory.ACT, Memory.ACC)])


def test_every_port_of_the_scratchpads_works_while_all_others_do() -> None:
    simulate(make_scratchpad_top, all_ports_at_once, seed=1)


def test_gemm_and_vector_in_different_banks_do_not_disturb_each_other() -> None:
    simulate(make_compute_top, both_units_at_once, seed=2)
