"""Proving a program free of races and deadlock.  Knows nothing of how the tokens were chosen.

Three parts: every instruction alone; the tokens, run alone, which show that the program ends
and what has ended before each instruction starts; and every conflicting pair of instructions of
different units, which must be ordered as in the program.  Together they prove that every run,
whatever the timing, ends with the same memory as executing the instructions one after the other.
"""

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import (
    bank_masks,
    distinct,
    element_words,
    nest,
    outer_extent,
    reads_parameters,
    results_written,
    scratchpad_reads,
    scratchpad_writes,
    written_memory,
)
from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Instruction, Load, Row, Vector
from dovetail.isa.legality import legality_problem
from dovetail.isa.memories import Memory, Unit

from ...errors import CompilerError
from .regions import Touched, touched

__all__ = ["CheckError", "check"]

WIDEST = 1 << 16
"""Words a scratchpad address can name."""

Tokens = dict[tuple[Unit, Unit], deque[int]]


class CheckError(CompilerError):
    """A program has a race, a deadlock, or an instruction that is wrong in itself."""


def check(program: Sequence[Instruction], config: HardwareConfig) -> None:
    """Prove that every run of ``program`` ends, with the result of executing it in order.

    Raises CheckError naming the instructions concerned.
    """
    wide = replace(config, act_depth=WIDEST, acc_depth=WIDEST)
    for index, instruction in enumerate(program):
        problem = _problem(instruction, config, wide)
        if problem:
            raise CheckError(f"instruction {index} ({instruction.unit.name}): {problem}")
    _check_races(program, config, _run_tokens(program, config))


def _problem(instruction: Instruction, config: HardwareConfig, wide: HardwareConfig) -> str | None:
    """Fault of one instruction.

    wide: ``config`` with all words of ACT and ACC that an address can name.
    """
    problem = legality_problem(instruction, config)
    if problem:
        return problem
    masks = bank_masks(instruction, config)
    if any(getattr(instruction, name) != mask for name, mask in masks.items()):
        return "its bank masks are not those of the banks it touches"
    touches = scratchpad_reads(instruction, wide, distinct)
    touches += scratchpad_writes(instruction, wide, distinct)
    for touch in touches:
        last = int(touch.addresses[-1])
        if touch.memory in (Memory.ACT, Memory.ACC) and last >= config.depth(touch.memory):
            return f"{touch.memory.value} word {last}; there are {config.depth(touch.memory)}"
    match instruction:
        case Load():
            (written,) = scratchpad_writes(instruction, config, distinct)
            cells = instruction.columns * instruction.rows * instruction.count_z
            if len(written.addresses) < cells:
                return "it writes one word twice"
        case Vector():
            if _reads_own_result(instruction, config):
                return "it reads a word after writing it"
    return None


