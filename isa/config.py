"""One hardware configuration: every size, width and memory timing of an accelerator, and what
follows from them.

Owns the numbers that gateware, simulator, assembler and compiler share.  An object that exists is
valid.
"""

import hashlib
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .errors import ConfigError
from .memories import Memory
from .sdram import SdramTiming

__all__ = ["INSTRUCTION_BYTES", "WIDEST_BUS_BYTES", "DramTiming", "HardwareConfig"]

INSTRUCTION_BYTES = 64
"""Size of every instruction in DRAM, in every configuration."""

WIDEST_BUS_BYTES = 16
"""Width of the AXI4 data bus, at most."""

ELEMENTS: dict[Memory, np.dtype[Any]] = {
    Memory.ACT: np.dtype(np.int8),
    Memory.WGT: np.dtype(np.int8),
    Memory.ACC: np.dtype(np.int32),
    Memory.PAR: np.dtype([("bias", np.int32), ("scale", np.float32)]),
    Memory.TAP: np.dtype(np.int8),
    Memory.TAB: np.dtype(np.int8),
}
"""What each memory's words are made of."""


@dataclass(frozen=True, slots=True)
class DramTiming:
    """The documented DRAM model (docs/timing.md): one in-order command queue behind the AXI port.

    latency_cycles: address accepted to first data beat, at the earliest (1..1023).
    beat_interval_cycles: cycles from one beat to the next within a burst (1..15).
    queue_bursts: commands accepted and not yet finished, at most (1..64).
    turnaround_cycles: extra cycles between a read and a write burst, in either order (0..63).
    response_cycles: last write beat to its response (1..63).
    sdram: when given, memory is this SDRAM behind its controller, whose own rules give the exact
        time; the numbers above only describe it roughly.
    """

    latency_cycles: int = 24
    beat_interval_cycles: int = 1
    queue_bursts: int = 8
    turnaround_cycles: int = 4
    response_cycles: int = 4
    sdram: SdramTiming | None = None

    def __post_init__(self) -> None:
        limits = {
            "latency_cycles": (1, 1023),
            "beat_interval_cycles": (1, 15),
            "queue_bursts": (1, 64),
            "turnaround_cycles": (0, 63),
            "response_cycles": (1, 63),
        }
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"DRAM timing {name} = {value}; required {low} to {high}")


