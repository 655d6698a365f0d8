"""Programs: instructions in a row, their bytes, and what makes one wrong before it is run."""

from collections.abc import Sequence

import numpy as np

from .config import INSTRUCTION_BYTES, HardwareConfig
from .encoding import decode, encode
from .errors import EncodingError, ProgramError
from .footprint import (
    dram_rows,
    element_words,
    nest,
    outer_extent,
    scratchpad_writes,
    with_bank_masks,
)
from .instructions import Instruction, Load, Store, Vector
from .legality import legality_problem

__all__ = ["Program", "check_program", "program_from_bytes", "program_to_bytes"]

Program = tuple[Instruction, ...]

MASKS = ("act_read_banks", "act_write_banks", "acc_banks")


def program_to_bytes(program: Sequence[Instruction]) -> bytes:
    """The instructions, one after the other."""
    return b"".join(map(encode, program))


def program_from_bytes(data: bytes) -> Program:
    """The instructions in ``data``.

    Raises ProgramError naming the index of the first that is not legal.
    """
    if len(data) % INSTRUCTION_BYTES:
        raise ProgramError(
            f"a program of {len(data)} bytes; required a multiple of {INSTRUCTION_BYTES}"
        )
    program = []
    for index in range(len(data) // INSTRUCTION_BYTES):
        word = data[index * INSTRUCTION_BYTES : (index + 1) * INSTRUCTION_BYTES]
        try:
            program.append(decode(word))
        except EncodingError as error:
            raise ProgramError(f"instruction {index}: {error}") from None
    return tuple(program)


def check_program(
    program: Sequence[Instruction],
    config: HardwareConfig,
    window: tuple[int, int] | None = None,
) -> None:
    """Refuse what has no defined result: see docs/isa.md, "Rules for programs".

    window: first and last byte address DRAM accesses may touch; not checked when None.
    Raises ProgramError naming the instruction's index.
    """
    for index, instruction in enumerate(program):
        problem = (
            legality_problem(instruction, config)
            or _bank_problem(instruction, config)
            or _overlap_problem(instruction, config)
            or (window and _window_problem(instruction, config, window))
        )
        if problem:
            raise ProgramError(f"instruction {index} ({instruction.format.name}): {problem}")


def _bank_problem(instruction: Instruction, config: HardwareConfig) -> str | None:
    needed = with_bank_masks(instruction, config)
    for name in MASKS:
        given, required = getattr(instruction, name, 0), getattr(needed, name, 0)
        if required & ~given:
            return f"{name} = {given:#x}; its addresses need {required:#x}"
    return None


def _overlap_problem(instruction: Instruction, config: HardwareConfig) -> str | None:
    if isinstance(instruction, Load):
        cells = scratchpad_writes(instruction, config)[0].addresses
        if len(np.unique(cells)) != len(cells):
            return "two cells of the block have one address"
    if isinstance(instruction, Vector) and instruction.source is instruction.destination:
        depth = config.depth(instruction.source)
        outer, reads = outer_extent(instruction), element_words(instruction, config)
        writes = nest(instruction.destination_address, outer, instruction.destination_stride, depth)
        first = np.full(depth, len(writes))
        np.minimum.at(first, writes, np.arange(len(writes)))
        late = first[reads] < np.arange(len(reads)) // (len(reads) // len(writes))
        if late.any():
            return f"word {reads[late][0]} is read after this instruction wrote it"
    return None


def _window_problem(
    instruction: Instruction, config: HardwareConfig, window: tuple[int, int]
) -> str | None:
    if isinstance(instruction, Load | Store):
        for start, size in dram_rows(instruction, config):
            if start < window[0] or start + size - 1 > window[1]:
                return (
                    f"DRAM bytes {start:#x} to {start + size - 1:#x} leave the window "
                    f"{window[0]:#x} to {window[1]:#x}"
                )
    return None
