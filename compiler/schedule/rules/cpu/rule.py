"""The form of a rule."""

from collections.abc import Callable, Sequence

from ...steps.schedule import Schedule, Step
from .machine import Machine

__all__ = ["Rule", "as_it_is"]

Rule = Callable[[Schedule, Machine, Sequence[Step]], Schedule]
"""The schedule of a definition with the rule's steps.

It looks at the loops only.  Steps that are given were chosen by a search: they take the place of
the rule's own choice for the loops that they name; what follows from them is the rule's.
"""


def as_it_is(schedule: Schedule, machine: Machine, given: Sequence[Step] = ()) -> Schedule:
    """No steps."""
    return schedule
