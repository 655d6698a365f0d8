"""Buffers of cascades made deeper, where there is room that no other unit needs.

A planned buffer is as deep as it must be, with room for one strip more.  Deeper ones let LOAD bring
a strip while an earlier one is still needed, as by a residual sum, and let the next strip be made
while STORE works on one.  Fewer rows are then stored twice, each of which VECTOR computes twice.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product

from dovetail.isa.frozen import replace

from .bank_users import shared_banks
from .cascade import Sized
from .choice import Choice
from .place import NoRoomError
from .plan import Plan
from .planner import Planner

__all__ = ["deepened", "deepest"]

MOST_AHEAD = 2
"""Most strips added to a buffer that is loaded or stored."""


def deepest(planner: Planner, plan: Plan) -> Plan:
    """``plan`` with the buffers of its cascades as deep as they can be, while no two units have
    more banks to wait for each other than before.
    """
    shared = shared_banks(plan.placed, planner.config)
    for number, choice in enumerate(plan.choices):
        for each in deepened(choice):
            choices = (*plan.choices[:number], each, *plan.choices[number + 1 :])
            with suppress(NoRoomError):
                other = planner.built(choices, plan.gone, plan.placing)
                now = shared_banks(other.placed, planner.config)
                if now <= shared:
                    plan, shared = other, now
                    break
    return plan


def deepened(choice: Choice) -> Iterator[Choice]:
    """``choice`` with deeper buffers, if it is a cascade; the deepest first."""
    if not isinstance(choice.how, Sized):
        return
    seen: list[Sequence[int]] = []
    for twice, ahead in product((True, False), reversed(range(MOST_AHEAD + 1))):
        more = _more(choice.how, ahead, twice=twice)
        if any(more) and more not in seen:
            seen.append(more)
            yield replace(choice, how=choice.how.deeper(more))


def _more(sized: Sized, ahead: int, *, twice: bool) -> tuple[int, ...]:
    """Strips to add to each buffer: ``ahead`` to those that are loaded or stored; to others that
    store rows twice, perhaps as many as they have.
    """
    found = []
    for ring in sized.rings.values():
        step = max((reader.step for reader in ring.readers), default=0) or 1
        deeper = 0
        if not ring.kept and ring.depth < ring.activation.rows:
            moved = not ring.producers or ring.stored
            deeper = ring.depth // step if ring.mirror and twice else 0
            deeper = ahead if moved else deeper
        found.append(deeper)
    return tuple(found)
