"""Queues, tokens and banks: when each unit accepts its next instruction, in machine code.

Source: docs/timing.md, "Accepting an instruction".
"""

from .bursts import NEVER
from .native.language import Int64s, Record
from .plans import UNITS, Plans

__all__ = [
    "FLIGHTS",
    "RING",
    "Issue",
    "accept",
    "dispatch",
    "end",
    "head",
    "next_accept",
    "oldest",
    "room",
    "stop_waiting",
]

ALL = (1 << UNITS) - 1
RING = 256
"""Tokens, or credits, of one pair of units, at most."""
FLIGHTS = 64
"""Instructions that one unit has in flight, at most: an issue a cycle, as long as the latency."""


class Issue(Record):
    """The instructions dispatched so far, and what keeps each unit's next one from starting.

    order: the units, the one first that comes first if several accept in one cycle.
    accept_stage: cycles from when an instruction may start to when it does.

    Per instruction: dispatched, accepted, ended (cycles; -1 for not known), waited_token,
    waited_port. Per unit: latency: cycles from the last issue to the end, of GEMM and VECTOR;
    queued, accepts: instructions dispatched and accepted; free_at: the first cycle in which it can
    accept, NEVER while that is not known; idle_at: the same of an instruction that no other may be
    in flight with; next_at, could, ready: cycle of its next accept, and from
    when it waits, for a token and then for a bank. stale: mask of the units for which these three
    are to be worked out again. now: cycle of the last accept.

    tokens, credits: for each pair ``poster * UNITS + taker``, the cycles from which its tokens, or
    its credits, can be used: a ring of ``RING``, of which number ``*_first`` up to ``*_last`` are
    there. flights: what each unit has in flight: cycle of the end, banks held, banks a VECTOR
    writes.
    """

    plans: Plans
    order: Int64s
    token_max: int
    accept_stage: int
    latency: Int64s
    count: int
    known_ends: int
    dispatched: Int64s
    accepted: Int64s
    ended: Int64s
    waited_token: Int64s
    waited_port: Int64s
    queued: Int64s
    accepts: Int64s
    free_at: Int64s
    idle_at: Int64s
    next_at: Int64s
    could: Int64s
    ready: Int64s
    stale: int
    now: int
    tokens: Int64s
    tokens_first: Int64s
    tokens_last: Int64s
    credits: Int64s
    credits_first: Int64s
    credits_last: Int64s
    flights: Int64s
    flight_end: Int64s
    flight_held: Int64s
    flight_writes: Int64s


def head(s: Issue, unit: int) -> int:
    """Index of the instruction at the head of a queue, which must hold one."""
    return s.plans.order[s.plans.first[unit] + s.accepts[unit]]


def dispatch(s: Issue, unit: int, cycle: int) -> None:
    """The next instruction enters the queue of ``unit``."""
    if s.queued[unit] == s.accepts[unit]:
        s.stale |= 1 << unit
    s.dispatched[s.count] = cycle
    s.count += 1
    s.queued[unit] += 1


def next_accept(s: Issue) -> int:
    """The unit that accepts next, as far as known; of two in one cycle, by priority."""
    chosen = s.order[0]
    for place in range(UNITS):
        unit = s.order[place]
        if s.stale >> unit & 1:
            _work_out(s, unit)
        if s.next_at[unit] < s.next_at[chosen]:
            chosen = unit
    s.stale = 0
    return chosen


def _work_out(s: Issue, unit: int) -> None:
    """When the unit accepts the head of its queue."""
    s.next_at[unit] = s.could[unit] = s.ready[unit] = NEVER
    if s.accepts[unit] == s.queued[unit]:
        return
    index, plans = head(s, unit), s.plans
    free = s.idle_at[unit] if plans.alone[index] else s.free_at[unit]
    if free == NEVER:
        return
    could = max(free, s.dispatched[index] + 1)
    s.could[unit] = could
    ready = could
    for other in range(UNITS):
        if plans.waits[index] >> other & 1:
            pair = other * UNITS + unit
            if s.tokens_first[pair] == s.tokens_last[pair]:
                return
            ready = max(ready, s.tokens[pair * RING + (s.tokens_first[pair] & (RING - 1))])
        if plans.posts[index] >> other & 1:
            pair = unit * UNITS + other
            if s.credits_first[pair] == s.credits_last[pair]:
                return
            ready = max(ready, s.credits[pair * RING + (s.credits_first[pair] & (RING - 1))])
    s.ready[unit] = ready
    # No earlier than what is already done: the flights that ended before that are forgotten.
    cycle = max(ready, s.now - s.accept_stage)
    for other in range(UNITS):
        for place in range(other * FLIGHTS, other * FLIGHTS + s.flights[other]):
            if other != unit:
                common = s.flight_held[place] & plans.claim[index]
            else:
                common = s.flight_writes[place] & plans.reads[index]
            if common and s.flight_end[place] >= cycle:
                cycle = s.flight_end[place] + 1
    if cycle > s.now - s.accept_stage:
        # What is decided while another instruction starts does not count.
        cycle = max(cycle, s.now + (s.accept_stage > 0))
    s.next_at[unit] = min(cycle + s.accept_stage, NEVER)


