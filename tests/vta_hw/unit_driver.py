"""Drives GEMM and VECTOR in ``ComputeTop``: memories in, instructions with gaps, memories out.

Stands in for the issue logic, and checks ``free``, ``busy`` and ``done`` in every cycle against
docs/timing.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cocotb.triggers import FallingEdge
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.encoding import encode
from dovetail.isa.footprint import Touch, scratchpad_reads, scratchpad_writes
from dovetail.isa.instructions import Gemm, Instruction, Vector
from dovetail.isa.latency import compute_latency, issue_cycles
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.semantics import execute
from dovetail.isa.state import MachineState
from dovetail.vta_hw import layouts
from dovetail.vta_hw.load_writes import table_rows

from .compute_top import CONFIG

__all__ = [
    "UnitDriver",
    "check_memories",
    "load_memories",
    "random_state",
    "run_units",
    "touched_banks",
]

WRITERS = {memory: f"load_{memory.value}" for memory in Memory}


def random_state(rng: np.random.Generator) -> MachineState:
    """Scratchpads of random bytes; the scales of PAR bring most int32 values near int8."""
    state = MachineState.zeros(CONFIG, np.zeros(0, np.uint8))
    for memory in Memory:
        shape = (CONFIG.depth(memory), CONFIG.word_bytes(memory))
        words = rng.integers(0, 256, shape).astype(np.uint8)
        state.write_words(memory, np.arange(shape[0]), words)
    state.acc[:] >>= rng.integers(0, 32, state.acc.shape).astype(np.int32)
    state.par.bias[:] >>= rng.integers(0, 32, state.par.bias.shape).astype(np.int32)
    scales = np.exp2(rng.uniform(-30, 2, state.par.scale.shape)).astype(np.float32)
    anything = rng.integers(0x0080_0000, 0x7F80_0000, scales.shape).astype(np.int32)
    odd = rng.integers(0, 8, scales.shape) == 0
    state.par.scale[:] = np.where(odd, anything.view(np.float32), scales)
    return state


async def load_memories(dut: Any, state: MachineState) -> None:
    """Write every word of every scratchpad through LOAD's ports."""
    words = {memory: state.words(memory) for memory in Memory}
    for address in range(max(CONFIG.depth(memory) for memory in Memory)):
        for memory, name in WRITERS.items():
            inside = address < CONFIG.depth(memory)
            getattr(dut, f"{name}__enable").value = inside
            if inside:
                getattr(dut, f"{name}__address").value = address
                word = int.from_bytes(words[memory][address].tobytes(), "little")
                # Of TAB several words may be written at once, each with data of its own.
                piece = address % table_rows(CONFIG) if memory is Memory.TAB else 0
                getattr(dut, f"{name}__enable").value = 1 << piece
                word <<= 8 * CONFIG.word_bytes(memory) * piece
                getattr(dut, f"{name}__data").value = word
        await FallingEdge(dut.clk)
    for name in WRITERS.values():
        getattr(dut, f"{name}__enable").value = 0


async def check_memories(dut: Any, state: MachineState) -> None:
    """Read every word of ACT and ACC, and compare with ``state``."""
    for memory in (Memory.ACT, Memory.ACC):
        name, size = f"read_{memory.value}", CONFIG.word_bytes(memory)
        found = np.zeros((CONFIG.depth(memory), size), np.uint8)
        for address in range(len(found)):
            getattr(dut, f"{name}__enable").value = 1
            getattr(dut, f"{name}__address").value = address
            await FallingEdge(dut.clk)
            data = int(getattr(dut, f"{name}__data").value)
            found[address] = np.frombuffer(data.to_bytes(size, "little"), np.uint8)
        getattr(dut, f"{name}__enable").value = 0
        wrong = np.flatnonzero((found != state.words(memory)).any(axis=1))
        assert not len(wrong), (
            f"{memory.value}: {len(wrong)} words differ, first {wrong[0]}: "
            f"{found[wrong[0]]}, not {state.words(memory)[wrong[0]]}"
        )


