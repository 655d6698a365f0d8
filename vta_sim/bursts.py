"""How LOAD and STORE cut their rows into bursts (docs/timing.md, "Reading DRAM")."""

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import dram_rows
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory

from .memory import NEVER

__all__ = ["burst_addresses", "cut_beats", "first_outside"]


def cut_beats(instruction: Load | Store, config: HardwareConfig) -> list[int]:
    """Beats of each burst, in order; a row is cut at multiples of ``config.burst_bytes``."""
    memory = instruction.memory if isinstance(instruction, Load) else Memory.ACT
    length = config.word_bytes(memory) * instruction.count_x
    if not length:
        return []
    size = config.burst_bytes
    cuts: dict[int, list[int]] = {}
    beats: list[int] = []
    plane = instruction.dram_address
    for _ in range(instruction.count_z):
        row = plane
        for _ in range(instruction.count_y):
            offset = row % size
            cut = cuts.get(offset)
            if cut is None:
                cut = cuts[offset] = _cut(offset, length, config)
            beats += cut
            row += instruction.dram_stride_y
        plane += instruction.dram_stride_z
    return beats


def _cut(offset: int, length: int, config: HardwareConfig) -> list[int]:
    size, bus = config.burst_bytes, config.bus_bytes
    if offset + length <= size:
        return [length // bus]
    whole, rest = divmod(offset + length, size)
    cut = [(size - offset) // bus] + [config.burst_beats] * (whole - 1)
    return [*cut, rest // bus] if rest else cut


def burst_addresses(instruction: Load | Store, config: HardwareConfig) -> list[tuple[int, int]]:
    """Each burst, in order: first byte address, modulo 2**32, and beats."""
    bursts = []
    for start, length in dram_rows(instruction, config):
        for beats in _cut(start % config.burst_bytes, length, config):
            bursts.append((start & 0xFFFFFFFF, beats))
            start += beats * config.bus_bytes
    return bursts


def first_outside(
    instruction: Load | Store, config: HardwareConfig, window: tuple[int, int]
) -> int:
    """Number of the first burst that leaves the window (first and last byte); NEVER for none."""
    memory = instruction.memory if isinstance(instruction, Load) else Memory.ACT
    base, limit = window
    across_y = (instruction.count_y - 1) * instruction.dram_stride_y
    across_z = (instruction.count_z - 1) * instruction.dram_stride_z
    lowest = instruction.dram_address + min(across_y, 0) + min(across_z, 0)
    highest = instruction.dram_address + max(across_y, 0) + max(across_z, 0)
    if base <= lowest and highest + config.word_bytes(memory) * instruction.count_x - 1 <= limit:
        return NEVER
    for number, (start, beats) in enumerate(burst_addresses(instruction, config)):
        if start < base or start + beats * config.bus_bytes - 1 > limit:
            return number
    return NEVER
