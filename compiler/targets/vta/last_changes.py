"""The last changes of a program: LOADs and STOREs at other times, LOADs joined, and several
instructions as one.  Each is kept only where it gains.
"""

from itertools import pairwise
from math import ceil

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Instruction, Load
from dovetail.isa.memories import Unit

from .cut_end import cut_ends
from .draft import Draft, cut, cycles_of, joined, kept, known_loads, moved
from .give_way import giving_way
from .join_loads import SOON, WGT_PARTS, join
from .merge import Merge, merges
from .overtake import exchanged, hastened, overtaken
from .postpone import postponed
from .record import Frame
from .timing import Timing

__all__ = ["FEW_INSTRUCTIONS", "without_waits"]

MOST_TURNS = 3
"""Times that LOADs are moved, and STOREs, at most."""

MOST_MERGED = 240
"""Pairs of instructions tried as one."""

MOST_OVERTAKEN = 120
"""Orders tried in which a LOAD comes before another that waits."""

MOST_EXCHANGED = 360
"""Orders tried in which two LOADs change places."""

FEW_INSTRUCTIONS = 400
"""A program has at most so many instructions if its LOADs change places one by one, since all of it
is timed for each.
"""

MOST_JOINED = 50_000
"""Instructions of all programs in which two LOADs are joined as a trial, where a program has more
than those few.
"""

LONG, SHORT = 200, 20
"""Cycles for which a unit waits for a STORE, to be worth a change: in any program, and where LOAD
sets the pace.
"""

LEADS = (1, 2, 4, 8, 16, 32)
"""Instructions that LOADs come earlier by, tried one after the other."""

BOTH = frozenset({Unit.GEMM, Unit.VECTOR})


def without_waits(
    draft: Draft, config: HardwareConfig, timing: Timing, effort: float = 1.0
) -> Draft:
    """``draft`` with LOADs and STOREs moved behind what they hold up, and with near LOADs joined,
    where that makes it faster.

    effort: how many changes are tried one by one, 1 or more for as many as usual.
    """
    share = min(1.0, effort)
    most_merged, most_overtaken = ceil(share * MOST_MERGED), ceil(share * MOST_OVERTAKEN)
    order = postponed(draft.program, draft.before, draft.expected)
    draft = min(draft, moved(draft, order, draft.before, config, timing), key=cycles_of)
    for _ in range(MOST_TURNS):
        order = postponed(draft.program, draft.before, draft.expected, BOTH)
        other = moved(draft, order, draft.before, config, timing)
        if other.cycles >= draft.cycles:
            break
        draft = other
    draft = _with_stores_behind(draft, config, timing, LONG)
    draft = _with_near_loads_joined(draft, config, timing)
    draft = _with_waits_used(draft, config, timing, most_overtaken)
    if not draft.is_load_bound:
        return draft
    draft = _in_fewer_instructions(draft, config, timing, most_merged)
    draft = _with_pairs_of_loads_joined(draft, config, timing)
    draft = _with_waits_used(draft, config, timing, most_overtaken)
    orders = [hastened(draft.program, draft.before, lead) for lead in LEADS]
    others = [moved(draft, each, draft.before, config, timing) for each in orders]
    draft = _with_waits_used(min(draft, *others, key=cycles_of), config, timing, most_overtaken)
    draft = _with_stores_behind(draft, config, timing, SHORT)
    if len(draft.plain) > FEW_INSTRUCTIONS:
        return draft
    draft = _with_loads_exchanged(draft, config, timing, ceil(share * MOST_EXCHANGED))
    ends = [cut(draft, *each, config, timing) for each in cut_ends(draft.plain, config)]
    return min([draft, *ends], key=cycles_of)


def _with_loads_exchanged(draft: Draft, config: HardwareConfig, timing: Timing, most: int) -> Draft:
    """``draft`` with LOADs behind the next ones, or those before them, where it is faster so.

    most: orders tried.
    """
    for _ in range(MOST_TURNS):
        start = draft.cycles
        for number in range(sum(isinstance(each, Load) for each in draft.plain)):
            for order in exchanged(draft.program, draft.before, number):
                if not most:
                    return draft
                most -= 1
                other = moved(draft, order, draft.before, config, timing)
                if other.cycles < draft.cycles:
                    draft = other
                    break
        if draft.cycles == start:
            break
    return draft