@dataclass(frozen=True, slots=True)
class HardwareConfig:
    """An accelerator: one ``block x block`` matrix core, its scratchpads, its bus and its memory.

    Every size but ``token_max`` and ``multiplier_bits`` is a power of two.

    block: lanes; the matrix core multiplies ``block x block`` int8 weights by ``block`` int8 inputs
        in ``tile_cycles`` (4..64).
    bus_bytes: width of the AXI4 data bus; divides ``block`` (4..16).
    *_depth: words in each scratchpad.
    act_banks, acc_banks: equal contiguous parts of ACT (1..8) and ACC (1..4).
    queue_depth: instructions waiting in front of each unit (2..64).
    fetch_ahead: instructions requested and not yet dispatched (2..16).
    burst_beats: beats in a burst at most; bursts never cross a multiple of ``burst_beats *
        bus_bytes``, which is at most 4096.
    store_slots: bursts that STORE buffers (2..16).
    token_max: largest value of a token counter (1..255).
    multiplier_bits: wider operand of the FPGA's multipliers (18..32); from 25 on, the matrix core
        puts two products in each.  Neither results nor cycles depend on it.
    tile_cycles: cycles for a tile of the matrix core, which has ``block / tile_cycles`` rows of
        multipliers (1..4).
    lane_groups: equal groups of the matrix core's rows, each a cycle behind its neighbour, so that
        no wire goes to all of them.
    vector_cycles: cycles for a word of the vector unit, which has ``block / vector_cycles`` lanes
        (1..4).
    core_clock_ratio: cycles of the matrix core's multipliers in one of the accelerator (1, 2).
        With 2 they have a clock of their own, and each makes two products in a cycle of the
        accelerator: half as many do.  Needs ``deep_pipelines``.
    deep_pipelines: more registers behind memories and adders, for FPGAs where these are slow.
    clock_hz: clock the timing figures are quoted at.
    """

    name: str
    block: int
    bus_bytes: int
    act_depth: int
    wgt_depth: int
    acc_depth: int
    par_depth: int
    tap_depth: int
    tab_depth: int
    act_banks: int = 8
    acc_banks: int = 4
    queue_depth: int = 16
    fetch_ahead: int = 4
    burst_beats: int = 16
    store_slots: int = 4
    token_max: int = 15
    multiplier_bits: int = 18
    tile_cycles: int = 1
    lane_groups: int = 1
    vector_cycles: int = 1
    core_clock_ratio: int = 1
    deep_pipelines: bool = False
    clock_hz: int = 100_000_000
    dram: DramTiming = DramTiming()

    def __post_init__(self) -> None:
        powers: tuple[str, ...] = (
            *("block", "bus_bytes", "act_banks", "acc_banks", "queue_depth", "fetch_ahead"),
            *("burst_beats", "store_slots", *(f"{memory.value}_depth" for memory in Memory)),
            *("tile_cycles", "lane_groups", "vector_cycles", "core_clock_ratio"),
        )
        for name in powers:
            value = getattr(self, name)
            if value < 1 or value & (value - 1):
                raise ConfigError(f"{self.name}: {name} = {value}; required a power of two")
        limits = {
            "block": (4, 64),
            "bus_bytes": (4, WIDEST_BUS_BYTES),
            "act_banks": (1, 8),
            "acc_banks": (1, 4),
            "act_depth": (2 * self.act_banks, 1 << 16),
            "acc_depth": (2 * self.acc_banks, 1 << 16),
            "wgt_depth": (2, 1 << 16),
            "par_depth": (2, 1 << 12),
            "tap_depth": (4, 1 << 12),
            "tab_depth": (256, 1 << 12),
            "queue_depth": (2, 64),
            "fetch_ahead": (2, 16),
            "burst_beats": (INSTRUCTION_BYTES // self.bus_bytes, 256),
            "store_slots": (2, 16),
            "token_max": (1, 255),
            "multiplier_bits": (18, 32),
            "tile_cycles": (1, min(4, self.block // self.core_clock_ratio)),
            "vector_cycles": (1, 4),
            "core_clock_ratio": (1, 2),
            # Two products in one multiplier are of two rows of a group, in one cycle of its clock.
            "lane_groups": (1, self.multiplier_rows // (1 + (self.multiplier_bits > 24))),
        }
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{self.name}: {name} = {value}; required {low} to {high}")
        if self.core_clock_ratio > 1 and not self.deep_pipelines:
            raise ConfigError(
                f"{self.name}: core_clock_ratio = {self.core_clock_ratio} without deep_pipelines; "
                "the matrix core has a clock of its own only between the registers of deep "
                "pipelines: set deep_pipelines, or core_clock_ratio = 1"
            )
        if self.clock_hz < 1:
            raise ConfigError(f"{self.name}: clock_hz = {self.clock_hz}; required at least 1")
        if self.block % self.bus_bytes:
            raise ConfigError(
                f"{self.name}: bus_bytes = {self.bus_bytes} does not divide block = {self.block}; "
                "choose a narrower bus, so that every scratchpad word is whole beats"
            )
        if self.burst_bytes > 4096:
            raise ConfigError(f"{self.name}: a burst has {self.burst_bytes} bytes; AXI allows 4096")

    @property
    def macs_per_cycle(self) -> int:
        """int8 multiply-accumulates of the matrix core in one cycle."""
        return self.block * self.block // self.tile_cycles

    @property
    def multiplier_rows(self) -> int:
        """Rows of ``block`` multipliers in the matrix core."""
        return self.block // self.tile_cycles // self.core_clock_ratio

    @property
    def burst_bytes(self) -> int:
        """Bytes in the longest burst, and the boundary no burst crosses."""
        return self.burst_beats * self.bus_bytes

    def depth(self, memory: Memory) -> int:
        """Words in ``memory``."""
        return int(getattr(self, f"{memory.value}_depth"))

    def element(self, memory: Memory) -> np.dtype[Any]:
        """What each lane of a word of ``memory`` is; in PAR there are two, all biases first."""
        return ELEMENTS[memory]

    def lanes(self, memory: Memory) -> int:
        """Elements of one word of ``memory``."""
        return self.block * self.block if memory is Memory.WGT else self.block

    def word_bytes(self, memory: Memory) -> int:
        """Bytes of one word of ``memory``, in the scratchpad and in DRAM alike."""
        return self.lanes(memory) * ELEMENTS[memory].itemsize

    def banks(self, memory: Memory) -> int:
        """Banks of ``memory`` that units lock (1 where none are locked)."""
        return {Memory.ACT: self.act_banks, Memory.ACC: self.acc_banks}.get(memory, 1)

    def bank_words(self, memory: Memory) -> int:
        """Words in one bank of ``memory``."""
        return self.depth(memory) // self.banks(memory)

    @property
    def by_beats(self) -> tuple[Memory, ...]:
        """Memories whose words, wide ones, LOAD writes beat by beat; those of the others, whole."""
        return Memory.WGT, Memory.PAR, *((Memory.ACC,) if self.deep_pipelines else ())

    @property
    def identity(self) -> str:
        """Everything a program depends on (not the clock, nor the DRAM timing, nor how the units
        are built from the FPGA's parts), as text.
        """
        skip = {"name", "clock_hz", "dram"}
        skip |= {"multiplier_bits", "tile_cycles", "lane_groups", "vector_cycles"}
        skip |= {"core_clock_ratio", "deep_pipelines"}
        return ",".join(
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if field.name not in skip
        )

    @property
    def fingerprint(self) -> int:
        """32-bit hash of ``identity``."""
        return int.from_bytes(hashlib.sha256(self.identity.encode()).digest()[:4], "little")
