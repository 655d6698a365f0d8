"""Programs: FETCH, the four queues, and tokens."""

from collections import deque
from random import Random

from . import units
from .decode import Instruction, decode
from .memories import Memories
from .page import INSTRUCTION_BYTES, UNITS

MEANINGS = {
    "LOAD": units.load,
    "GEMM": units.gemm,
    "VECTOR": units.vector,
    "STORE": units.store,
}


class StuckError(Exception):
    """No unit can start, now or later: waits that nothing serves, or posts without room."""


def run(program: bytes, memories: Memories, order: Random) -> None:
    """Run the whole program; of the units that may start next, ``order`` chooses.

    The results of a program that the manual defines do not depend on ``order``: an instruction
    takes effect at once, and tokens keep those apart that touch the same words.

    Raises:
        IllegalInstructionError: at the first instruction that the hardware refuses.
        StuckError: the program does not end.
    """
    config = memories.config
    raw = [
        program[start : start + INSTRUCTION_BYTES]
        for start in range(0, len(program), INSTRUCTION_BYTES)
    ]
    queues: dict[str, deque[Instruction]] = {unit: deque() for unit in UNITS}
    tokens = [[0] * len(UNITS) for _ in UNITS]
    fetched = 0
    held: Instruction | None = None
    while True:
        while held is not None or fetched < len(raw):
            if held is None:
                held = decode(raw[fetched], config, fetched)
                fetched += 1
            if len(queues[held.unit]) == config["queue_depth"]:
                break
            queues[held.unit].append(held)
            held = None
        waiting = [unit for unit in UNITS if queues[unit]]
        if not waiting:
            return
        ready = [unit for unit in waiting if _may_start(queues[unit][0], tokens, config)]
        if not ready:
            raise StuckError(", ".join(waiting))
        _execute(queues[order.choice(ready)].popleft(), tokens, memories)


def _units_of(mask: int) -> list[int]:
    return [number for number in range(len(UNITS)) if mask >> number & 1]


def _may_start(it: Instruction, tokens: list[list[int]], config: dict[str, int]) -> bool:
    own = UNITS.index(it.unit)
    served = all(tokens[other][own] >= 1 for other in _units_of(it["wait"]))
    return served and all(
        tokens[own][other] < config["token_max"] for other in _units_of(it["post"])
    )


def _execute(it: Instruction, tokens: list[list[int]], memories: Memories) -> None:
    own = UNITS.index(it.unit)
    for other in _units_of(it["wait"]):
        tokens[other][own] -= 1
    MEANINGS[it.unit](it, memories)
    for other in _units_of(it["post"]):
        tokens[own][other] += 1
