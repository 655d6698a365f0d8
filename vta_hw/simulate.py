"""Running programs on the RTL, under Verilator."""

import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming, HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory
from dovetail.isa.registers import COUNTERS, Status
from dovetail.isa.state import MachineState

from .build import build_harness
from .gemm import matrix_parts
from .load_writes import table_rows
from .scratchpad import part_name
from .tap_scratchpad import TapScratchpad
from .verilog import HardwareError

__all__ = ["RtlJob", "RtlResult", "Waves", "run_program", "run_programs"]

JOB = struct.Struct("<13I4xQ")


@frozen
class Waves:
    """Waveforms of all signals but memories, in cycles ``first`` to ``last`` of the run.

    path: FILE.fst or FILE.vcd.  A cycle takes 10 units of time, and begins at 10 times its number.
    """

    path: Path
    first: int
    last: int


@frozen
class RtlJob:
    """One run of the accelerator.

    state: DRAM, its program included, and the scratchpads before the run; not changed.
    program_address, program_count: byte address and number of instructions.
    window: first and last byte address an access may touch.
    watchdog: cycles without a completed instruction before a stop; 0: never.
    dump: whether the result has the scratchpads.
    cycle_limit: the run is given up after so many cycles.
    snapshots: ascending; the result has all memories as they are after so many cycles.
    waves: to be written on the way.
    """

    state: MachineState
    program_address: int
    program_count: int
    window: tuple[int, int]
    timing: DramTiming | None = None
    watchdog: int = 100_000
    dump: bool = False
    cycle_limit: int = 1 << 40
    snapshots: tuple[int, ...] = ()
    waves: Waves | None = None


@frozen
class RtlResult:
    """Result of a run.

    finished: the program ended normally; else ``error_code`` and ``error_index`` say why (both 0
    when the cycle limit was reached).
    counters: by the names of ``dovetail.isa.registers.COUNTERS``.
    dispatched, accepted, ended: int64[program_count], the cycle of each, -1 for never.
    state: DRAM and, if asked for, scratchpads after the run.
    seconds: wall time of the simulated run alone.
    snapshots: DRAM and scratchpads, for each cycle asked for.
    """

    finished: bool
    error_code: int
    error_index: int
    counters: dict[str, int]
    dispatched: NDArray[np.int64]
    accepted: NDArray[np.int64]
    ended: NDArray[np.int64]
    state: MachineState
    seconds: float = field(compare=False)
    snapshots: tuple[MachineState, ...] = field(default=(), compare=False)


@frozen
class _Block:
    """A memory of the RTL: ``words`` words of ``word_bytes`` bytes."""

    scope: str
    variable: str
    words: int
    word_bytes: int

    @property
    def size(self) -> int:
        return self.words * self.word_bytes


def _blocks(config: HardwareConfig) -> list[_Block]:
    """Every scratchpad bank, as Verilator names it, memory by memory."""
    blocks = []
    for memory in Memory:
        scope = f"TOP.simulation_top.accelerator.{memory.value}"
        if memory is Memory.TAB:
            lanes, rows = range(config.block), table_rows(config)
            words = config.tab_depth // rows
            blocks += [_Block(scope, f"tab_lane{lane}", words, rows) for lane in lanes]
            continue
        if memory is Memory.TAP:
            words, size = config.tap_depth // TapScratchpad.GROUP, config.block
            taps = range(TapScratchpad.GROUP)
            blocks += [_Block(scope, f"tap_part{part}", words, size) for part in taps]
            continue
        parts = _parts(config, memory)
        size, words = config.word_bytes(memory) // parts, config.bank_words(memory)
        if memory is Memory.WGT:
            # Halves of a part are words one after the other.
            size, words = size // config.core_clock_ratio, words * config.core_clock_ratio
        for bank in range(config.banks(memory)):
            for part in range(parts):
                name = part_name(f"{memory.value}_bank{bank}", part, parts)
                blocks.append(_Block(scope, name, words, size))
    return blocks


def _parts(config: HardwareConfig, memory: Memory) -> int:
    """Parts of a word of ``memory`` that are in memories of their own."""
    return matrix_parts(config) if memory in (Memory.WGT, Memory.ACC) else 1


