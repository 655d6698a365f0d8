"""The fastest of the programs that some plans make."""

from collections.abc import Mapping, Sequence
from itertools import islice

from ...options import Overlap
from .choice import Change, Choice
from .draft import Draft, make_draft, without_waits
from .layers.activation import Activation
from .place import NoRoomError
from .plan import Plan
from .planner import Planner
from .refine import Trial, refine
from .timing import Timing

__all__ = ["fastest"]

BUSY = 0.5
"""Part of the time that DRAM has to work for plans that move less to be tried."""

PRICE = 0.25
"""What a cycle of DRAM counts as in those."""

FEW_OPERATIONS, MANY_OPERATIONS = 2500, 9000
"""Operations above which no plans that move less are made, and above which only one plan is: to
order one takes long.
"""

MOST_NEAR = 3
"""Plans that keep one activation more or less on chip than the best of the first ones, at most."""

MOST_ROUNDS, ROUND_OPERATIONS = 40, 20_000
"""Programs made to find a faster plan, at most, and operations of all of them."""

OPERATIONS_A_ROUND = 2
"""Short programs have little to gain: there are no more rounds than they have so many operations.
"""

FAR = 3
"""Where a part of a model gets a share of the effort, what it gets grows so with its cycles over
those of its roof: as their third power."""

NEAR = 1.06
"""Cycles over those of the roof that are near enough for a long program."""


def fastest(
    planner: Planner,
    activations: Mapping[str, Activation],
    overlap: Overlap,
    timing: Timing,
    effort: float,
) -> Draft:
    """The program of the plan that makes the fastest one, out of some.

    The first ones differ in what the planner counts: perhaps the waits between layers, and, where
    DRAM is busy, what is moved.  Others differ from the best of those in how some layers run.
    Short programs are searched once more, from the best of some that keep another activation on
    chip.

    effort: how many are tried, 1 for as many as usual.
    """
    best = make_draft(planner, planner.best(), activations, overlap, timing)
    if overlap is not Overlap.LAYERS:
        return best
    count = len(best.builder.operations)
    plans: list[Plan] = []
    if count <= MANY_OPERATIONS:
        plans.append(planner.best(edges=True))
    if best.plan.dram > BUSY * best.plan.cycles and count <= FEW_OPERATIONS:
        plans += [planner.best(PRICE), planner.best(PRICE, edges=True)]
    seen = {best.plan.key}
    for plan in plans:
        if plan.key not in seen:
            seen.add(plan.key)
            other = make_draft(planner, plan, activations, overlap, timing)
            best = min(best, other, key=_cycles)
    distance = best.cycles / max(1, planner.roof.cycles)
    effort = min(effort * distance**FAR, max(effort, 1.0))
    found = _refined(best, planner, activations, timing, effort, MOST_ROUNDS)
    if count <= effort * FEW_OPERATIONS:
        near = [
            make_draft(planner, plan, activations, overlap, timing)
            for plan in islice(planner.near(best.plan), MOST_NEAR)
            if plan.key not in seen
        ]
        if near:
            other = min(near, key=_cycles)
            other = _refined(other, planner, activations, timing, effort, MOST_ROUNDS // 2)
            found = min(found, other, key=_cycles)
    if found.is_load_bound and count <= FEW_OPERATIONS:
        found = _in_fewer(found, planner, activations, timing)
    return without_waits(found, planner.config, timing)


def _in_fewer(
    best: Draft, planner: Planner, activations: Mapping[str, Activation], timing: Timing
) -> Draft:
    """``best``, or a faster program of fewer instructions, which DRAM has to bring as well."""
    gone = best.plan.gone
    try:
        plan = planner.built(planner.chooser.larger(best.plan.choices, gone), gone)
    except NoRoomError:
        return best
    other = make_draft(planner, plan, activations, Overlap.LAYERS, timing)
    return min(best, other, key=_cycles)


def _refined(
    best: Draft,
    planner: Planner,
    activations: Mapping[str, Activation],
    timing: Timing,
    effort: float,
    rounds: int,
) -> Draft:
    """``best``, or a faster program, in which some layers run in another way; of ``rounds``."""
    count, roof = max(1, len(best.program)), planner.roof.cycles
    most = min(rounds, int(effort * ROUND_OPERATIONS) // count, count // OPERATIONS_A_ROUND)
    if count > FEW_OPERATIONS and best.cycles <= NEAR * roof:
        return best
    drafts, gone = {best.plan.key: best}, best.plan.gone

    def attempt(choices: Sequence[Choice]) -> Trial | None:
        try:
            plan = planner.built(choices, gone)
        except NoRoomError:
            return None
        if plan.key not in drafts:
            drafts[plan.key] = make_draft(planner, plan, activations, Overlap.LAYERS, timing)
        return _trial(drafts[plan.key])

    def ways(choices: Sequence[Choice], number: int) -> Sequence[Change]:
        return planner.chooser.changes(choices, number, gone)

    start = _trial(best)
    for choices in planner.chooser.grained(best.plan.choices, gone):
        if len(drafts) > most:
            break
        other = attempt(choices)
        if other and other.cycles < start.cycles:
            start = other
    found = refine(start, attempt, ways, most - len(drafts))
    return drafts[gone, tuple(choice.key for choice in found.choices)]


def _trial(draft: Draft) -> Trial:
    return Trial(draft.plan.choices, draft.cycles, draft.shares)


def _cycles(draft: Draft) -> int:
    return draft.cycles