@dataclass(slots=True)
class UnitDriver:
    """One unit's instructions, each with the idle cycles to leave before it.

    An instruction starts in the first cycle, after its gap, in which the unit is free and no
    instruction in flight writes a bank that it reads.
    """

    dut: Any
    prefix: str
    latency: int
    cycles: int
    bits: int
    program: Iterator[tuple[Instruction, int]]
    following: tuple[Instruction, int] | None = None
    first_issue: int = 0
    last_issue: int = -1
    ends: dict[int, set[tuple[Memory, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.following = next(self.program, None)

    @property
    def finished(self) -> bool:
        """True if every instruction has ended."""
        return self.following is None and not self.ends

    def cycle(self, now: int) -> None:
        """Check the unit's outputs of cycle ``now``, and start its next instruction if it can."""
        port = {
            name: getattr(self.dut, f"{self.prefix}__{name}")
            for name in ("free", "busy", "done", "start", "instruction")
        }
        expected = {
            "free": now >= self.last_issue,
            "busy": self.first_issue <= now <= self.last_issue,
            "done": now in self.ends,
        }
        found = {name: bool(port[name].value) for name in expected}
        assert found == expected, f"{self.prefix}, cycle {now}: {found}, not {expected}"
        start = False
        if self.following and expected["free"]:
            instruction, gap = self.following
            reads = touched_banks(scratchpad_reads(instruction, CONFIG))
            clear = all(not reads & writes for writes in self.ends.values())
            if now >= self.last_issue + gap and (clear or isinstance(instruction, Gemm)):
                start = True
                word = int.from_bytes(encode(instruction), "little")
                port["instruction"].value = word & ((1 << self.bits) - 1)
                assert isinstance(instruction, Gemm | Vector)
                self.first_issue = now + 1
                self.last_issue = now + self.cycles * int(np.prod(instruction.extent))
                writes = touched_banks(scratchpad_writes(instruction, CONFIG))
                self.ends[self.last_issue + self.latency] = writes
                self.following = next(self.program, None)
        port["start"].value = start
        self.ends.pop(now, None)


def touched_banks(touches: Sequence[Touch]) -> set[tuple[Memory, int]]:
    """Every bank that holds a word of ``touches``."""
    return {
        (touch.memory, int(bank))
        for touch in touches
        for bank in np.unique(touch.addresses // CONFIG.bank_words(touch.memory))
    }


async def run_units(
    dut: Any,
    rng: np.random.Generator,
    gemm: Sequence[Gemm] = (),
    vector: Sequence[Vector] = (),
    most_gap: int = 3,
    acc: NDArray[np.int32] | None = None,
    config: HardwareConfig = CONFIG,
) -> None:
    """From random memories, run both units' instructions side by side; compare with the semantics.

    Instructions of the two units must not touch the same banks.  Half of all gaps are 0, the others
    up to ``most_gap``.  acc: int32[depth, block], what ACC holds at first if not random values.
    config: that of the device, as large as ``CONFIG``.
    """
    state = random_state(rng)
    if acc is not None:
        state.acc[:] = acc
    await load_memories(dut, state)
    drivers = []
    units: tuple[tuple[Unit, int, Sequence[Instruction]], ...] = (
        (Unit.GEMM, layouts.GEMM.size, gemm),
        (Unit.VECTOR, layouts.VECTOR.size, vector),
    )
    for unit, bits, program in units:
        latency, cycles = compute_latency(config)[unit], issue_cycles(config)[unit]
        gaps = rng.integers(0, most_gap + 1, len(program)) * rng.integers(0, 2, len(program))
        steps = iter([(step, int(gap)) for step, gap in zip(program, gaps, strict=True)])
        drivers.append(UnitDriver(dut, unit.name.lower(), latency, cycles, bits, steps))
        for instruction in program:
            execute(state, instruction)
    now = 0
    while not all(driver.finished for driver in drivers):
        for driver in drivers:
            driver.cycle(now)
        await FallingEdge(dut.clk)
        now += 1
    await check_memories(dut, state)
