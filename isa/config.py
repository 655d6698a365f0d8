"""One hardware configuration: every size, width and memory timing of an accelerator, and what
follows from them.

Owns the numbers that gateware, simulator, assembler and compiler share.  An object that exists is
valid.
"""

import hashlib
from dataclasses import field, fields
from operator import attrgetter
from typing import Any

import numpy as np

from .declared import Limit, check_fields, declare
from .errors import ConfigError
from .finishes import OwnFinish, find_finish
from .frozen import KeepsHash, frozen
from .memories import Memory
from .sdram import SdramTiming

__all__ = [
    *("DEFAULT_CLOCK_HZ", "INSTRUCTION_BYTES", "SHORT_ROWS", "WIDEST_BUS_BYTES"),
    *("DramTiming", "HardwareConfig"),
]

INSTRUCTION_BYTES = 64
"""Size of every instruction in DRAM, in every configuration."""

WIDEST_BUS_BYTES = 16
"""Width of the AXI4 data bus, at most."""

SHORT_ROWS = 4
"""Words of TAB in a beat, in their short form."""

DEFAULT_CLOCK_HZ = 100_000_000

ELEMENTS: dict[Memory, np.dtype[Any]] = {
    Memory.ACT: np.dtype(np.int8),
    Memory.WGT: np.dtype(np.int8),
    Memory.ACC: np.dtype(np.int32),
    Memory.PAR: np.dtype([("bias", np.int32), ("scale", np.float32)]),
    Memory.TAP: np.dtype(np.int8),
    Memory.TAB: np.dtype(np.int8),
}
"""Elements of each memory's words."""

DEPTHS = {memory: attrgetter(f"{memory.value}_depth") for memory in Memory}
"""The field that has each memory's depth."""


@frozen
class DramTiming:
    """The documented DRAM model (docs/timing.md): an in-order command queue behind the AXI port."""

    latency_cycles: int = field(
        default=24, metadata=declare("Cycles, address accepted to first data beat.", 1, 1023)
    )
    beat_interval_cycles: int = field(
        default=1, metadata=declare("Cycles from one beat to the next within a burst.", 1, 15)
    )
    queue_bursts: int = field(
        default=8, metadata=declare("Bursts accepted and not yet finished, at most.", 1, 64)
    )
    turnaround_cycles: int = field(
        default=4,
        metadata=declare("Extra cycles between a read and a write burst, in either order.", 0, 63),
    )
    response_cycles: int = field(
        default=4, metadata=declare("Cycles, last write beat to its response.", 1, 63)
    )
    sdram: SdramTiming | None = field(
        default=None,
        metadata=declare(
            "When given, memory is this SDRAM behind its controller, whose own rules give the "
            "exact time; the numbers above only describe it roughly."
        ),
    )

    def __post_init__(self) -> None:
        check_fields(self, "DRAM timing ")


