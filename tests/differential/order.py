"""Tokens that order instructions, and a proof of that order that does not know how they came."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import dram_rows, scratchpad_reads, scratchpad_writes
from dovetail.isa.instructions import Instruction, Load, Store
from dovetail.isa.memories import Unit

__all__ = ["ends", "order_with_tokens", "unordered_pair", "with_surplus_posts"]

Places = set[int]
EAGER = 0.8
"""Share of waits that are served by the earliest instruction that can."""
NEEDLESS = 0.05
"""Chance that an instruction waits for another unit though nothing demands it."""


def _touched(instruction: Instruction, config: HardwareConfig) -> tuple[Places, Places]:
    """Everything read and written, as numbers that are unique over all memories and DRAM bytes."""
    sets: list[Places] = []
    for touches in (
        scratchpad_reads(instruction, config),
        scratchpad_writes(instruction, config),
    ):
        places: Places = set()
        for touch in touches:
            places |= {touch.memory.code << 40 | int(a) for a in np.unique(touch.addresses)}
        sets.append(places)
    if isinstance(instruction, Load | Store):
        bytes_touched = {
            1 << 50 | byte
            for start, size in dram_rows(instruction, config)
            for byte in range(start, start + size, config.bus_bytes)
        }
        sets[isinstance(instruction, Store)] |= bytes_touched
    return sets[0], sets[1]


def _conflict(earlier: tuple[Places, Places], later: tuple[Places, Places]) -> bool:
    return not (
        earlier[1].isdisjoint(later[0])
        and earlier[1].isdisjoint(later[1])
        and earlier[0].isdisjoint(later[1])
    )


def order_with_tokens(
    instructions: list[Instruction], config: HardwareConfig, rng: np.random.Generator
) -> list[Instruction]:
    """``instructions`` with tokens that order every conflicting pair of different units, and a few
    more.
    """
    touched = [_touched(instruction, config) for instruction in instructions]
    waits: list[set[Unit]] = [set() for _ in instructions]
    posts: list[set[Unit]] = [set() for _ in instructions]
    # known[i][u]: the last instruction of unit u that has certainly ended when i starts.
    known: list[dict[Unit, int]] = []
    last_of: dict[Unit, int] = {}
    last_post: dict[tuple[Unit, Unit], int] = {}
    for now, instruction in enumerate(instructions):
        unit = instruction.unit
        clock = dict(known[last_of[unit]]) if unit in last_of else {}
        for other in Unit:
            if other is unit or other not in last_of:
                continue
            needed = max(
                (
                    before
                    for before in range(now)
                    if instructions[before].unit is other
                    and _conflict(touched[before], touched[now])
                ),
                default=-1,
            )
            if rng.random() < NEEDLESS:
                needed = max(needed, last_of[other])
            if needed <= clock.get(other, -1):
                continue
            later = [
                index
                for index in range(needed, now)
                if instructions[index].unit is other and index > last_post.get((other, unit), -1)
            ]
            eager = rng.random() < EAGER
            chosen = later[0] if eager else later[int(rng.integers(len(later)))]
            posts[chosen].add(unit)
            waits[now].add(other)
            last_post[other, unit] = chosen
            for known_unit, index in known[chosen].items():
                clock[known_unit] = max(clock.get(known_unit, -1), index)
            clock[other] = max(clock.get(other, -1), chosen)
        known.append(clock)
        last_of[unit] = now
    return [
        replace(instruction, wait=frozenset(wait), post=frozenset(post))
        for instruction, wait, post in zip(instructions, waits, posts, strict=True)
    ]


def with_surplus_posts(
    instructions: list[Instruction], chance: float, rng: np.random.Generator
) -> list[Instruction]:
    """Further posts that nobody waits for, each after the last one of its pair that is waited for.

    They change no order, but fill the counters up to their limit.
    """
    results = list(instructions)
    for unit in Unit:
        for other in set(Unit) - {unit}:
            for index in range(len(results) - 1, -1, -1):
                instruction = results[index]
                if instruction.unit is not unit:
                    continue
                if other in instruction.post:
                    break
                if rng.random() < chance:
                    results[index] = replace(instruction, post=instruction.post | {other})
    return results


def unordered_pair(
    instructions: Sequence[Instruction], config: HardwareConfig
) -> tuple[int, int] | None:
    """Two instructions of different units that touch one place, one of them writing, and that no
    chain of tokens orders; None when there are none.

    Works on the tokens alone, by vector clocks: the n-th wait of a unit for another takes the n-th
    token that the other posted to it; a unit starts and ends its instructions in order.
    """
    posted: dict[tuple[Unit, Unit], list[int]] = defaultdict(list)
    taken: dict[tuple[Unit, Unit], int] = defaultdict(int)
    touched = [_touched(instruction, config) for instruction in instructions]
    # For each unit, the latest of its instructions that has ended: at the start, at the end.
    at_end: list[dict[Unit, int]] = []
    last_of: dict[Unit, int] = {}
    unit_start: dict[Unit, dict[Unit, int]] = {unit: dict.fromkeys(Unit, -1) for unit in Unit}
    for now, instruction in enumerate(instructions):
        unit = instruction.unit
        start = unit_start[unit]
        for other in instruction.wait:
            number = taken[other, unit]
            taken[other, unit] += 1
            if number >= len(posted[other, unit]):
                return now, now
            poster = at_end[posted[other, unit][number]]
            start = {each: max(start[each], poster[each]) for each in Unit}
        unit_start[unit] = start
        for before in range(now):
            other = instructions[before].unit
            ordered = other is unit or start[other] >= before
            if not ordered and _conflict(touched[before], touched[now]):
                return before, now
        earlier = at_end[last_of[unit]] if unit in last_of else start
        at_end.append({each: max(start[each], earlier[each]) for each in Unit} | {unit: now})
        last_of[unit] = now
        for other in instruction.post:
            posted[unit, other].append(now)
    return None


def ends(instructions: Sequence[Instruction], config: HardwareConfig) -> bool:
    """True if the program runs to its end: tokens, their limit, and the length of the queues."""
    queues: dict[Unit, list[Instruction]] = {unit: [] for unit in Unit}
    tokens: dict[tuple[Unit, Unit], int] = defaultdict(int)
    rest = list(instructions)
    while rest or any(queues.values()):
        moved = False
        while rest and len(queues[rest[0].unit]) < config.queue_depth:
            queues[rest[0].unit].append(rest.pop(0))
            moved = True
        for unit, queue in queues.items():
            if not queue:
                continue
            head = queue[0]
            there = all(tokens[other, unit] for other in head.wait)
            room = all(tokens[unit, other] < config.token_max for other in head.post)
            if there and room:
                queue.pop(0)
                for other in head.wait:
                    tokens[other, unit] -= 1
                for other in head.post:
                    tokens[unit, other] += 1
                moved = True
        if not moved:
            return False
    return True
