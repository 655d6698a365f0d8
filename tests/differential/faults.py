"""Programs that the machine must stop: a random program with one fault in it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.encoding import decode, encode
from dovetail.isa.errors import EncodingError
from dovetail.isa.instructions import Instruction, Load, Store
from dovetail.isa.legality import legality_problem
from dovetail.isa.memories import Unit
from dovetail.isa.registers import ErrorCode

from .draw import DATA_BYTES
from .generate import Case

__all__ = ["FAULTS", "Fault", "with_fault"]

Fault = Callable[[Case, np.random.Generator], Case]

FAR = 0x4000_0000
"""A byte address, and a multiple of every word's size."""
STUCK_WATCHDOG = 2500
"""Short enough to wait for, for a program that can never end."""


def _illegal_word(case: Case, rng: np.random.Generator) -> Case:
    """One field of one instruction changed until the machine must refuse it."""
    index = int(rng.integers(len(case.instructions)))
    layout = case.instructions[index].format
    good = int.from_bytes(encode(case.instructions[index]), "little")
    while True:
        place, width = layout.used_bits, layout.width - layout.used_bits
        if rng.random() < 0.9:
            chosen = layout.fields[int(rng.integers(len(layout.fields)))]
            place, width = layout.offset(chosen.name), chosen.width
        mask = (1 << width) - 1
        value = int.from_bytes(rng.bytes(INSTRUCTION_BYTES), "little") & mask
        value = 0 if rng.random() < 0.2 else value
        word = (good & ~(mask << place) | value << place).to_bytes(INSTRUCTION_BYTES, "little")
        if _refused(word, case.config):
            outcomes = frozenset({ErrorCode.ILLEGAL_INSTRUCTION})
            return replace(case, damage={index: word}, outcomes=outcomes)


def _refused(word: bytes, config: HardwareConfig) -> bool:
    try:
        return legality_problem(decode(word), config) is not None
    except EncodingError:
        return True


def _far_address(case: Case, rng: np.random.Generator) -> Case:
    """One transfer moved to where there is no memory."""
    places = [
        index
        for index, instruction in enumerate(case.instructions)
        if isinstance(instruction, Store) or (isinstance(instruction, Load) and instruction.words)
    ]
    if not places:
        return _illegal_word(case, rng)
    index = int(rng.choice(places))
    moved = replace(case.instructions[index], dram_address=FAR)  # type: ignore[arg-type]
    instructions = (*case.instructions[:index], moved, *case.instructions[index + 1 :])
    return replace(case, instructions=instructions, outcomes=frozenset({ErrorCode.WINDOW}))


def _narrow_window(case: Case, rng: np.random.Generator) -> Case:
    """A window that starts at any byte of the data; transfers may be cut by it, or miss it."""
    margin = int(rng.integers(1, DATA_BYTES))
    outcomes = frozenset({ErrorCode.NONE, ErrorCode.WINDOW})
    return replace(case, margin=margin, outcomes=outcomes)


def _short_watchdog(case: Case, rng: np.random.Generator) -> Case:
    """A watchdog that may fire while everything is well."""
    outcomes = frozenset({ErrorCode.NONE, ErrorCode.WATCHDOG})
    return replace(case, watchdog=int(rng.integers(1, 150)), outcomes=outcomes)


def _deadlock(case: Case, rng: np.random.Generator) -> Case:
    """The last instruction of a unit waits for a token that no one posts."""
    units = sorted({instruction.unit for instruction in case.instructions})
    unit = units[int(rng.integers(len(units)))]
    index = max(i for i, each in enumerate(case.instructions) if each.unit is unit)
    last = case.instructions[index]
    missing = sorted(
        other
        for other in set(Unit) - {unit} - last.wait
        if not _surplus(case.instructions, other, unit)
    )
    if not missing:
        return _illegal_word(case, rng)
    other = missing[int(rng.integers(len(missing)))]
    waiting = replace(last, wait=last.wait | {other})
    instructions = (*case.instructions[:index], waiting, *case.instructions[index + 1 :])
    return replace(
        case,
        instructions=instructions,
        watchdog=STUCK_WATCHDOG,
        outcomes=frozenset({ErrorCode.WATCHDOG}),
    )


def _surplus(instructions: tuple[Instruction, ...], giver: Unit, taker: Unit) -> int:
    """Tokens from ``giver`` to ``taker`` that are left at the end."""
    posts = sum(each.unit is giver and taker in each.post for each in instructions)
    return posts - sum(each.unit is taker and giver in each.wait for each in instructions)


FAULTS: tuple[Fault, ...] = (
    _illegal_word,
    _far_address,
    _narrow_window,
    _short_watchdog,
    _deadlock,
)


def with_fault(case: Case, seed: int, number: int) -> Case:
    """``case`` with a fault; the kinds take turns with ``number``."""
    rng = np.random.default_rng((seed, number, 1))
    return FAULTS[number % len(FAULTS)](case, rng)
