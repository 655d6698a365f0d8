"""Two programs of the same layers as one: of each part of the network, the plan that ran it faster.

A part ends where both plans begin with a layer, and where they agree on what is on chip of all that
layers on both sides touch.
"""

from itertools import pairwise

from .choice import Choice
from .draft import Draft
from .planner import Planner

__all__ = ["crossed"]

Crossed = tuple[list[Choice], frozenset[str], int]


def crossed(planner: Planner, best: Draft, other: Draft, least: float = 0) -> Crossed:
    """Choices, the activations that are then not wholly on chip, and the cycles less than
    ``best`` that both programs' shares promise; 0 where no part of ``other`` was faster by more
    than ``least``.
    """
    touched = [frozenset(x.name for x in (*layer.inputs, layer.output)) for layer in planner.layers]
    shares = best.shares, other.shares
    choices: list[Choice] = []
    gone: set[str] = set()
    saved = 0
    for part in _parts(best, other, touched):
        before, after = (sum(each[part.start : part.stop]) for each in shares)
        draft = other if before - after > least else best
        saved += before - after if draft is other else 0
        choices += [each for each in draft.plan.choices if each.first in part]
        gone |= draft.plan.gone & frozenset().union(*touched[part.start : part.stop])
    return choices, frozenset(gone), saved


def _parts(best: Draft, other: Draft, touched: list[frozenset[str]]) -> list[range]:
    """The layers of each part, as many as there can be."""
    starts, others = ({each.first for each in draft.plan.choices} for draft in (best, other))
    inside: set[int] = set()
    for name in best.plan.gone ^ other.plan.gone:
        numbers = [number for number, names in enumerate(touched) if name in names]
        inside |= set(range(numbers[0] + 1, numbers[-1] + 1))
    ends = [*sorted((starts & others) - inside), len(touched)]
    return [range(first, end) for first, end in pairwise(ends)]
