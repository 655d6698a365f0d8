"""The fastest of the programs that some plans make."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter

from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.frozen import frozen, replace
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory, Unit

from ...options import Overlap
from .choice import Change, Choice
from .constant_loads import PIECE_CYCLES
from .cross import crossed
from .deepen import deepest
from .draft import Draft, cycles_of, make_draft
from .grains import GRAINS, ROWS, TILES
from .last_changes import FEW_INSTRUCTIONS, without_waits
from .layers.activation import Activation
from .place import NoRoomError
from .placing import PLACINGS, PLAIN, Placing
from .plan import Plan, left_out
from .planner import Planner
from .refine import Trial, refine
from .timing import Timing

__all__ = ["fastest"]

BUSY = 0.5
"""Plans that move less are tried where DRAM works for this part of the time, or more."""

PRICE = 0.25
"""Price of a cycle of DRAM in those plans; and where there are too many operations for those, but
DRAM sets the roof, in the one that counts waits."""

FEW_OPERATIONS, MANY_OPERATIONS, FEW_LAYERS = 2500, 9000, 80
"""Operations above which no plans that move less are made, and above which only one plan is: to
order one takes long.  Of few layers plans are found soon, so there may be twice as many.
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

SAVED, SURE = 0.01, 0.02
"""Part of the cycles that reading the instructions takes that this saves, at least, to be tried;
and, by estimate, for a long program of four tiles each not to be made at all.
"""

MORE = 0.05
"""Part of the cycles that reading more instructions takes, at most, for half as many rows a tile to
be tried at first.
"""

WORSE = 1.08
"""Times the cycles of the best long program; where tiles by rows take more, or those by channels,
no finer ones are tried; nor, in networks with normalised rows, is a program varied that keeps
another activation on chip.
"""

MOST_CROSSED, CROSSED, PART = 3, 0.005, 0.002
"""Programs that parts of a long one are taken from; and the part of its cycles that this promises
to save, at least, by all parts and by each: others only disturb what lies where in ACT.
"""

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
    if overlap is not Overlap.LAYERS:
        return make_draft(planner, planner.best(), activations, overlap, timing)
    return _Search(planner, activations, timing).fastest(effort)


