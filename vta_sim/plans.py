"""What the machine must know of an instruction to start it, worked out once a word."""

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.errors import EncodingError
from dovetail.isa.instructions import (
    Gemm,
    Instruction,
    Load,
    Store,
    Vector,
    decode,
    legality_problem,
)
from dovetail.isa.memories import Memory, Unit

from .bursts import cut_beats

__all__ = ["UNITS", "Plan", "make_plan"]

UNITS = len(Unit)


@dataclass(frozen=True, slots=True)
class Plan:
    """A legal instruction, prepared.

    waits, posts: for each token taken, or given, the pair ``poster * UNITS + taker``.
    claim: every bank the instruction holds, one bit each.
    reads, writes: banks a VECTOR reads and writes, one bit each, to compare with one another.
    issues: cycles in which a GEMM or VECTOR issues.
    beats: of each burst of a LOAD or STORE.
    """

    instruction: Instruction
    unit: int
    waits: tuple[int, ...]
    posts: tuple[int, ...]
    claim: int
    reads: int = 0
    writes: int = 0
    issues: int = 0
    beats: tuple[int, ...] = ()


@lru_cache(maxsize=1 << 14)
def make_plan(word: bytes, config: HardwareConfig) -> Plan | None:
    """The plan of an instruction word; None when the hardware of ``config`` refuses it."""
    try:
        instruction = decode(word)
    except EncodingError:
        return None
    if legality_problem(instruction, config):
        return None
    unit = int(instruction.unit)
    waits = tuple(other * UNITS + unit for other in instruction.wait)
    posts = tuple(unit * UNITS + other for other in instruction.post)
    match instruction:
        case Load():
            claim = instruction.act_write_banks << 8 | instruction.acc_banks << 16
            beats = tuple(cut_beats(instruction, config))
            return Plan(instruction, unit, waits, posts, claim, beats=beats)
        case Store():
            beats = tuple(cut_beats(instruction, config))
            return Plan(instruction, unit, waits, posts, instruction.act_read_banks, beats=beats)
        case Gemm():
            claim = instruction.act_read_banks | instruction.acc_banks << 16
            issues = prod(instruction.extent)
            return Plan(instruction, unit, waits, posts, claim, issues=issues)
        case Vector():
            acc = instruction.acc_banks << 8
            return Plan(
                instruction,
                unit,
                waits,
                posts,
                instruction.act_read_banks
                | instruction.act_write_banks << 8
                | instruction.acc_banks << 16,
                reads=instruction.act_read_banks | (acc if instruction.source is Memory.ACC else 0),
                writes=instruction.act_write_banks
                | (acc if instruction.destination is Memory.ACC else 0),
                issues=prod(instruction.extent),
            )
