"""Random legal programs without races: every instruction, every unit, every memory.

Instructions are drawn with random addresses in small memories, so that most touch what others
touch; then tokens are inserted until every conflicting pair on different units is ordered.  Nothing
here is shared with the compiler.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dovetail.isa.config import DramTiming, HardwareConfig
from dovetail.isa.encoding import encode
from dovetail.isa.instructions import Instruction, Rounding
from dovetail.isa.memories import Memory
from dovetail.isa.registers import ErrorCode
from dovetail.isa.state import MachineState

from .draw import DRAM_BASE, Draw, roundings_of
from .order import ends, order_with_tokens, unordered_pair, with_surplus_posts
from .states import program_offset, random_state, random_timing

__all__ = ["DRAM_BASE", "Case", "generate"]

WATCHDOG = 1 << 20
"""Longer than any one instruction takes on the slowest memory."""
MOST_INSTRUCTIONS = 60
FIXED_ALONE = 0.4
"""Share of programs with that rounding alone: PAR may then hold what is no float32."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program and everything around it: the same for every backend.

    watchdog: cycles, as in the register.
    damage: index to the 64 bytes that are in DRAM instead of that instruction.
    margin: bytes at the start of DRAM that are outside the window.
    outcomes: how the run may end.
    """

    config: HardwareConfig
    instructions: tuple[Instruction, ...]
    state: MachineState
    timing: DramTiming
    watchdog: int = WATCHDOG
    damage: Mapping[int, bytes] = field(default_factory=dict)
    margin: int = 0
    outcomes: frozenset[ErrorCode] = frozenset({ErrorCode.NONE})

    @property
    def program_address(self) -> int:
        """Byte address of instruction 0."""
        return DRAM_BASE + program_offset(self.config)

    @property
    def window(self) -> tuple[int, int]:
        """First and last byte address a program may touch."""
        return DRAM_BASE + self.margin, DRAM_BASE + len(self.state.dram) - 1

    def initial(self) -> MachineState:
        """A copy of the state before the run, the program in DRAM."""
        source = self.state
        copy = MachineState.zeros(self.config, source.dram.copy(), source.dram_base)
        for memory in Memory:
            words = source.words(memory)
            copy.write_words(memory, np.arange(len(words)), words)
        code = b"".join(
            self.damage.get(index) or encode(instruction)
            for index, instruction in enumerate(self.instructions)
        )
        start = self.program_address - DRAM_BASE
        copy.dram[start : start + len(code)] = np.frombuffer(code, np.uint8)
        return copy


def generate(config: HardwareConfig, seed: int, number: int) -> Case:
    """Case ``number`` of ``seed``: always the same.

    Raises AssertionError when the tokens leave a pair of instructions unordered.
    """
    rng = np.random.default_rng((seed, number))
    roundings = roundings_of(config)
    if config.fixed_rounding and rng.random() < FIXED_ALONE:
        roundings = (Rounding.FIXED,)
    while True:
        draw = Draw(config, rng, roundings)
        count = int(rng.integers(4, MOST_INSTRUCTIONS))
        plain = [draw.instruction() for _ in range(count)]
        instructions = order_with_tokens(plain, config, rng)
        surplus = with_surplus_posts(instructions, 0.3 * rng.random(), rng)
        instructions = surplus if ends(surplus, config) else instructions
        if ends(instructions, config):
            break
    pair = unordered_pair(instructions, config)
    assert pair is None, f"no tokens order instructions {pair} of seed {seed}, case {number}"
    state = random_state(config, rng, count, roundings)
    return Case(config, tuple(instructions), state, random_timing(config, rng))