@frozen
class _Search:
    """The programs of a planner.  Methods that are given ``best`` return it, or a faster one."""

    planner: Planner
    activations: Mapping[str, Activation]
    timing: Timing

    def fastest(self, effort: float) -> Draft:
        """As of ``fastest``."""
        planner = self.planner
        made, seen = self._of_first_plans()
        best = min(made, key=cycles_of)
        count = len(best.builder.operations)
        distance = best.cycles / max(1, planner.roof.cycles)
        given, effort = effort, min(effort * min(distance**FAR, MOST_MORE), max(effort, 1.0))
        found, rival = self._refined(best, effort, MOST_ROUNDS)
        if count <= effort * FEW_OPERATIONS:
            plans = islice(planner.near(best.plan), MOST_NEAR)
            near = [self._draft(plan) for plan in plans if plan.key not in seen]
            if near:
                other = self._with_short_layers(min(near, key=cycles_of))
                other = self._by_pixels(other)
                if other.cycles <= WORSE * found.cycles or not self._has_rows:
                    rival, _ = self._refined(other, effort, MOST_ROUNDS // 2)
        if _is_long(found) and not self._is_near(found):
            rival = self._crossed(found, [*made, rival])
        if count <= effort * ROUND_OPERATIONS and not self._is_near(found):
            starts = {each.plan.key: each for each in (found, rival)}.values()
            found = min((self._with_room(one) for one in starts), key=cycles_of)
        else:
            found = min(found, rival, key=cycles_of)
        if not self._is_near(found):
            found = self._crossed(found, [*made, rival])
        if count <= FEW_OPERATIONS:
            # Where DRAM has other work, more instructions cost more than the wait for all tiles.
            found = self._placed_as(found, whole=True)
        found = self._with_loads_cut(found)
        if found.is_load_bound and count <= FEW_OPERATIONS:
            found = self._in_fewer(found)
            if given >= 1 and len(found.plain) <= FEW_INSTRUCTIONS:
                return self._with_items_apart(found, given)
        return without_waits(found, planner.config, self.timing, given)

    @property
    def _has_rows(self) -> bool:
        """True if layers normalise rows, as those of tokens do."""
        return any(layer.kernel.by_rows for layer in self.planner.layers)

    def _draft(self, plan: Plan) -> Draft:
        return make_draft(self.planner, plan, self.activations, Overlap.LAYERS, self.timing)

    def _or_built(self, best: Draft, choices: Sequence[Choice], placing: Placing = PLAIN) -> Draft:
        """``best``, or the faster program of its activations on chip, with other choices."""
        try:
            plan = self.planner.built(choices, best.plan.gone, placing)
        except NoRoomError:
            return best
        return best if plan.key == best.plan.key else min(best, self._draft(plan), key=cycles_of)

    def _placed_as(self, best: Draft, **placing: bool) -> Draft:
        """``best``, or the same plan with another use of DRAM, if that is faster."""
        plan = replace(best.plan, placing=replace(best.plan.placing, **placing))
        return min(best, self._draft(plan), key=cycles_of)

    def _of_first_plans(self) -> tuple[list[Draft], set[tuple[object, ...]]]:
        """The programs of the first plans, and the keys of those."""
        planner = self.planner
        first = planner.best()
        best, seen = self._drafted(first), {first.key}
        made = [best]

        def better(plan: Plan) -> Draft:
            plans = [plan]
            if not self._is_near(best):
                with suppress(NoRoomError):
                    plans.append(
                        planner.built(planner.chooser.by_channels(plan.choices), plan.gone)
                    )
            for each in plans:
                if each.key not in seen:
                    seen.add(each.key)
                    made.append(self._drafted(each))
            return min(made, key=cycles_of)

        count = len(best.builder.operations) + left_out(first, best.plan)
        if count <= MANY_OPERATIONS * (1 + (len(planner.layers) <= FEW_LAYERS)):
            roof, is_long = planner.roof, count > FEW_OPERATIONS
            price = PRICE if is_long and roof.dram >= max(roof.gemm, roof.vector) else 0.0
            for plan in (first, planner.best(price, edges=True)):
                best = better(plan)
        best = self._by_pixels(best)
        made.append(best)
        if best.plan.dram > BUSY * best.plan.cycles and count <= FEW_OPERATIONS:
            for plan in (planner.best(PRICE), planner.best(PRICE, edges=True)):
                best = better(plan)
        return made, seen

    def _crossed(self, best: Draft, others: Iterable[Draft]) -> Draft:
        """With the parts of others that are faster in those; the most promising other first."""
        left = list({id(each): each for each in others if each is not best}.values())
        share = best.cycles if _is_long(best) else 0
        for _ in left[: MOST_CROSSED if share else None]:
            promised = ((*crossed(self.planner, best, each, PART * share), each) for each in left)
            choices, gone, saved, other = max(promised, key=itemgetter(2))
            if saved <= CROSSED * share:
                break
            left = [each for each in left if each is not other]
            with suppress(NoRoomError):
                plan = self.planner.built(choices, gone, best.plan.placing)
                if plan.key not in (best.plan.key, other.plan.key):
                    best = min(best, self._draft(plan), key=cycles_of)
        return best

    def _by_pixels(self, best: Draft) -> Draft:
        """With layers of tokens in tiles of some tokens: GEMM sums up the first while VECTOR
        normalises the next.  Those that WGT has room for, then all.
        """
        if not self._has_rows:
            return best
        best = self._or_built(best, self.planner.chooser.by_pixels(best.plan.choices))
        grained = self.planner.chooser.grained(best.plan.choices, best.plan.gone)
        by_rows = dict(zip(GRAINS, grained, strict=True))[ROWS]
        with suppress(NoRoomError):
            plan = self.planner.built(by_rows, best.plan.gone)
            if self._fetched(left_out(plan, best.plan)) <= MORE * best.cycles:
                return self._or_built(best, by_rows)
        return best

    def _drafted(self, plan: Plan) -> Draft:
        """The program of a plan, or of that with short layers in one tile each, if it is faster."""
        choices = self.planner.chooser.larger(plan.choices, plan.gone, SHORT)
        with suppress(NoRoomError):
            short = self.planner.built(choices, plan.gone, plan.placing)
            saved = left_out(plan, short)
            if saved > FEW_OPERATIONS and self._fetched(saved) >= SURE * plan.cycles:
                return self._draft(short)
        return self._with_short_layers(self._draft(plan))

    def _with_short_layers(self, best: Draft) -> Draft:
        """With short layers in one tile each."""
        plan = best.plan
        choices = self.planner.chooser.larger(plan.choices, plan.gone, SHORT)
        pairs = zip(plan.choices, choices, strict=True)
        changed = {before.first for before, after in pairs if before.grain != after.grain}
        operations = (each for each in best.builder.operations if each.layer in changed)
        units = (each.instruction.unit for each in operations)
        saved = sum(unit in (Unit.GEMM, Unit.VECTOR) for unit in units) * (TILES - 1) // TILES
        few = self._fetched(saved) < SAVED * best.cycles
        return best if few else self._or_built(best, choices)

    def _fetched(self, count: int) -> int:
        """Cycles in which so many instructions are read."""
        return count * INSTRUCTION_BYTES // self.planner.config.bus_bytes

    def _with_room(self, best: Draft) -> Draft:
        """With the room used that is left in ACT."""
        placed = best if _is_long(best) else self._placed(best)
        best = self._deepened(placed)
        plan = best.plan
        eager = replace(plan.placing, eager=True)
        with suppress(NoRoomError):
            other = self.planner.built(plan.choices, plan.gone, eager)
            if other.blockwise != plan.blockwise:
                best = min(best, self._draft(other), key=cycles_of)
        return best

    def _placed(self, best: Draft) -> Draft:
        """With activations elsewhere in ACT."""
        start, tried = best.plan, [best.plan.places]
        for placing in PLACINGS[1:]:
            try:
                plan = self.planner.built(start.choices, start.gone, placing)
            except NoRoomError:
                continue
            if plan.places not in tried:
                tried.append(plan.places)
                best = min(best, self._draft(plan), key=cycles_of)
        return best

    def _deepened(self, best: Draft) -> Draft:
        """With turned or deeper buffers, of all cascades or of those that gain.

        Those of a long program are placed in another way at the same time.
        """
        start, plan, planner = best.plan, best.plan, self.planner
        placing = PLACINGS[1] if _is_long(best) else start.placing
        turned = planner.chooser.turned(start.choices, start.gone)
        for choices in (start.choices, turned):
            with suppress(NoRoomError):
                plan = planner.built(choices, start.gone, placing)
        plan = deepest(planner, plan)
        if plan.places == start.places:
            return best
        other = self._draft(plan)
        if other.cycles < best.cycles and not _is_long(best):
            return other
        return self._crossed(min(best, other, key=cycles_of), [best, other])

    def _with_loads_cut(self, best: Draft) -> Draft:
        """With no LOAD of constants that takes long."""
        loads = (
            end - start
            for each, (start, end) in zip(best.program, best.expected, strict=True)
            if isinstance(each, Load) and each.memory is Memory.WGT
        )
        near = best.cycles <= NEAR * self.planner.roof.cycles
        if near or max(loads, default=0) <= PIECE_CYCLES:
            return best
        return self._placed_as(best, cut=True)

    def _in_fewer(self, best: Draft) -> Draft:
        """With fewer instructions, which DRAM has to bring as well."""
        plan, chooser = best.plan, self.planner.chooser
        other = self._or_built(best, chooser.larger(plan.choices, plan.gone))
        if other is best:
            return best
        # Of the last layer, the units would wait for the last of its weights.
        best, choices = other, other.plan.choices
        for change in chooser.changes(choices, len(choices) - 1, plan.gone):
            best = self._or_built(best, (*choices[:-1], *change.choices))
        return best

    def _with_items_apart(self, best: Draft, effort: float) -> Draft:
        """With that plan, or with its activations kept apart, each as fast as its last changes make
        it: where few instructions wait for a place, more of them may be one.
        """
        config, timing, plan = self.planner.config, self.timing, best.plan
        found = without_waits(best, config, timing, effort)
        placing = replace(plan.placing, apart=True)
        try:
            apart = self.planner.built(plan.choices, plan.gone, placing)
        except NoRoomError:
            return found
        other = without_waits(self._draft(apart), config, timing, effort)
        return min(found, other, key=cycles_of)

    def _refined(self, best: Draft, effort: float, rounds: int) -> tuple[Draft, Draft]:
        """With some layers that run in another way, of ``rounds``; and the one that is fastest in
        the order by urgency, which deeper buffers may make the faster one.
        """
        planner, gone = self.planner, best.plan.gone
        count = max(1, len(best.program))
        most = min(rounds, int(effort * ROUND_OPERATIONS) // count, count // OPERATIONS_A_ROUND)
        if self._is_near(best):
            return best, best
        drafts = {best.plan.key: best}

        def attempt(choices: Sequence[Choice]) -> Trial | None:
            try:
                plan = planner.built(choices, gone)
            except NoRoomError:
                return None
            if plan.key not in drafts:
                drafts[plan.key] = self._draft(plan)
            return _trial(drafts[plan.key])

        def ways(choices: Sequence[Choice], number: int) -> Sequence[Change]:
            return planner.chooser.changes(choices, number, gone)

        start, worse = _trial(best), set[bool]()
        grained = planner.chooser.grained(best.plan.choices, gone)
        for grain, choices in zip(GRAINS, grained, strict=True):
            most -= grain.by_rows in worse
            if len(drafts) > most:
                break
            if grain.by_rows in worse:
                continue
            other = attempt(choices)
            if other and _is_long(best) and other.cycles > WORSE * start.cycles:
                worse.add(grain.by_rows)
            if other and other.cycles < start.cycles:
                start = other
        found = refine(start, attempt, ways, most - len(drafts))
        fastest = drafts[gone, tuple(choice.key for choice in found.choices), PLAIN]
        return fastest, min(drafts.values(), key=_by_urgency)

    def _is_near(self, draft: Draft) -> bool:
        """True if a long program has little to gain."""
        return _is_long(draft) and draft.cycles <= NEAR * self.planner.roof.cycles


def _is_long(draft: Draft) -> bool:
    return len(draft.program) > FEW_OPERATIONS


def _trial(draft: Draft) -> Trial:
    return Trial(draft.plan.choices, draft.cycles, draft.shares)


def _by_urgency(draft: Draft) -> int:
    return draft.by_urgency
