"""Instructions that gave the tokens that others waited for."""

from collections import deque
from collections.abc import Sequence

from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit

__all__ = ["Flow", "token_flows"]


@frozen
class Flow:
    """A token: the indices of the instruction that posted it and of the one that took it."""

    source: int
    target: int


def token_flows(program: Sequence[Instruction]) -> list[Flow]:
    """Every token that was taken, by the instruction that took it.

    Tokens between two units are alike: the first one posted is the first one taken.
    """
    posted: dict[tuple[Unit, Unit], deque[int]] = {}
    for index, instruction in enumerate(program):
        for target in instruction.post:
            posted.setdefault((instruction.unit, target), deque()).append(index)
    flows = []
    for index, instruction in enumerate(program):
        for source in sorted(instruction.wait):
            waiting = posted.get((source, instruction.unit))
            if waiting:
                flows.append(Flow(waiting.popleft(), index))
    return flows
