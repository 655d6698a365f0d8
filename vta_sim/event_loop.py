"""The time of a run: what happens to each instruction, in the cycles that docs/timing.md gives.

In machine code. Everything that happens is an action at the memory port, an instruction dispatched,
or one accepted. Each depends only on what happened in earlier cycles, so they are done in order of
their cycle; all else is a formula. No cycle depends on data.
"""

from enum import IntEnum

from dovetail.isa.memories import Unit
from dovetail.isa.priorities import Source
from dovetail.isa.registers import ErrorCode

from .bursts import NEVER, cut_bursts, first_outside
from .issue import (
    Issue,
    accept,
    dispatch,
    end,
    next_accept,
    oldest,
    room,
    stop_waiting,
)
from .native.language import Int64s, Record
from .plans import MOST_BURSTS
from .port import FETCH, STORE, Port, Transfer, fill_slot, run_port

__all__ = ["Machine", "Outcome", "run_machine"]

LOAD_UNIT, STORE_UNIT = int(Unit.LOAD), int(Unit.STORE)
DISPATCH_SOURCE, WATCHDOG_SOURCE = int(Source.DISPATCH), int(Source.WATCHDOG)
ILLEGAL = int(ErrorCode.ILLEGAL_INSTRUCTION)
WINDOW = int(ErrorCode.WINDOW)
WATCHDOG = int(ErrorCode.WATCHDOG)


class Outcome(IntEnum):
    """How a run came to its end."""

    FINISHED = 0
    STOPPED = 1
    """By an error."""
    DEADLOCK = 2
    """Nothing can happen any more, and no watchdog is set."""
    TOO_LONG = 3
    """The instruction ``Machine.refused`` has more bursts than the simulator takes."""


class Machine(Record):
    """One run.

    count: instructions of the program. known: of them, those that can be fetched. fetch_ahead to
    store_slots: of the configuration. dispatch_stage, setup, receive, write_stage: cycles of
    ``Stages.dispatch``, ``setup``, ``receive`` and ``write``. base, limit: first and last byte of
    the window. watchdog: cycles, or 0.

    arrived: cycle of the last beat of the LOADs whose ends are known; -1 before.
    fetched_at: cycle of the last beat of each instruction fetched, ``fetched`` of them.
    dispatch_at: when the next instruction is dispatched. stopped_at, source, code, error_index: of
    the first error. fires_at: when the watchdog does, if no end comes before. later_ends, later:
    known ends that come after that. refused: see ``Outcome.TOO_LONG``. last: the run's last cycle.
    """

    issue: Issue
    port: Port
    count: int
    fetch_ahead: int
    queue_depth: int
    burst_bytes: int
    bus_bytes: int
    store_slots: int
    dispatch_stage: int
    setup: int
    receive: int
    write_stage: int
    base: int
    limit: int
    watchdog: int
    arrived: int
    fetched: int
    fetched_at: Int64s
    dispatch_at: int
    stopped_at: int
    source: int
    code: int
    error_index: int
    fires_at: int
    later: int
    later_ends: Int64s
    refused: int
    last: int


def run_machine(m: Machine) -> int:
    """Run to the end; return the ``Outcome``."""
    s, p = m.issue, m.port
    m.dispatch_at = m.stopped_at = NEVER
    m.fires_at = m.watchdog if m.watchdog else NEVER
    m.refused = -1
    p.fetch_offer = _fetch_offer(m, 0)
    while True:
        unit = next_accept(s)
        accept_at = s.next_at[unit]
        now = min(accept_at, m.dispatch_at)
        if run_port(p, min(now, m.fires_at, m.stopped_at)):
            _listen(m)
            continue
        if now > m.stopped_at:
            return _drain(m)
        if now > m.fires_at:
            # All up to then is done.
            if s.known_ends == m.count and m.later == 0:
                m.fires_at = NEVER
            else:
                _stop(m, m.fires_at, WATCHDOG_SOURCE, WATCHDOG, oldest(s, m.fires_at))
            continue
        if now == NEVER:
            break
        if m.dispatch_at == now:
            _dispatch(m, now)
        if accept_at == now:
            _accept(m, unit, now)
            if m.refused >= 0:
                return Outcome.TOO_LONG
    if s.known_ends != m.count:
        return Outcome.DEADLOCK
    m.last = 0
    for index in range(s.count):
        m.last = max(m.last, s.ended[index] + 1)
    return Outcome.FINISHED


def _listen(m: Machine) -> None:
    """Act on what the port has told."""
    p = m.port
    if p.asked != NEVER:
        p.fetch_offer = _fetch_offer(m, p.asked + 1)
    if p.outside_read != NEVER:
        index = p.load.index if p.outside_source != FETCH else p.fetch_index
        _stop(m, p.outside_read, p.outside_source, WINDOW, index)
    if p.fetched != NEVER:
        m.fetched_at[m.fetched] = p.fetched
        m.fetched += 1
        if m.fetched - 1 == m.issue.count:
            _prepare(m)
    if p.loaded != NEVER:
        _loaded(m, p.loaded + m.receive)
    if p.outside_write != NEVER:
        _stop(m, p.outside_write, STORE, WINDOW, p.store.index)
    if p.stored != NEVER:
        p.store.active = 0
        _end(m, p.store.index, p.stored, p.stored + 1)


# FETCH and dispatch ---------------------------------------------------------------------------


def _fetch_offer(m: Machine, cycle: int) -> int:
    """From when the next instruction's burst is offered, if it can be from ``cycle`` on."""
    index = m.port.fetch_index
    if index >= m.count:
        return NEVER
    before = index - m.fetch_ahead
    if before >= m.issue.count:
        return NEVER
    if before >= 0:
        cycle = max(cycle, m.issue.dispatched[before] + 1)
    return cycle + m.port.check


