"""The order of the program: constants early, so that no work waits for them."""

from collections.abc import Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .operations import Block, UnitOperation

__all__ = ["order"]

AHEAD = 6
"""Blocks whose constants are loaded before the work of a block, at most."""


def order(blocks: Sequence[Block], config: HardwareConfig) -> list[UnitOperation]:
    """All operations, each block's loads moved before the work of earlier blocks.

    They move as far as the rings hold everything between: a load never lands on what a block before it,
    in this order, still has to read.
    """
    program: list[UnitOperation] = []
    loaded = 0
    for now, block in enumerate(blocks):
        while loaded < len(blocks) and loaded <= now + AHEAD:
            if loaded > now and not _fits(blocks, now, loaded, config):
                break
            program += blocks[loaded].loads
            loaded += 1
        program += block.fills
        program += block.work
    return program


def _fits(blocks: Sequence[Block], first: int, last: int, config: HardwareConfig) -> bool:
    """Whether the rings hold the constants of blocks ``first`` to ``last`` together."""
    used = dict.fromkeys(Memory, 0)
    for number in range(last + 1):
        for demand in blocks[number].demands:
            if demand.last_block >= first:
                used[demand.memory] += demand.words
    return all(words <= config.depth(memory) for memory, words in used.items())
