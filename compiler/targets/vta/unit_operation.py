"""Instructions at fixed places, before they have tokens and their sums a bank."""

from dataclasses import dataclass, replace

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Gemm, Instruction, Vector
from dovetail.isa.memories import Memory

from .record import Frame, Part

__all__ = ["UnitOperation", "sums_in_acc", "with_acc_bank"]


@dataclass(frozen=True, slots=True)
class UnitOperation:
    """An instruction without tokens, and the number of its layer.

    tile: the tile whose sums it makes or reads, in ACC from word 0: the order of the program
    decides in which bank they lie.
    holds: what it writes of the layer's result, or loads of its constants.
    """

    instruction: Instruction
    layer: int
    tile: int | None = None
    holds: Frame | Part | None = None


def sums_in_acc(instruction: Instruction) -> bool:
    """Whether it touches ACC."""
    match instruction:
        case Vector(source=source, destination=destination):
            return Memory.ACC in (source, destination)
        case _:
            return isinstance(instruction, Gemm)


def with_acc_bank(operation: UnitOperation, bank: int, config: HardwareConfig) -> Instruction:
    """The instruction with its sums in bank ``bank`` of ACC, and its bank masks."""
    first = bank * config.bank_words(Memory.ACC)
    instruction = operation.instruction
    match instruction:
        case _ if operation.tile is None:
            pass
        case Gemm(acc_address=address):
            instruction = replace(instruction, acc_address=address + first)
        case Vector(source_address=source, destination_address=destination):
            if instruction.source is Memory.ACC:
                instruction = replace(instruction, source_address=source + first)
            if instruction.destination is Memory.ACC:
                instruction = replace(instruction, destination_address=destination + first)
    return with_bank_masks(instruction, config)
