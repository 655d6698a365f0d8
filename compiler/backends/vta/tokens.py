"""Inserting the fewest tokens that keep every hazard across units safe.

For each instruction and each other unit only the latest conflicting instruction matters, since units work in
order; and not even that one, when it is known to have ended through other tokens.  Tokens of a pair of units
are taken in the order they are given.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Memory, Unit

from .regions import Space, touched

__all__ = ["insert_tokens"]

Clock = dict[Unit, int]


class _Accesses:
    """The latest instruction of each unit that read, and that wrote, each place of a space."""

    def __init__(self, size: int) -> None:
        self.read: NDArray[np.int64] = np.full((len(Unit), size), -1)
        self.written: NDArray[np.int64] = np.full((len(Unit), size), -1)


def insert_tokens(
    program: Sequence[Instruction], config: HardwareConfig, dram_bytes: int
) -> list[Instruction]:
    """``program`` with waits and posts."""
    sizes: dict[Space, int] = {memory: config.depth(memory) for memory in Memory}
    sizes[None] = dram_bytes // config.bus_bytes + 1
    accesses = {space: _Accesses(size) for space, size in sizes.items()}
    waits: list[set[Unit]] = [set() for _ in program]
    posts: list[set[Unit]] = [set() for _ in program]
    clocks: list[Clock] = []
    latest: Clock = {}
    for index, instruction in enumerate(program):
        unit = instruction.unit
        clock = dict(clocks[latest[unit]]) if unit in latest else {}
        needed = _needed(instruction, accesses, config)
        # The latest first: what it implies need not be waited for.
        for other in sorted(needed, key=lambda u: needed[u], reverse=True):
            producer = needed[other]
            if other is unit or producer <= clock.get(other, -1):
                continue
            waits[index].add(other)
            posts[producer].add(unit)
            for known, position in clocks[producer].items():
                clock[known] = max(clock.get(known, -1), position)
            clock[other] = producer
        clocks.append(clock)
        latest[unit] = index
        _record(index, instruction, accesses, config)
    return [
        replace(instruction, wait=frozenset(wait), post=frozenset(post))
        for instruction, wait, post in zip(program, waits, posts, strict=True)
    ]


def _needed(
    instruction: Instruction, accesses: dict[Space, _Accesses], config: HardwareConfig
) -> Clock:
    """For each unit, its latest instruction that conflicts with ``instruction``."""
    needed: Clock = {}
    for touch in touched(instruction, config):
        space = accesses[touch.space]
        for unit in Unit:
            last = int(space.written[unit][touch.places].max(initial=-1))
            if touch.writes:
                last = max(last, int(space.read[unit][touch.places].max(initial=-1)))
            if last > needed.get(unit, -1):
                needed[unit] = last
    return needed


def _record(
    index: int, instruction: Instruction, accesses: dict[Space, _Accesses], config: HardwareConfig
) -> None:
    for touch in touched(instruction, config):
        space = accesses[touch.space]
        kind = space.written if touch.writes else space.read
        kind[instruction.unit, touch.places] = index