def run_programs(config: HardwareConfig, jobs: Sequence[RtlJob]) -> list[RtlResult]:
    """Run ``jobs`` one after the other on the RTL of ``config``, each from reset.

    Jobs with waveforms all have one format.
    Raises HardwareError when the simulation cannot be built or fails.
    """
    formats = {job.waves.path.suffix for job in jobs if job.waves}
    harness = build_harness(config, *sorted(formats)[:1])
    with tempfile.TemporaryDirectory() as folder:
        given, results = Path(folder) / "jobs", Path(folder) / "results"
        with open(given, "wb") as file:
            file.write(struct.pack("<I", len(_blocks(config))))
            for block in _blocks(config):
                for text in (block.scope, block.variable):
                    file.write(struct.pack("<I", len(text)) + text.encode())
                file.write(struct.pack("<2I", block.words, block.word_bytes))
            file.write(struct.pack("<I", len(jobs)))
            for job in jobs:
                file.write(_pack(config, job))
        try:
            done = subprocess.run(
                [harness, given, results], capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise HardwareError(f"cannot run {harness}: {error.strerror}") from None
        if done.returncode:
            raise HardwareError(
                f"the RTL simulation of {config.name} failed: {done.stderr.strip()}"
            )
        with open(results, "rb") as file:
            return [_unpack(config, job, file) for job in jobs]


def _pack(config: HardwareConfig, job: RtlJob) -> bytes:
    timing = job.timing or config.dram
    dram = np.ascontiguousarray(job.state.dram)
    header = JOB.pack(
        *(job.program_address, job.program_count, *job.window, job.watchdog),
        *(timing.latency_cycles, timing.beat_interval_cycles, timing.queue_bursts),
        *(timing.turnaround_cycles, timing.response_cycles),
        *(job.dump, job.state.dram_base, dram.size, job.cycle_limit),
    )
    memories = []
    for memory in Memory:
        memories.append(_to_blocks(config, memory, job.state.words(memory)).tobytes())
    path = str(job.waves.path.absolute()).encode() if job.waves else b""
    first, last = (job.waves.first, job.waves.last) if job.waves else (0, 0)
    extra = struct.pack(f"<I{len(job.snapshots)}Q", len(job.snapshots), *job.snapshots)
    extra += struct.pack("<I", len(path)) + path + struct.pack("<2Q", first, last)
    return b"".join((header, *memories, extra, dram.tobytes()))


def _to_blocks(
    config: HardwareConfig, memory: Memory, words: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """The words [depth, bytes] of ``memory`` in the order of its blocks."""
    match memory:
        case Memory.TAB:
            return words.T
        case Memory.TAP:
            return words.reshape(-1, TapScratchpad.GROUP, words.shape[1]).swapaxes(0, 1)
        case _:
            parts = _parts(config, memory)
            shape = config.banks(memory), config.bank_words(memory), parts, -1
            return words.reshape(shape).swapaxes(1, 2)


def _from_blocks(
    config: HardwareConfig, memory: Memory, found: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """The words [depth, bytes] of ``memory`` from the bytes of its blocks."""
    size = config.word_bytes(memory)
    match memory:
        case Memory.TAB:
            return found.reshape(size, -1).T
        case Memory.TAP:
            taps = found.reshape(TapScratchpad.GROUP, -1, size)
            return taps.swapaxes(0, 1).reshape(-1, size)
        case _:
            parts = _parts(config, memory)
            shape = config.banks(memory), parts, config.bank_words(memory), -1
            return found.reshape(shape).swapaxes(1, 2).reshape(-1, size)


def _unpack(config: HardwareConfig, job: RtlJob, file: object) -> RtlResult:
    def read(count: int) -> bytes:
        data: bytes = file.read(count)  # type: ignore[attr-defined]
        if len(data) != count:
            raise HardwareError(f"the RTL simulation of {config.name} ended early")
        return data

    def read_state(scratchpads: bool) -> MachineState:
        dram = np.frombuffer(read(job.state.dram.size), np.uint8).copy()
        state = MachineState.zeros(config, dram, job.state.dram_base)
        for memory in Memory if scratchpads else ():
            size = config.word_bytes(memory)
            found = np.frombuffer(read(config.depth(memory) * size), np.uint8)
            words = _from_blocks(config, memory, found)
            state.write_words(memory, np.arange(config.depth(memory)), words)
        return state

    snapshots = tuple(read_state(True) for _ in job.snapshots)
    status, code, index = struct.unpack("<3I", read(12))
    counts = struct.unpack(f"<{len(COUNTERS)}Q", read(8 * len(COUNTERS)))
    (seconds,) = struct.unpack("<d", read(8))
    events = np.frombuffer(read(24 * job.program_count), np.int64).reshape(3, -1)
    state = read_state(job.dump)
    return RtlResult(
        finished=bool(status >> Status.DONE & 1),
        error_code=code,
        error_index=index,
        counters={name: count for (name, _), count in zip(COUNTERS, counts, strict=True)},
        dispatched=events[0],
        accepted=events[1],
        ended=events[2],
        state=state,
        seconds=seconds,
        snapshots=snapshots,
    )


def run_program(
    config: HardwareConfig,
    program: bytes,
    dram: NDArray[np.uint8],
    dram_base: int,
    program_address: int,
    window: tuple[int, int],
    *,
    timing: DramTiming | None = None,
    watchdog: int = 100_000,
    initial: MachineState | None = None,
    dump: bool = False,
) -> RtlResult:
    """Run one program; its bytes are put into a copy of ``dram`` at byte ``program_address``.

    initial: scratchpads before the run (zeros when None).  The rest is as in ``RtlJob``.
    Raises HardwareError when the program does not are in ``dram``, or the simulation cannot run.
    """
    start = program_address - dram_base
    if program_address % INSTRUCTION_BYTES or start < 0 or start + len(program) > dram.size:
        raise HardwareError(
            f"program of {len(program)} bytes at {program_address:#x}; required a multiple of "
            f"{INSTRUCTION_BYTES} within {dram_base:#x} to {dram_base + dram.size - 1:#x}"
        )
    image = dram.copy()
    image[start : start + len(program)] = np.frombuffer(program, np.uint8)
    before = initial or MachineState.zeros(config, image, dram_base)
    job = RtlJob(
        replace(before, dram=image, dram_base=dram_base),
        program_address,
        len(program) // INSTRUCTION_BYTES,
        window,
        timing=timing,
        watchdog=watchdog,
        dump=dump,
    )
    return run_programs(config, [job])[0]