def _prepare(m: Machine) -> None:
    """Work out when the next instruction is dispatched, if it has been fetched."""
    index = m.issue.count
    if index >= m.fetched:
        m.dispatch_at = NEVER
        return
    cycle = m.fetched_at[index] + 1 + m.receive + m.dispatch_stage
    if index:
        cycle = max(cycle, m.issue.dispatched[index - 1] + 1 + m.dispatch_stage)
    unit = m.issue.plans.units[index]
    if unit >= 0:
        cycle = max(cycle, room(m.issue, unit, m.queue_depth))
    m.dispatch_at = cycle


def _dispatch(m: Machine, cycle: int) -> None:
    index = m.issue.count
    unit = m.issue.plans.units[index]
    if unit < 0:
        _stop(m, cycle, DISPATCH_SOURCE, ILLEGAL, index)
        m.dispatch_at = NEVER
        return
    dispatch(m.issue, unit, cycle)
    _prepare(m)
    if m.port.fetch_offer == NEVER:
        m.port.fetch_offer = _fetch_offer(m, cycle + 1)


# Accepting and ending -------------------------------------------------------------------------


def _accept(m: Machine, unit: int, cycle: int) -> None:
    index = accept(m.issue, unit, cycle)
    if m.dispatch_at == NEVER:
        _prepare(m)
    if unit == LOAD_UNIT:
        _begin(m, m.port.load, index, cycle)
        m.port.load.offer += m.port.check
        if m.port.load.count == 0:
            _loaded(m, cycle + m.setup)
    elif unit == STORE_UNIT:
        _begin(m, m.port.store, index, cycle)
        for _slot in range(m.store_slots):
            fill_slot(m.port, 0)
    else:
        _note_end(m, m.issue.ended[index])


def _begin(m: Machine, transfer: Transfer, index: int, cycle: int) -> None:
    """A LOAD or STORE accepted in ``cycle`` begins."""
    plans = m.issue.plans
    if plans.bursts[index] > MOST_BURSTS:
        m.refused = index
        return
    transfer.active = 1
    transfer.index = index
    transfer.count = cut_bursts(
        plans, index, m.burst_bytes, m.bus_bytes, transfer.beats, transfer.addresses
    )
    transfer.outside = first_outside(plans, index, m.bus_bytes, transfer.beats, m.base, m.limit)
    transfer.offer = cycle + 1 + m.setup + m.port.cut
    transfer.taken = transfer.accepted = transfer.filled = 0


def _loaded(m: Machine, cycle: int) -> None:
    """The last beat of the LOAD at work comes in ``cycle``."""
    load, plans = m.port.load, m.issue.plans
    load.active = 0
    last, visited = cycle + 1, -1
    if plans.cells[load.index]:
        visited = _last_visit(m, load)
        last = max(last, visited)
    last += m.write_stage
    free = last + 1
    if load.count:
        if not plans.alone[load.index]:
            # Its bursts are accepted, its cells visited, the data of the one before is there.
            free = max(m.port.last_accept, visited, m.arrived) + 1
        m.arrived = cycle
    _end(m, load.index, last, free)


def _last_visit(m: Machine, load: Transfer) -> int:
    """Cycle in which the last cell of a padded block is visited.

    Cell number n (from 0) is visited in cycle number n of those without a data write, after the
    last write of the instruction before.
    """
    plans, index = m.issue.plans, load.index
    cells, step = plans.cells[index], plans.step[index]
    # Last byte of a row's first write, and of the next write; bytes of the row before the burst.
    write_end = plans.before[index] + plans.write_bytes[index] - 1
    end, done = write_end, 0
    first = max(m.issue.accepted[index] + 1 + m.setup, m.arrived + 2 + m.write_stage)
    writes = 0
    for burst in range(load.accepted):
        size = load.beats[burst] * m.bus_bytes
        while end < done + size:
            beat = (end - done) // m.bus_bytes
            write = load.starts[burst] + beat * m.port.interval + 1 + m.receive
            if write - first - writes >= cells:
                return first + cells + writes - 1
            writes += 1
            end += step
        done += size
        if done == plans.row_bytes[index]:
            end, done = write_end, 0
    return first + cells + writes - 1


def _end(m: Machine, index: int, cycle: int, free: int) -> None:
    end(m.issue, index, cycle, free)
    _note_end(m, cycle)


# Errors and the end ---------------------------------------------------------------------------


def _note_end(m: Machine, cycle: int) -> None:
    """An instruction ends in ``cycle``: the watchdog fires later."""
    if not m.watchdog:
        return
    m.later_ends[m.later] = cycle
    m.later += 1
    place = 0
    while place < m.later:
        if m.later_ends[place] < m.fires_at:
            m.fires_at = max(m.fires_at, m.later_ends[place] + 1 + m.watchdog)
            m.later -= 1
            m.later_ends[place] = m.later_ends[m.later]
            place = 0
        else:
            place += 1


def _stop(m: Machine, cycle: int, source: int, code: int, index: int) -> None:
    if cycle < m.stopped_at or (cycle == m.stopped_at and source < m.source):
        m.stopped_at = cycle
        m.source = source
        m.code = code
        m.error_index = index


def _drain(m: Machine) -> int:
    """After a stop the memory answers the bursts taken."""
    stop_waiting(m.issue, m.stopped_at)
    m.port.stopped = 1
    while run_port(m.port, NEVER - 1):
        _listen(m)
    m.last = max(m.stopped_at, m.port.last_answer) + 1
    return Outcome.STOPPED