@frozen
class HardwareConfig(KeepsHash):
    """An accelerator: one ``block x block`` matrix core, its scratchpads, its bus and its memory.

    Every field declares what it means, its unit and its range.  ``finish`` gets the version that is
    installed, where it names none.
    """

    name: str = field(metadata=declare("The configuration, in names of targets and in Verilog."))
    block: int = field(
        metadata=declare(
            "Lanes: the matrix core multiplies block x block int8 weights by block int8 inputs in "
            "tile_cycles.",
            *(4, 64, True),
        )
    )
    bus_bytes: int = field(
        metadata=declare(
            "Bytes that the AXI4 data bus is wide; divides block.", 4, WIDEST_BUS_BYTES, True
        )
    )
    act_depth: int = field(
        metadata=declare(
            "Words of ACT, activations: block int8 each.",
            Limit("2 * act_banks", lambda config: 2 * config.act_banks),
            *(1 << 16, True),
        )
    )
    wgt_depth: int = field(
        metadata=declare("Tiles of WGT, weights: block x block int8 each.", 2, 1 << 16, True)
    )
    acc_depth: int = field(
        metadata=declare(
            "Words of ACC, accumulators: block int32 each.",
            Limit("2 * acc_banks", lambda config: 2 * config.acc_banks),
            *(1 << 16, True),
        )
    )
    par_depth: int = field(
        metadata=declare(
            "Words of PAR, parameters: block int32 biases and block float32 scales each.",
            *(2, 1 << 12, True),
        )
    )
    tap_depth: int = field(
        metadata=declare("Words of TAP, depthwise weights: block int8 each.", 4, 1 << 12, True)
    )
    tab_depth: int = field(
        metadata=declare(
            "Words of TAB, look-up tables of 256 words: block int8 each.", 256, 1 << 12, True
        )
    )
    act_banks: int = field(
        default=8, metadata=declare("Equal contiguous parts of ACT.", 1, 8, True)
    )
    acc_banks: int = field(
        default=4, metadata=declare("Equal contiguous parts of ACC.", 1, 4, True)
    )
    queue_depth: int = field(
        default=16, metadata=declare("Instructions waiting in front of each unit.", 2, 64, True)
    )
    fetch_ahead: int = field(
        default=4, metadata=declare("Instructions requested and not yet dispatched.", 2, 16, True)
    )
    burst_beats: int = field(
        default=16,
        metadata=declare(
            "Beats in a burst at most; bursts never cross a multiple of burst_beats * bus_bytes, "
            "which is at most 4096 bytes.",
            Limit(f"{INSTRUCTION_BYTES} / bus_bytes", lambda c: INSTRUCTION_BYTES // c.bus_bytes),
            *(256, True),
        ),
    )
    store_slots: int = field(default=4, metadata=declare("Bursts that STORE buffers.", 2, 16, True))
    token_max: int = field(
        default=15, metadata=declare("Largest value of a token counter.", 1, 255)
    )
    multiplier_bits: int = field(
        default=18,
        metadata=declare(
            "Bits of the wider operand of the FPGA's multipliers; from 25 on, the matrix core puts "
            "two products in each.  Neither results nor cycles depend on it.",
            *(18, 32),
        ),
    )
    tile_cycles: int = field(
        default=1,
        metadata=declare(
            "Cycles for a tile of the matrix core, which has block / tile_cycles rows of "
            "multipliers.",
            1,
            # A row of multipliers stays, or two where one multiplier makes products of both.
            Limit(
                "4, and to block / core_clock_ratio, half of that from multiplier_bits = 25 on",
                lambda c: min(4, c.block // c.core_clock_ratio // (1 + (c.multiplier_bits > 24))),
            ),
            power=True,
        ),
    )
    lane_groups: int = field(
        default=1,
        metadata=declare(
            "Equal groups of the matrix core's rows, each a cycle behind its neighbour, so that no "
            "wire goes to all of them.",
            1,
            # Two products in one multiplier are of two rows of a group, in one cycle of its clock.
            Limit(
                "the rows of multipliers, half as many from multiplier_bits = 25 on",
                lambda config: config.multiplier_rows // (1 + (config.multiplier_bits > 24)),
            ),
            power=True,
        ),
    )
    vector_cycles: int = field(
        default=1,
        metadata=declare(
            "Cycles for a word of the vector unit, which has block / vector_cycles lanes.",
            *(1, 4, True),
        ),
    )
    core_clock_ratio: int = field(
        default=1,
        metadata=declare(
            "Cycles of the matrix core's multipliers in one of the accelerator.  With 2 they have "
            "a clock of their own, and each makes two products in a cycle of the accelerator: half "
            "as many do.  Needs deep_pipelines.",
            *(1, 2, True),
        ),
    )
    deep_pipelines: bool = field(
        default=False,
        metadata=declare(
            "More registers behind memories and adders, for FPGAs where these are slow."
        ),
    )
    fixed_rounding: bool = field(
        default=False,
        metadata=declare(
            "VECTOR also requantises in fixed point, as TensorFlow Lite does (rounding = 1)."
        ),
    )
    finish: str = field(
        default="",
        metadata=declare(
            "VECTOR's finish CUSTOM, brought by an installed package: its name, perhaps with @ and "
            "its version; none when empty."
        ),
    )
    row_parameters: bool = field(
        default=False,
        metadata=declare(
            "VECTOR also writes parameters of rows to PAR: the largest of a row, or its sum, and a "
            "scale over a sum or its root (row); and requantises to 20 bits (rounding = 2)."
        ),
    )
    nibble_weights: bool = field(
        default=False,
        metadata=declare(
            "LOAD also makes weights from nibbles, which are times a multiplier of their output "
            "lane (nibbles)."
        ),
    )
    short_constants: bool = field(
        default=False,
        metadata=declare(
            "LOAD also makes parameters from their scales alone, where the biases are 0, or from "
            "one bias and one scale for all lanes; and four words of a table from a beat "
            "(nibbles).  VECTOR also takes zero points from what it multiplies with taps (m1)."
        ),
    )
    load_ahead: bool = field(
        default=False,
        metadata=declare(
            "LOAD asks for what its next instruction reads while the data of the one before still "
            "arrives.  Without effect in deep_pipelines."
        ),
    )
    clock_hz: int = field(
        default=DEFAULT_CLOCK_HZ,
        metadata=declare("Hz that the timing figures are quoted at.", 1, 10**10),
    )
    dram: DramTiming = field(
        default=DramTiming(), metadata=declare("The memory that simulations assume.")
    )

    def __post_init__(self) -> None:
        check_fields(self, f"{self.name}: ")
        own = self.own_finish
        object.__setattr__(self, "finish", own.pinned if own else "")
        if self.core_clock_ratio > 1 and not self.deep_pipelines:
            raise ConfigError(
                f"{self.name}: core_clock_ratio = {self.core_clock_ratio} without deep_pipelines; "
                "the matrix core has a clock of its own only between the registers of deep "
                "pipelines: set deep_pipelines, or core_clock_ratio = 1"
            )
        if self.block % self.bus_bytes:
            raise ConfigError(
                f"{self.name}: bus_bytes = {self.bus_bytes} does not divide block = {self.block}; "
                "choose a narrower bus, so that every scratchpad word is whole beats"
            )

    @property
    def own_finish(self) -> OwnFinish | None:
        """The finish that ``finish`` names; None where it is empty.

        Raises ExtensionError when no installed package brings it, in this version.
        """
        return find_finish(self.finish) if self.finish else None

    @property
    def two_loads(self) -> bool:
        """True if ``load_ahead`` has an effect: two LOADs are at work at a time."""
        return self.load_ahead and not self.deep_pipelines

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
        return DEPTHS[memory](self)

    def element(self, memory: Memory) -> np.dtype[Any]:
        """Data type of each lane of a word of ``memory``; PAR has two, all biases first."""
        return ELEMENTS[memory]

    def lanes(self, memory: Memory) -> int:
        """Elements of one word of ``memory``."""
        return self.block * self.block if memory is Memory.WGT else self.block

    def word_bytes(self, memory: Memory) -> int:
        """Bytes of one word of ``memory``, in the scratchpad and in DRAM alike."""
        return self.lanes(memory) * ELEMENTS[memory].itemsize

    @property
    def nibble_head_bytes(self) -> int:
        """Bytes of the multipliers before a WGT word's nibbles in DRAM: whole beats."""
        return max(self.bus_bytes, self.block // 2)

    @property
    def nibble_bytes(self) -> int:
        """Bytes of a WGT word as nibbles, in DRAM."""
        return self.nibble_head_bytes + self.block * self.block // 2

    @property
    def short_memories(self) -> tuple[Memory, ...]:
        """Memories whose words may be in DRAM in a short form."""
        weights = (Memory.WGT,) if self.nibble_weights else ()
        return *weights, *((Memory.PAR, Memory.TAB) if self.short_constants else ())

    def short_bytes(self, memory: Memory, *, same: bool = False) -> int:
        """Bytes in DRAM of a word of WGT, PAR or TAB in its short form: whole beats, but of TAB.

        same: of PAR, one bias and one scale for all lanes.
        """
        if memory is Memory.WGT:
            return self.nibble_bytes
        if memory is Memory.TAB:
            return self.bus_bytes // SHORT_ROWS
        return max(self.bus_bytes, 8) if same else self.word_bytes(memory) // 2

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

        ``fixed_rounding``, ``finish``, ``row_parameters``, ``nibble_weights`` and
        ``short_constants`` are named only where they are set: bitstreams without them keep their
        fingerprints.
        """
        skip = {"name", "clock_hz", "dram"}
        optional = (
            *("fixed_rounding", "finish", "row_parameters", "nibble_weights"),
            "short_constants",
        )
        skip |= {name for name in optional if not getattr(self, name)}
        skip |= {"multiplier_bits", "tile_cycles", "lane_groups", "vector_cycles"}
        skip |= {"core_clock_ratio", "deep_pipelines", "load_ahead"}
        named = ",".join(
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if field.name not in skip
        )
        return f"{named},short_rows={SHORT_ROWS}" if self.short_constants else named

    @property
    def fingerprint(self) -> int:
        """32-bit hash of ``identity``."""
        return int.from_bytes(hashlib.sha256(self.identity.encode()).digest()[:4], "little")