def accept(s: Issue, unit: int, cycle: int) -> int:
    """The unit accepts the head of its queue; return the instruction's index."""
    index, plans = head(s, unit), s.plans
    s.accepts[unit] += 1
    s.stale = ALL
    s.now = cycle
    s.accepted[index] = cycle
    s.waited_token[index] = s.ready[unit] - s.could[unit]
    s.waited_port[index] = cycle - s.ready[unit]
    for other in range(UNITS):
        if plans.waits[index] >> other & 1:
            pair = other * UNITS + unit
            s.tokens_first[pair] += 1
            s.credits[pair * RING + (s.credits_last[pair] & (RING - 1))] = cycle + 1
            s.credits_last[pair] += 1
        if plans.posts[index] >> other & 1:
            s.credits_first[unit * UNITS + other] += 1
    issues = plans.issues[index]
    _forget(s, unit, cycle)
    if issues:
        s.free_at[unit] = cycle + issues
        ends = cycle + issues + s.latency[unit]
        _fly(s, unit, index, ends)
        _give(s, unit, index, ends)
    else:
        s.free_at[unit] = s.idle_at[unit] = NEVER
        _fly(s, unit, index, NEVER)
    return index


def _forget(s: Issue, unit: int, cycle: int) -> None:
    """Forget the flights of ``unit`` that ended before ``cycle``."""
    kept = first = unit * FLIGHTS
    for place in range(first, first + s.flights[unit]):
        if s.flight_end[place] >= cycle - s.accept_stage:
            s.flight_end[kept] = s.flight_end[place]
            s.flight_held[kept] = s.flight_held[place]
            s.flight_writes[kept] = s.flight_writes[place]
            kept += 1
    s.flights[unit] = kept - first


def _fly(s: Issue, unit: int, index: int, cycle: int) -> None:
    place = unit * FLIGHTS + s.flights[unit]
    s.flight_end[place] = cycle
    s.flight_held[place] = s.plans.claim[index]
    s.flight_writes[place] = s.plans.writes[index]
    s.flights[unit] += 1


def end(s: Issue, index: int, cycle: int, free: int) -> None:
    """The end of a LOAD or STORE, the last one accepted, is known; its unit is ``free`` from a
    cycle on.
    """
    unit = s.plans.units[index]
    s.flight_end[unit * FLIGHTS + s.flights[unit] - 1] = cycle
    s.free_at[unit] = free
    s.idle_at[unit] = cycle + 1
    s.stale = ALL
    _give(s, unit, index, cycle)


def _give(s: Issue, unit: int, index: int, cycle: int) -> None:
    s.ended[index] = cycle
    s.known_ends += 1
    for other in range(UNITS):
        if s.plans.posts[index] >> other & 1:
            pair = unit * UNITS + other
            s.tokens[pair * RING + (s.tokens_last[pair] & (RING - 1))] = cycle + 1
            s.tokens_last[pair] += 1


def room(s: Issue, unit: int, depth: int) -> int:
    """First cycle in which the unit's queue has room, as far as is known."""
    earlier = s.queued[unit] - depth
    if earlier < 0:
        return 0
    if earlier >= s.accepts[unit]:
        return NEVER
    return s.accepted[s.plans.order[s.plans.first[unit] + earlier]] + 1


def stop_waiting(s: Issue, cycle: int) -> None:
    """Nothing is accepted after ``cycle``: count what the heads of queues waited till then."""
    next_accept(s)
    for unit in range(UNITS):
        if s.accepts[unit] < s.queued[unit]:
            index, could = head(s, unit), s.could[unit]
            ready = min(max(s.ready[unit], could), cycle + 1)
            s.waited_token[index] = max(ready - could, 0)
            s.waited_port[index] = max(cycle + 1 - max(s.ready[unit], could), 0)


def oldest(s: Issue, cycle: int) -> int:
    """Index of the oldest instruction, in ``cycle``, of the first unit that has one.

    If none has, that of the next to be dispatched.
    """
    for unit in range(UNITS):
        for place in range(s.queued[unit]):
            index = s.plans.order[s.plans.first[unit] + place]
            if place >= s.accepts[unit] or s.accepted[index] >= cycle:
                if s.dispatched[index] < cycle:
                    return index
            elif s.ended[index] < 0 or s.ended[index] >= cycle:
                return index
    number = 0
    while number < s.count and s.dispatched[number] < cycle:
        number += 1
    return number