def _with_stores_behind(draft: Draft, config: HardwareConfig, timing: Timing, least: int) -> Draft:
    """``draft`` with STOREs behind what waits for them ``least`` cycles, where it is faster so."""
    for _ in range(MOST_TURNS):
        order, before = giving_way(draft.program, draft.before, draft.expected, least)
        other = moved(draft, order, before, config, timing)
        if other.cycles >= draft.cycles:
            break
        draft = other
    return draft


def _with_pairs_of_loads_joined(draft: Draft, config: HardwareConfig, timing: Timing) -> Draft:
    """``draft`` with LOADs joined two by two, where it is faster so."""
    count = len(draft.plain)
    most = MOST_JOINED // count if count > FEW_INSTRUCTIONS else MOST_JOINED
    known = known_loads(draft, config)
    tried: set[tuple[Instruction, ...]] = set()
    while True:
        groups = join(draft.plain, draft.before, config, known, WGT_PARTS[-1])
        pairs = (pair for group in groups for pair in pairwise(group))
        for pair in pairs:
            both = tuple(draft.plain[place] for place in pair)
            if both in tried:
                continue
            if len(tried) == most:
                return draft
            tried.add(both)
            other = joined(draft, [list(pair)], config, timing)
            if other.cycles < draft.cycles:
                draft, known = other, known_loads(other, config)
                break
        else:
            return draft


def _in_fewer_instructions(
    draft: Draft, config: HardwareConfig, timing: Timing, most: int
) -> Draft:
    """``draft`` with pairs of instructions that differ only in addresses as one, where it is faster
    so.

    most: pairs tried.
    """
    tried: set[Instruction] = set()
    found = merges(draft.plain, draft.before)
    while len(tried) < most:
        merge = next((m for m in found if m[-1] not in tried and _may_merge(draft, m)), None)
        if merge is None:
            break
        tried.add(merge[-1])
        other = _merged(draft, merge, config, timing)
        if other.cycles < draft.cycles:
            draft, found = other, merges(other.plain, other.before)
    return draft


def _may_merge(draft: Draft, merge: Merge) -> bool:
    """True if a module can name the tensor of every word that two instructions write.

    It can if each writes as many equal shares, one for each tensor, or if none writes a tensor.
    """
    operations = draft.builder.operations
    one, other = (
        [isinstance(operations[index].holds, Frame) for index in draft.places[place]]
        for place in merge[:2]
    )
    return not any(one + other) or (all(one + other) and len(one) == len(other))


def _merged(draft: Draft, merge: Merge, config: HardwareConfig, timing: Timing) -> Draft:
    """``draft`` with one instruction in place of two."""
    first, second, place, both = merge
    plain = list(draft.plain)
    plain[place] = both
    gone = first + second - place
    dram = draft.dram.copy(draft.program_address)
    return kept(draft, plain, {gone: place}, dram, config, timing)


def _with_waits_used(draft: Draft, config: HardwareConfig, timing: Timing, most: int) -> Draft:
    """``draft`` with LOADs before others that wait, if LOAD sets the pace and it is faster so.

    most: orders tried.
    """
    left = most if draft.is_load_bound else 0
    while left:
        for places in overtaken(draft.program, draft.before, draft.expected):
            left -= 1
            other = moved(draft, places, draft.before, config, timing)
            if other.cycles < draft.cycles:
                draft = other
                break
            if not left:
                break
        else:
            break
    return draft


def _with_near_loads_joined(draft: Draft, config: HardwareConfig, timing: Timing) -> Draft:
    """``draft`` with those LOADs joined that start soon after each other, if that makes it faster.

    Unchanged where others are joined, or where LOAD does not set the pace.
    """
    if any(each[1:] for each in draft.places) or not draft.is_load_bound:
        return draft

    def near(first: int, other: int) -> bool:
        return draft.expected[other][0] - draft.expected[first][0] <= SOON

    known = known_loads(draft, config)
    groups = join(draft.plain, draft.before, config, known, near=near)
    return min(draft, joined(draft, groups, config, timing), key=cycles_of) if groups else draft
