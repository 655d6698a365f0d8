"""The interpreter of the manual beside the executable semantics, on random programs and words."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from dovetail.isa import encoding, legality, semantics
from dovetail.isa.config import HardwareConfig
from dovetail.isa.errors import EncodingError
from dovetail.isa.instructions import FORMATS, Instruction
from dovetail.isa.memories import Memory
from tests.differential.generate import Case, generate

from .decode import IllegalInstructionError, decode
from .machine import run
from .memories import Memories
from .page import INSTRUCTION_BYTES, configuration, names_of_configurations

EDGES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 256)
CHANGES = 4
"""Words made of each instruction."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """instructions: that ran. words: that were judged legal or not. differences: what differed."""

    instructions: int
    words: int
    differences: list[str]


def compare(config: HardwareConfig, sizes: dict[str, int], seed: int, number: int) -> Comparison:
    """One random program, and as many random words.

    sizes: those of ``config``, as the interpreter knows them.
    """
    case = generate(config, seed, number)
    differences = _run_both(case, sizes, Random(f"{seed} {number}"))
    words = 0
    for word in _words(case, np.random.default_rng((seed, number, 1))):
        words += 1
        if _page_accepts(word, sizes) != _accepts(word, config):
            differences.append(f"only one of both refuses {word[::-1].hex()}")
    return Comparison(len(case.instructions), words, differences)


def refusals_differ(instruction: Instruction, config: HardwareConfig) -> list[str]:
    """Where page and package do not agree on ``instruction`` with one field at an edge."""
    word = int.from_bytes(encoding.encode(instruction), "little")
    sizes, layout = sizes_of(config), instruction.format
    found = []
    for field in layout.fields:
        mask, low = (1 << field.width) - 1, layout.offset(field.name)
        for value in (*EDGES, mask, mask >> 1, mask - 255):
            changed = word & ~(mask << low) | (value & mask) << low
            raw = changed.to_bytes(INSTRUCTION_BYTES, "little")
            if _page_accepts(raw, sizes) != _accepts(raw, config):
                found.append(f"{layout.name}: {field.name} = {value & mask}")
    return found


def sizes_of(config: HardwareConfig) -> dict[str, int]:
    """Sizes on the page for a configuration of that name; else those of the object."""
    if config.name in names_of_configurations():
        return configuration(config.name)
    return {name: getattr(config, name) for name in configuration("tiny")}


def _run_both(case: Case, sizes: dict[str, int], order: Random) -> list[str]:
    expected, initial = case.initial(), case.initial()
    found = Memories(sizes, initial.dram, initial.dram_base)
    for memory in Memory:
        found.raw[memory.code][:] = initial.words(memory)
    start = case.program_address - initial.dram_base
    size = INSTRUCTION_BYTES * len(case.instructions)
    run(initial.dram[start : start + size].tobytes(), found, order)
    for instruction in case.instructions:
        semantics.execute(expected, instruction)
    pairs = [(memory.name, found.raw[memory.code], expected.words(memory)) for memory in Memory]
    pairs.append(("DRAM", found.dram, expected.dram))
    return [
        f"{name}: {np.count_nonzero(ours != theirs)} bytes differ, the first at "
        f"{np.argwhere(ours != theirs)[0].tolist()}"
        for name, ours, theirs in pairs
        if not np.array_equal(ours, theirs)
    ]


def _words(case: Case, rng: np.random.Generator) -> Iterator[bytes]:
    """Instructions with one field changed, often to an edge; some with any bit changed."""
    for instruction in CHANGES * case.instructions:
        layout = FORMATS[instruction.unit]
        word = int.from_bytes(encoding.encode(instruction), "little")
        field = layout.fields[rng.integers(len(layout.fields))]
        if rng.random() < 0.2:
            word ^= 1 << int(rng.integers(512))
        else:
            mask = (1 << field.width) - 1
            edge = int(rng.choice(EDGES)) if rng.random() < 0.6 else int(rng.integers(1 << 62))
            low = layout.offset(field.name)
            word = word & ~(mask << low) | (edge & mask) << low
        yield word.to_bytes(INSTRUCTION_BYTES, "little")


def _page_accepts(word: bytes, sizes: dict[str, int]) -> bool:
    try:
        decode(word, sizes)
    except IllegalInstructionError:
        return False
    return True


def _accepts(word: bytes, config: HardwareConfig) -> bool:
    try:
        instruction = encoding.decode(word)
    except EncodingError:
        return False
    return legality.legality_problem(instruction, config) is None
