"""The fastest of the programs that some plans make."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice

from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory, Unit

from ...options import Overlap
from .choice import Change, Choice
from .constant_loads import PIECE_CYCLES
from .deepen import deepest
from .draft import Draft, make_draft
from .last_changes import FEW_INSTRUCTIONS, without_waits
from .layers.activation import Activation
from .place import NoRoomError
from .placing import PLACINGS, PLAIN
from .plan import Plan
from .planner import Planner
from .refine import Trial, refine
from .schedules import TILES
from .timing import Timing
from .ways import GRAINS

__all__ = ["fastest"]

BUSY = 0.5
"""Plans that move less are tried where DRAM works for this part of the time, or more."""

PRICE = 0.25
"""Price of a cycle of DRAM in those plans; and where there are too many operations for those, but
DRAM sets the roof, in the one that counts waits.
"""

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

FAR, MOST_MORE = 3, 2
"""Where a part of a model gets a share of the effort, what it gets grows so with its cycles over
those of its roof: as their third power, to so many times its share."""

SHORT = 1000
"""Cycles of a layer that may run in one tile: to read instructions for four takes longer than what
waits for its only one."""

SAVED = 0.01
"""Part of the cycles that reading the instructions takes that this saves, at least, to be tried."""

WORSE = 1.1
"""Times the cycles of the best long program; where tiles by rows take more, no others are tried."""

NEAR = 1.06
"""A long program with so many cycles over those of its roof is near enough; and no program of so
many is tried with LOADs that are cut.
"""


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
    chip.  Then all of the best plan is placed in other ways, and buffers become deeper.

    effort: how many are tried, 1 for as many as usual.
    """
    first = make_draft(planner, planner.best(), activations, overlap, timing)
    if overlap is not Overlap.LAYERS:
        return first
    best = _with_short_layers(first, planner, activations, timing)
    seen = {first.plan.key}

    def better(plan: Plan) -> Draft:
        found, plans = best, [plan]
        if not _is_near(best, planner):
            with suppress(NoRoomError):
                plans.append(planner.built(planner.chooser.by_channels(plan.choices), plan.gone))
        for each in plans:
            if each.key not in seen:
                seen.add(each.key)
                other = make_draft(planner, each, activations, overlap, timing)
                other = _with_short_layers(other, planner, activations, timing)
                found = min(found, other, key=_cycles)
        return found

    count = len(first.builder.operations)
    if count <= MANY_OPERATIONS:
        roof, is_long = planner.roof, count > FEW_OPERATIONS
        price = PRICE if is_long and roof.dram >= max(roof.gemm, roof.vector) else 0.0
        for plan in (first.plan, planner.best(price, edges=True)):
            best = better(plan)
    if any(layer.kernel.by_rows for layer in planner.layers):
        best = _by_pixels(best, planner, activations, timing)
    if best.plan.dram > BUSY * best.plan.cycles and count <= FEW_OPERATIONS:
        for plan in (planner.best(PRICE), planner.best(PRICE, edges=True)):
            best = better(plan)
    count = len(best.builder.operations)
    distance = best.cycles / max(1, planner.roof.cycles)
    given, effort = effort, min(effort * min(distance**FAR, MOST_MORE), max(effort, 1.0))
    found, rival = _refined(best, planner, activations, timing, effort, MOST_ROUNDS)
    if count <= effort * FEW_OPERATIONS:
        near = [
            make_draft(planner, plan, activations, overlap, timing)
            for plan in islice(planner.near(best.plan), MOST_NEAR)
            if plan.key not in seen
        ]
        if near:
            other = _with_short_layers(min(near, key=_cycles), planner, activations, timing)
            rival, _ = _refined(other, planner, activations, timing, effort, MOST_ROUNDS // 2)
    if count <= effort * ROUND_OPERATIONS and not _is_near(found, planner):
        starts = {each.plan.key: each for each in (found, rival)}.values()
        found = min((_with_room(one, planner, activations, timing) for one in starts), key=_cycles)
    else:
        found = min(found, rival, key=_cycles)
    if count <= FEW_OPERATIONS:
        found = _with_whole_results(found, planner, activations, timing)
    found = _with_loads_cut(found, planner, activations, timing)
    if found.is_load_bound and count <= FEW_OPERATIONS:
        found = _in_fewer(found, planner, activations, timing)
        if given >= 1 and len(found.plain) <= FEW_INSTRUCTIONS:
            return _with_items_apart(found, planner, activations, timing, given)
    return without_waits(found, planner.config, timing, given)


def _by_pixels(
    best: Draft, planner: Planner, activations: Mapping[str, Activation], timing: Timing
) -> Draft:
    """``best``, or a faster program in which layers of tokens have tiles of some tokens: GEMM sums
    up the first while VECTOR normalises the next.
    """
    choices = planner.chooser.by_pixels(best.plan.choices)
    try:
        plan = planner.built(choices, best.plan.gone)
    except NoRoomError:
        return best
    if plan.key == best.plan.key:
        return best
    other = make_draft(planner, plan, activations, Overlap.LAYERS, timing)
    other = _with_short_layers(other, planner, activations, timing)
    return min(best, other, key=_cycles)


def _with_short_layers(
    best: Draft, planner: Planner, activations: Mapping[str, Activation], timing: Timing
) -> Draft:
    """``best``, or a faster program whose short layers run in one tile each."""
    plan = best.plan
    choices = planner.chooser.larger(plan.choices, plan.gone, SHORT)
    pairs = zip(plan.choices, choices, strict=True)
    changed = {before.first for before, after in pairs if before.grain != after.grain}
    units = (each.instruction.unit for each in best.builder.operations if each.layer in changed)
    saved = sum(unit in (Unit.GEMM, Unit.VECTOR) for unit in units) * (TILES - 1) // TILES
    if saved * INSTRUCTION_BYTES // planner.config.bus_bytes < SAVED * best.cycles:
        return best
    try:
        plan = planner.built(choices, plan.gone)
    except NoRoomError:
        return best
    return min(best, make_draft(planner, plan, activations, Overlap.LAYERS, timing), key=_cycles)


def _with_room(
    best: Draft, planner: Planner, activations: Mapping[str, Activation], timing: Timing
) -> Draft:
    """``best``, or a faster program that uses the room that is left in ACT."""
    placed = best if _is_long(best) else _placed(best, planner, activations, timing)
    best = _deepened(placed, planner, activations, timing)
    return _block_by_block(best, planner, activations, timing)


def _placed(
    best: Draft, planner: Planner, activations: Mapping[str, Activation], timing: Timing
) -> Draft:
    """``best``, or a faster program whose activations are elsewhere in ACT."""
    start, tried = best.plan, [best.plan.places]
    for placing in PLACINGS[1:]:
        try:
            plan = planner.built(start.choices, start.gone, placing)
        except NoRoomError:
            continue
        if plan.places not in tried:
            tried.append(plan.places)
            other = make_draft(planner, plan, activations, Overlap.LAYERS, timing)
            best = min(best, other, key=_cycles)
    return best


def _block_by_block(
    best: Draft, planner: Planner, activations: Mapping[str, Activation], timing: Timing
) -> Draft:
    """``best``, or a faster program whose dense layer runs block by block."""
    plan = best.plan
    try:
        plan = planner.built(plan.choices, plan.gone, replace(plan.placing, eager=True))
    except NoRoomError:
        return best
    if plan.blockwise == best.plan.blockwise:
        return best
    return min(best, make_draft(planner, plan, activations, Overlap.LAYERS, timing), key=_cycles)


def _deepened(
    best: Draft, planner: Planner, activations: Mapping[str, Activation], timing: Timing
) -> Draft:
    """``best``, or a faster program in which all cascades have turned or deeper buffers, or those
    that gain.

    That of a long program is placed in another way at the same time.
    """
    start, plan = best.plan, best.plan
    placing = PLACINGS[1] if _is_long(best) else start.placing
    turned = planner.chooser.turned(start.choices, start.gone)
    for choices in (start.choices, turned):
        with suppress(NoRoomError):
            plan = planner.built(choices, start.gone, placing)
    plan = deepest(planner, plan)
    if plan.places == start.places:
        return best
    other = make_draft(planner, plan, activations, Overlap.LAYERS, timing)
    if other.cycles < best.cycles or _is_long(best):
        return min(best, other, key=_cycles)
    kept: list[Choice] = []
    for before in start.choices:
        layers = range(before.first, before.first + before.count)
        gains = _cycles_of(other, before) < _cycles_of(best, before)
        after = [each for each in plan.choices if each.first in layers]
        kept += after if gains else [before]
    try:
        plan = planner.built(kept, start.gone, start.placing)
    except NoRoomError:
        return best
    if plan.key in (start.key, other.plan.key):
        return best
    return min(best, make_draft(planner, plan, activations, Overlap.LAYERS, timing), key=_cycles)


def _with_loads_cut(
    best: Draft, planner: Planner, activations: Mapping[str, Activation], timing: Timing
) -> Draft:
    """``best``, or a faster program in which no LOAD of constants takes long."""
    loads = (
        end - start
        for each, (start, end) in zip(best.program, best.expected, strict=True)
        if isinstance(each, Load) and each.memory is Memory.WGT
    )
    near = best.cycles <= NEAR * planner.roof.cycles
    if near or max(loads, default=0) <= PIECE_CYCLES:
        return best
    overlap = Overlap.LAYERS
    other = make_draft(planner, best.plan, activations, overlap, timing, cut=True)
    return min(best, other, key=_cycles)


def _with_whole_results(
    best: Draft, planner: Planner, activations: Mapping[str, Activation], timing: Timing
) -> Draft:
    """``best``, or the same program with what is all on chip stored at once, if that is faster:
    where DRAM has other work, more instructions cost more than the wait for all tiles.
    """
    given = planner, best.plan, activations, Overlap.LAYERS, timing
    other = make_draft(*given, least=planner.config.act_depth)
    return min(best, other, key=_cycles)


def _cycles_of(draft: Draft, choice: Choice) -> int:
    """Cycles of the layers of a choice."""
    return sum(draft.shares[choice.first : choice.first + choice.count])


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
    if other.cycles >= best.cycles:
        return best
    # Of the last layer, the units would wait for the last of its weights.
    best, last = other, len(other.plan.choices) - 1
    for change in planner.chooser.changes(other.plan.choices, last, gone):
        try:
            plan = planner.built((*other.plan.choices[:last], *change.choices), gone)
        except NoRoomError:
            continue
        ending = make_draft(planner, plan, activations, Overlap.LAYERS, timing)
        best = min(best, ending, key=_cycles)
    return best


def _with_items_apart(
    best: Draft,
    planner: Planner,
    activations: Mapping[str, Activation],
    timing: Timing,
    effort: float,
) -> Draft:
    """``best``, or that plan with activations kept apart, each as fast as its last changes make
    it: where few instructions wait for a place, more of them may be one.
    """
    found, plan = without_waits(best, planner.config, timing, effort), best.plan
    try:
        apart = planner.built(plan.choices, plan.gone, replace(plan.placing, apart=True))
    except NoRoomError:
        return found
    other = make_draft(planner, apart, activations, Overlap.LAYERS, timing)
    return min(found, without_waits(other, planner.config, timing, effort), key=_cycles)


def _refined(
    best: Draft,
    planner: Planner,
    activations: Mapping[str, Activation],
    timing: Timing,
    effort: float,
    rounds: int,
) -> tuple[Draft, Draft]:
    """``best``, or a faster program, in which some layers run in another way; of ``rounds``; and
    the one that is fastest in the order by urgency, which deeper buffers may make the faster one.
    """
    count = max(1, len(best.program))
    most = min(rounds, int(effort * ROUND_OPERATIONS) // count, count // OPERATIONS_A_ROUND)
    if _is_near(best, planner):
        return best, best
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

    start, by_rows = _trial(best), True
    grained = planner.chooser.grained(best.plan.choices, gone)
    for grain, choices in zip(GRAINS, grained, strict=True):
        if grain.by_rows and not by_rows:
            most -= 1
        if len(drafts) > most:
            break
        if grain.by_rows and not by_rows:
            continue
        other = attempt(choices)
        if other and grain.by_rows and _is_long(best):
            by_rows = other.cycles <= WORSE * start.cycles
        if other and other.cycles < start.cycles:
            start = other
    found = refine(start, attempt, ways, most - len(drafts))
    fastest = drafts[gone, tuple(choice.key for choice in found.choices), PLAIN]
    return fastest, min(drafts.values(), key=_by_urgency)


def _is_long(draft: Draft) -> bool:
    return len(draft.program) > FEW_OPERATIONS


def _is_near(draft: Draft, planner: Planner) -> bool:
    """True if a long program has little to gain."""
    return _is_long(draft) and draft.cycles <= NEAR * planner.roof.cycles


def _trial(draft: Draft) -> Trial:
    return Trial(draft.plan.choices, draft.cycles, draft.shares)


def _cycles(draft: Draft) -> int:
    return draft.cycles


def _by_urgency(draft: Draft) -> int:
    return draft.by_urgency
