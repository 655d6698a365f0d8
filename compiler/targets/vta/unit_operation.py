"""Instructions at fixed places, before they have tokens and their sums a bank."""

from functools import lru_cache

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen, replace
from dovetail.isa.instructions import Gemm, Instruction, Vector
from dovetail.isa.memories import Memory

from .record import Frame, Part

__all__ = ["UnitOperation", "moved_to_bank", "sums_in_acc"]

KEPT = 1 << 14
"""Moved instructions that are remembered: programs of one network are made again and again."""


@frozen
class UnitOperation:
    """An instruction without tokens, and the number of its layer.

    tile: the tile whose sums it makes or reads, in ACC from word 0: the order of the program
    decides in which bank they are.
    holds: what it writes of the layer's result, or loads of its constants.
    """

    instruction: Instruction
    layer: int
    tile: int | None = None
    holds: Frame | Part | None = None


def sums_in_acc(instruction: Instruction) -> bool:
    """True if it touches ACC."""
    match instruction:
        case Vector(source=source, destination=destination):
            return Memory.ACC in (source, destination)
        case _:
            return isinstance(instruction, Gemm)


def moved_to_bank(
    instruction: Instruction, bank: int, tile: int | None, config: HardwareConfig
) -> Instruction:
    """An instruction with its bank masks, as in bank 0 of ACC, with its sums in bank ``bank``.

    tile: None for one that has no sums.
    """
    if tile is None or not bank:
        return instruction
    return _moved(instruction, bank * config.bank_words(Memory.ACC), 1 << bank)


@lru_cache(maxsize=KEPT)
def _moved(instruction: Instruction, first: int, banks: int) -> Instruction:
    """With its sums ``first`` words behind, in ``banks``."""
    match instruction:
        case Gemm(acc_address=address):
            return replace(instruction, acc_address=address + first, acc_banks=banks)
        case Vector(source_address=source, destination_address=destination):
            if instruction.source is Memory.ACC:
                source += first
            if instruction.destination is Memory.ACC:
                destination += first
            return replace(
                instruction,
                source_address=source,
                destination_address=destination,
                acc_banks=banks,
            )
        case other:
            return other
