"""Proving a program free of races and deadlock.  Knows nothing of how the tokens were chosen."""

from collections import deque
from collections.abc import Sequence

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Instruction, legality_problem
from dovetail.isa.memories import Unit

from ...errors import CompilerError
from .regions import Space, touched

__all__ = ["CheckError", "check"]


class CheckError(CompilerError):
    """A program has a race or a deadlock, or an instruction that is not legal."""


def check(program: Sequence[Instruction], config: HardwareConfig) -> None:
    """Prove that every run of ``program`` ends, with the same result.

    Raises CheckError naming the instructions concerned.
    """
    for index, instruction in enumerate(program):
        problem = legality_problem(instruction, config)
        if problem:
            raise CheckError(f"instruction {index}: {problem}")
    before = _run(program, config)
    _check_races(program, config, before)


def _run(program: Sequence[Instruction], config: HardwareConfig) -> np.ndarray:
    """Run the tokens alone, with queues as long as the hardware's.

    Returns, for each instruction and unit, the last instruction of that unit that has ended before it starts,
    -1 for none.  Token flow is deterministic: tokens have one giver and one taker, both in order, so any order of
    execution gives the same pairs, and a deadlock in one is a deadlock in all.
    """
    before = np.full((len(program), len(Unit)), -1, np.int64)
    tokens: dict[tuple[Unit, Unit], deque[int]] = {}
    queues: dict[Unit, deque[int]] = {unit: deque() for unit in Unit}
    last = dict.fromkeys(Unit, -1)
    dispatched = done = 0
    while done < len(program):
        moved = False
        while dispatched < len(program):
            queue = queues[program[dispatched].unit]
            if len(queue) == config.queue_depth:
                break
            queue.append(dispatched)
            dispatched += 1
            moved = True
        for unit, queue in queues.items():
            while queue and _can_start(program[queue[0]], tokens, config):
                index = queue.popleft()
                instruction = program[index]
                row = before[index]
                if last[unit] >= 0:
                    np.maximum(row, before[last[unit]], out=row)
                    row[unit] = last[unit]
                for other in instruction.wait:
                    giver = tokens[other, unit].popleft()
                    np.maximum(row, before[giver], out=row)
                    row[other] = max(row[other], giver)
                for other in instruction.post:
                    tokens.setdefault((unit, other), deque()).append(index)
                last[unit] = index
                done += 1
                moved = True
        if not moved:
            stuck = [queue[0] for queue in queues.values() if queue]
            raise CheckError(
                f"deadlock: instructions {', '.join(map(str, stuck))} wait for tokens, or for room for them"
            )
    left = {pair: len(given) for pair, given in tokens.items() if given}
    if left:
        (giver, taker), count = next(iter(left.items()))
        raise CheckError(f"{count} tokens from {giver.name} to {taker.name} are never taken")
    return before


def _can_start(
    instruction: Instruction, tokens: dict[tuple[Unit, Unit], deque[int]], config: HardwareConfig
) -> bool:
    unit = instruction.unit
    return all(tokens.get((other, unit)) for other in instruction.wait) and all(
        len(tokens.get((unit, other), ())) < config.token_max for other in instruction.post
    )


def _check_races(
    program: Sequence[Instruction], config: HardwareConfig, before: np.ndarray
) -> None:
    """Every two conflicting instructions of different units are ordered."""
    touches = [list(touched(instruction, config)) for instruction in program]
    spaces: dict[Space, list[tuple[int, np.ndarray, bool]]] = {}
    for index, listed in enumerate(touches):
        for touch in listed:
            spaces.setdefault(touch.space, []).append((index, touch.places, touch.writes))
    for space, listed_touches in spaces.items():
        for position, (index, places, writes) in enumerate(listed_touches):
            unit = program[index].unit
            for earlier, earlier_places, earlier_writes in listed_touches[:position]:
                other = program[earlier].unit
                if other is unit or not (writes or earlier_writes):
                    continue
                if before[index][other] >= earlier or before[earlier][unit] >= index:
                    continue
                if places[0] > earlier_places[-1] or earlier_places[0] > places[-1]:
                    continue
                if len(np.intersect1d(places, earlier_places, assume_unique=True)):
                    where = space.value if space else "dram"
                    raise CheckError(
                        f"race in {where}: instructions {earlier} ({other.name}) and {index} "
                        f"({unit.name}) are not ordered by tokens"
                    )