def _reads_own_result(vector: Vector, config: HardwareConfig) -> bool:
    """True if a result lands on a word that a later result of the same instruction is made from."""
    source = vector.source if vector.row is Row.NONE else Memory.PAR
    none = vector.row is not Row.NONE and not reads_parameters(vector)
    if source is not written_memory(vector) or none:
        return False
    read = element_words(vector, config)
    if vector.row is not Row.NONE:
        outer = outer_extent(vector)
        read = nest(vector.par_address, outer, vector.par_stride, config.par_depth)
    results = np.flatnonzero(results_written(vector))
    count = len(results_written(vector))
    last_read = np.full(config.depth(source), -1)
    np.maximum.at(last_read, read, np.repeat(np.arange(count), len(read) // count))
    return any(
        bool(np.any(last_read[write.addresses] > results))
        for write in scratchpad_writes(vector, config)
    )


def _run_tokens(program: Sequence[Instruction], config: HardwareConfig) -> NDArray[np.int64]:
    """Run the tokens alone, with queues as long as the hardware's.

    Returns, for each instruction and unit, the last instruction of that unit that has ended before
    it starts, -1 for none.  Token flow is deterministic: tokens have one giver and one taker, both
    in order, so any order of execution gives the same pairs, and a deadlock in one is a deadlock in
    all.
    """
    before = np.full((len(program), len(Unit)), -1, np.int64)
    tokens: Tokens = {(giver, taker): deque() for giver in Unit for taker in Unit}
    queues: dict[Unit, deque[int]] = {unit: deque() for unit in Unit}
    last = dict.fromkeys(Unit, -1)
    dispatched = done = 0
    while done < len(program):
        moved = done
        while dispatched < len(program):
            queue = queues[program[dispatched].unit]
            if len(queue) == config.queue_depth:
                break
            queue.append(dispatched)
            dispatched += 1
        for queue in queues.values():
            while queue and _can_start(program[queue[0]], tokens, config):
                index = queue.popleft()
                _start(index, program[index], tokens, last, before)
                done += 1
        if done == moved:
            stuck = ", ".join(f"{q[0]} ({unit.name})" for unit, q in queues.items() if q)
            raise CheckError(
                f"deadlock: instructions {stuck} wait for tokens, or for room for them"
            )
    for (giver, taker), given in tokens.items():
        if given:
            raise CheckError(
                f"instruction {given[0]} ({giver.name}) gives {taker.name} a token "
                "that is never taken"
            )
    return before


def _can_start(instruction: Instruction, tokens: Tokens, config: HardwareConfig) -> bool:
    unit = instruction.unit
    return all(tokens[other, unit] for other in instruction.wait) and all(
        len(tokens[unit, other]) < config.token_max for other in instruction.post
    )


def _start(
    index: int,
    instruction: Instruction,
    tokens: Tokens,
    last: dict[Unit, int],
    before: NDArray[np.int64],
) -> None:
    """Take and give the tokens of one instruction, and note what ended before it."""
    unit, row = instruction.unit, before[index]
    ended = [(other, tokens[other, unit].popleft()) for other in instruction.wait]
    if last[unit] >= 0:
        ended.append((unit, last[unit]))
    for other, earlier in ended:
        np.maximum(row, before[earlier], out=row)
        row[other] = max(row[other], earlier)
    for other in instruction.post:
        tokens[unit, other].append(index)
    last[unit] = index


class _Accesses:
    """The latest instruction of each unit that read, and that wrote, each place from ``first``."""

    def __init__(self, first: int, size: int) -> None:
        self._first, self._size = first, size
        self._latest: dict[tuple[Unit, bool], NDArray[np.int32]] = {}

    def conflicts(self, unit: Unit, touch: Touched) -> Iterator[tuple[Unit, int]]:
        """Each other unit that did what conflicts with ``touch``, and its latest instruction."""
        places = self._places(touch)
        for (other, wrote), latest in self._latest.items():
            if other is not unit and (wrote or touch.writes) and len(places):
                yield other, int(latest[places].max())

    def note(self, index: int, unit: Unit, touch: Touched) -> None:
        """Instruction ``index`` of ``unit`` does ``touch``."""
        kind = unit, touch.writes
        if kind not in self._latest:
            self._latest[kind] = np.full(self._size, -1, np.int32)
        self._latest[kind][self._places(touch)] = index

    def _places(self, touch: Touched) -> NDArray[np.int64]:
        places = touch.places - self._first
        if places[0] >= 0 and places[-1] < self._size:
            return places
        return places[(places >= 0) & (places < self._size)]


def _check_races(
    program: Sequence[Instruction], config: HardwareConfig, before: NDArray[np.int64]
) -> None:
    """Every two conflicting instructions of different units are ordered as in the program.

    A unit works in order: when its latest conflicting instruction has ended, all have.  DRAM that
    no instruction writes has no conflicts.
    """
    touches = [list(touched(instruction, config)) for instruction in program]
    accesses: dict[Memory | None, _Accesses] = {
        memory: _Accesses(0, config.depth(memory)) for memory in Memory
    }
    stored = [each for touched_ in touches for each in touched_ if each.space is None]
    stored = [each for each in stored if each.writes]
    low = min((int(touch.places[0]) for touch in stored), default=0)
    high = max((int(touch.places[-1]) for touch in stored), default=-1)
    accesses[None] = _Accesses(low, high + 1 - low)
    for index, instruction in enumerate(program):
        unit = instruction.unit
        for touch in touches[index]:
            for other, earlier in accesses[touch.space].conflicts(unit, touch):
                if earlier > before[index, other]:
                    raise CheckError(
                        f"race in {touch.space.value if touch.space else 'dram'}: instructions "
                        f"{earlier} ({other.name}) and {index} ({unit.name}) are not ordered by "
                        "tokens"
                    )
        for touch in touches[index]:
            accesses[touch.space].note(index, unit, touch)
