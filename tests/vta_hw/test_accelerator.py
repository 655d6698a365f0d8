"""The whole accelerator on Verilator: random programs, every error, memories of every kind."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from dovetail.isa import semantics
from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.configs import find_config
from dovetail.isa.encoding import encode
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Instruction, Load, Store
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.registers import REGISTERS, Control, ErrorCode, Status
from dovetail.isa.state import MachineState
from dovetail.vta_hw.accelerator import Accelerator
from tests.differential.generate import generate
from tests.instructions import gemm

from .axi_memory import AXI_MEMORIES, Dram, attach_memory
from .rtl import parameters, simulate_all, start_clock

CONFIG = find_config("tiny")
OFFSETS = {register.name: register.offset for register in REGISTERS}
DRAM_BYTES = 1 << 16
PROGRAM = 0xA000
"""Where programs of this file lie; the data they use lies below."""
IMAGE = 0xC000
"""Where the contents of the scratchpads lie."""

TO_LOAD = frozenset({Unit.LOAD})
TO_STORE = frozenset({Unit.STORE})


def make_accelerator() -> Accelerator:
    """The accelerator of ``CONFIG``."""
    return Accelerator(CONFIG)


@dataclass
class Bench:
    """The accelerator under test, its memory, and the host's side of its registers."""

    dut: Any
    dram: Dram
    host: AxiLiteMaster
    rng: np.random.Generator

    async def write(self, name: str, value: int) -> None:
        await self.host.write_dword(OFFSETS[name], value)

    async def read(self, name: str) -> int:
        return int(await self.host.read_dword(OFFSETS[name]))

    def place(self, program: Sequence[Instruction], address: int = PROGRAM) -> None:
        """Put ``program`` into memory."""
        code = b"".join(encode(instruction) for instruction in program)
        self.dram.data[address : address + len(code)] = code

    async def start(self, count: int, address: int = PROGRAM, watchdog: int = 20_000) -> None:
        """Set the machine up and start it; the window is all of memory unless set after."""
        await self.write("PROGRAM_ADDRESS", address)
        await self.write("PROGRAM_COUNT", count)
        await self.write("WATCHDOG", watchdog)
        await self.write("CONTROL", 1 << Control.START)
        assert self.dut.irq.value == 0

    async def finish(self) -> int:
        """Wait for the interrupt; return STATUS."""
        while self.dut.irq.value == 0:
            await RisingEdge(self.dut.clk)
        return await self.read("STATUS")

    async def run(self, program: Sequence[Instruction], address: int = PROGRAM) -> None:
        """Run ``program`` to its end."""
        self.place(program, address)
        await self.start(len(program), address)
        assert await self.finish() == 1 << Status.DONE
        assert await self.read("INSTRUCTIONS_LOW") == len(program)
        assert await self.read("ERROR_CODE") == ErrorCode.NONE


async def begin(dut: Any) -> Bench:
    """Reset, and attach memory and host."""
    values = parameters()
    rng = np.random.default_rng(values["seed"])
    dram = Dram(bytearray(rng.bytes(DRAM_BYTES)))
    await start_clock(dut)
    attach_memory(dut, values["memory"], dram, np.random.default_rng(values["seed"] + 1))
    host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "host_"), dut.clk, dut.rst)
    bench = Bench(dut, dram, host, rng)
    await bench.write("WINDOW_BASE", 0)
    await bench.write("WINDOW_LIMIT", DRAM_BYTES - 1)
    return bench


def fill_program(dram: Dram, state: MachineState) -> list[Instruction]:
    """Put the scratchpads of ``state`` into memory; return the loads that bring them in."""
    program: list[Instruction] = []
    place = IMAGE
    for memory in Memory:
        data = state.words(memory).tobytes()
        dram.data[place : place + len(data)] = data
        whole = Load(
            memory=memory, sram_address=0, dram_address=place, count_x=CONFIG.depth(memory)
        )
        program.append(with_bank_masks(whole, CONFIG))
        place += len(data)
    assert place <= DRAM_BYTES
    return program


@cocotb.test()
async def random_programs(dut: Any) -> None:
    """Fill the scratchpads, run a program of all units, store ACT; compare with the semantics."""
    bench = await begin(dut)
    save = Store(dram_address=0, sram_address=0, count_x=CONFIG.act_depth)
    save = with_bank_masks(save, CONFIG)
    for number in range(parameters()["programs"]):
        case = generate(CONFIG, parameters()["seed"], number)
        start = case.state.dram_base
        initial = case.initial()
        bench.dram.data[start : start + len(initial.dram)] = initial.dram.tobytes()
        fill = fill_program(bench.dram, initial)
        await bench.run(fill)
        await bench.run(case.instructions, case.program_address)
        await bench.run([save])
        expected = replace(
            initial, dram=np.frombuffer(bytes(bench.dram.data), np.uint8).copy(), dram_base=0
        )
        expected.dram[start : start + len(initial.dram)] = initial.dram
        for instruction in (*case.instructions, save):
            semantics.execute(expected, instruction)
        assert bench.dram.data == expected.dram.tobytes()


BEFORE = with_bank_masks(Store(dram_address=0x100, sram_address=0, count_x=40), CONFIG)
AFTER = with_bank_masks(Store(dram_address=0x4000, sram_address=0, count_x=300), CONFIG)
LOAD = with_bank_masks(
    Load(memory=Memory.WGT, sram_address=0, dram_address=0x2000, count_x=40, post=TO_STORE), CONFIG
)
QUIET = replace(LOAD, post=frozenset())
DEADLOCK = gemm(wait=TO_LOAD, post=TO_STORE)
WAITS_FOR_LOAD = replace(AFTER, wait=TO_LOAD)
WAITS_FOR_GEMM = replace(AFTER, wait=frozenset({Unit.GEMM}))


