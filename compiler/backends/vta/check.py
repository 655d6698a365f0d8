"""Proving a program free of races and deadlock.  Knows nothing of how the tokens were chosen.

Three parts: every instruction by itself; the tokens, run alone, which show that the program ends
and what has ended before each instruction starts; and every conflicting pair of instructions of
different units, which must be ordered as in the program.  Together they prove that every run,
whatever the timing, leaves what executing the instructions one after the other leaves.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import scratchpad_reads, scratchpad_writes, with_bank_masks
from dovetail.isa.instructions import Instruction, Load, Vector, legality_problem
from dovetail.isa.memories import Memory, Unit

from ...errors import CompilerError
from .regions import Touched, touched

__all__ = ["CheckError", "check"]

WIDEST = 1 << 16
"""Words a scratchpad address can name."""

Tokens = dict[tuple[Unit, Unit], deque[int]]


class CheckError(CompilerError):
    """A program has a race, a deadlock, or an instruction that is wrong by itself."""


def check(program: Sequence[Instruction], config: HardwareConfig) -> None:
    """Prove that every run of ``program`` ends, with the result of executing it in order.

    Raises CheckError naming the instructions concerned.
    """
    for index, instruction in enumerate(program):
        problem = _problem(instruction, config)
        if problem:
            raise CheckError(f"instruction {index} ({instruction.unit.name}): {problem}")
    _check_races(program, config, _run_tokens(program, config))


def _problem(instruction: Instruction, config: HardwareConfig) -> str | None:
    """What is wrong with one instruction."""
    problem = legality_problem(instruction, config)
    if problem:
        return problem
    if with_bank_masks(instruction, config) != instruction:
        return "its bank masks are not those of the banks it touches"
    wide = replace(config, act_depth=WIDEST, acc_depth=WIDEST)
    touches = scratchpad_reads(instruction, wide) + scratchpad_writes(instruction, wide)
    for touch in touches:
        last = int(touch.addresses.max())
        if touch.memory in (Memory.ACT, Memory.ACC) and last >= config.depth(touch.memory):
            return f"{touch.memory.value} word {last}; there are {config.depth(touch.memory)}"
    match instruction:
        case Load():
            (written,) = scratchpad_writes(instruction, config)
            if len(np.unique(written.addresses)) < len(written.addresses):
                return "it writes one word twice"
        case Vector():
            if _reads_own_result(instruction, config):
                return "it reads a word after writing it"
    return None


def _reads_own_result(vector: Vector, config: HardwareConfig) -> bool:
    """Whether a result lands on a word that a later result of the same instruction is made from."""
    if vector.source is not vector.destination:
        return False
    read = scratchpad_reads(vector, config)[0].addresses
    (write,) = scratchpad_writes(vector, config)
    results = len(write.addresses)
    last_read = np.full(config.depth(vector.source), -1)
    np.maximum.at(last_read, read, np.repeat(np.arange(results), len(read) // results))
    return bool(np.any(last_read[write.addresses] > np.arange(results)))


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


def _check_races(
    program: Sequence[Instruction], config: HardwareConfig, before: NDArray[np.int64]
) -> None:
    """Every two conflicting instructions of different units are ordered as in the program."""
    spaces: dict[Memory | None, list[tuple[int, Touched]]] = {}
    for index, instruction in enumerate(program):
        for touch in touched(instruction, config):
            spaces.setdefault(touch.space, []).append((index, touch))
    units = np.array([instruction.unit for instruction in program])
    for space, entries in spaces.items():
        owner = np.array([index for index, _ in entries])
        unit = units[owner]
        low = np.array([touch.places[0] for _, touch in entries])
        high = np.array([touch.places[-1] for _, touch in entries])
        writes = np.array([touch.writes for _, touch in entries])
        for position, (index, touch) in enumerate(entries):
            ordered = before[index, unit[:position]] >= owner[:position]
            suspect = (unit[:position] != unit[position]) & ~ordered
            suspect &= writes[:position] | touch.writes
            suspect &= (low[:position] <= high[position]) & (low[position] <= high[:position])
            for other in np.flatnonzero(suspect):
                earlier, other_touch = entries[other]
                if touch.meets(other_touch):
                    raise CheckError(
                        f"race in {space.value if space else 'dram'}: instructions {earlier} "
                        f"({program[earlier].unit.name}) and {index} ({program[index].unit.name}) "
                        "are not ordered by tokens"
                    )