@dataclass(frozen=True)
class Failure:
    """A program that must be stopped, at ``index`` with ``code``.

    patch: bytes written over the program at an offset from its start.
    window, bad: window set, and address ranges that answer with an error.
    """

    program: tuple[Instruction, ...]
    code: ErrorCode
    index: int
    patch: tuple[int, bytes] = (0, b"")
    window: tuple[int, int] = (0, DRAM_BYTES - 1)
    bad: tuple[range, ...] = ()


FAILURES = {
    "illegal": Failure(
        (BEFORE, LOAD, AFTER),
        ErrorCode.ILLEGAL_INSTRUCTION,
        2,
        patch=(3 * INSTRUCTION_BYTES - 1, b"\x80"),
    ),
    "fetch window": Failure(
        (BEFORE, LOAD, LOAD, AFTER),
        ErrorCode.WINDOW,
        3,
        window=(0, PROGRAM + 4 * INSTRUCTION_BYTES - 2),
    ),
    "load window": Failure(
        (BEFORE, replace(LOAD, dram_address=0xFFF0), WAITS_FOR_LOAD), ErrorCode.WINDOW, 1
    ),
    "load below window": Failure(
        (BEFORE, LOAD, replace(LOAD, dram_address=0x40), WAITS_FOR_LOAD, WAITS_FOR_LOAD),
        ErrorCode.WINDOW,
        2,
        window=(0x80, DRAM_BYTES - 1),
    ),
    "store window": Failure(
        (BEFORE, replace(AFTER, dram_address=DRAM_BYTES - 600), AFTER), ErrorCode.WINDOW, 1
    ),
    "fetch answer": Failure(
        (BEFORE, LOAD, LOAD, AFTER),
        ErrorCode.AXI_READ,
        3,
        bad=(range(PROGRAM + 3 * INSTRUCTION_BYTES + 20, PROGRAM + 3 * INSTRUCTION_BYTES + 24),),
    ),
    "load answer": Failure(
        (BEFORE, QUIET, replace(LOAD, dram_address=0x3000), WAITS_FOR_LOAD),
        ErrorCode.AXI_READ,
        2,
        bad=(range(0x3100, 0x3104),),
    ),
    "last load answer": Failure(
        (BEFORE, QUIET, replace(LOAD, dram_address=0x3000), WAITS_FOR_LOAD),
        ErrorCode.AXI_READ,
        1,
        bad=(range(0x227C, 0x2280),),
    ),
    "first load answer": Failure(
        (BEFORE, QUIET, replace(LOAD, dram_address=0x3000), WAITS_FOR_LOAD),
        ErrorCode.AXI_READ,
        2,
        bad=(range(0x3000, 0x3004),),
    ),
    "store answer": Failure(
        (BEFORE, replace(AFTER, dram_address=0x6000, count_x=16), AFTER),
        ErrorCode.AXI_WRITE,
        1,
        bad=(range(0x6000, 0x6040),),
    ),
    "watchdog": Failure((BEFORE, DEADLOCK, WAITS_FOR_GEMM), ErrorCode.WATCHDOG, 1),
    "stop": Failure((BEFORE, DEADLOCK, WAITS_FOR_GEMM), ErrorCode.STOPPED, 1),
}


@cocotb.test()
async def failures(dut: Any) -> None:
    """Each failure gives its code and index, then leaves memory alone; a good program follows."""
    bench = await begin(dut)
    for name in bench.rng.permutation(list(FAILURES)):
        await fail(bench, str(name), FAILURES[str(name)])
        await bench.write("WINDOW_BASE", 0)
        await bench.write("WINDOW_LIMIT", DRAM_BYTES - 1)
        bench.dram.bad.clear()
        await bench.run([LOAD, WAITS_FOR_LOAD])


async def fail(bench: Bench, name: str, failure: Failure) -> None:
    """Run the program of ``failure``."""
    untouched = bytes(bench.dram.data[0x4000:0x4400])
    bench.place(failure.program)
    offset, patch = failure.patch
    bench.dram.data[PROGRAM + offset : PROGRAM + offset + len(patch)] = patch
    bench.dram.bad.extend(failure.bad)
    await bench.write("WINDOW_BASE", failure.window[0])
    await bench.write("WINDOW_LIMIT", failure.window[1])
    await bench.start(len(failure.program), watchdog=3000)
    if failure.code is ErrorCode.STOPPED:
        await ClockCycles(bench.dut.clk, 1000)
        await bench.write("CONTROL", 1 << Control.STOP)
    assert await bench.finish() == 1 << Status.ERROR, name
    before = bytes(bench.dram.data)
    assert before[0x4000:0x4400] == untouched, f"{name}: a later instruction wrote"
    found = (await bench.read("ERROR_CODE"), await bench.read("ERROR_INDEX"))
    assert found == (failure.code, failure.index), name
    for _ in range(300):
        await FallingEdge(bench.dut.clk)
        for valid in ("arvalid", "awvalid", "wvalid"):
            assert getattr(bench.dut, f"memory__{valid}").value == 0, name
    assert bench.dram.data == before, f"{name}: memory changed after the stop"


def test_random_programs_leave_memory_as_the_semantics_say() -> None:
    values = [{"seed": 71, "memory": each, "programs": 1} for each in AXI_MEMORIES]
    simulate_all(make_accelerator, [(random_programs, each) for each in values])


def test_every_error_gives_code_and_index_and_writes_nothing_more() -> None:
    simulate_all(
        make_accelerator, [(failures, {"seed": 72, "memory": each}) for each in AXI_MEMORIES]
    )
