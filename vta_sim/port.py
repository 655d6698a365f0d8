"""The memory port and the DRAM model, burst by burst, in machine code.

Source: docs/timing.md, "Reading DRAM" to "DRAM model".

A burst is taken into an address register, accepted by the memory, and then its beats follow a
formula.  The machine asks for everything up to a cycle; what it must know at once ends the asking
early.
"""

from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.priorities import READING, Source

from .bursts import NEVER
from .native.language import Int64s, Record
from .sdram import Sdram, sdram_burst

__all__ = ["FETCH", "LOAD", "STORE", "Port", "Transfer", "fill_slot", "run_port"]

FETCH, LOAD, STORE = int(Source.FETCH), int(Source.LOAD), int(Source.STORE)
"""Who asks for bursts."""
assert READING == (FETCH, LOAD), "_take_read asks them in this order"

EMPTY = 0

FETCH_BYTES = INSTRUCTION_BYTES


class Transfer(Record):
    """The LOAD or STORE at work.

    active: whether there is one. index: of the instruction. count, beats, addresses: its bursts,
    and the beats and first byte of each. offer: LOAD: cycle from which its next burst is offered.
    STORE: from which it can fill the next slot. outside: number of the first burst that leaves the
    window; NEVER for none. taken, accepted, filled: bursts taken into the address register,
    accepted by the memory, and (STORE) filled. starts: cycle of the first beat of each burst
    accepted. ready, takes: STORE: cycle from which each filled burst is offered, and in which it
    was taken. moved: beats of all bursts accepted, of earlier instructions too.
    """

    active: int
    index: int
    count: int
    beats: Int64s
    addresses: Int64s
    offer: int
    outside: int
    taken: int
    accepted: int
    filled: int
    starts: Int64s
    ready: Int64s
    takes: Int64s
    moved: int


class Port(Record):
    """The registers in front of AR and AW, and the DRAM's queue of commands.

    latency to response: the DRAM's timing. sdram: in whose place it is, if present. fetch_beats: of
    an instruction. fetch_address: of the first one. beats_per_word: of ACT.

    check, cut, read_stage: cycles of ``Stages.check``, ``cut`` and ``read``.

    fetch_offer: cycle from which FETCH offers its next burst, that of instruction ``fetch_index``.
    fetch_outside: first instruction that is outside the window. stopped: whether no more bursts
    are taken. last_answer: cycle of the latest last beat of a read, or response to a write,
    accepted so far.

    reading: who has a burst in the address register, valid from ``read_at``; EMPTY: it is free from
    then on. writing, write_at: the same of AW. ends: of the last ``queue_bursts`` commands
    accepted, the oldest at ``oldest``. last_accept, last_end, last_writes: of the last command;
    -1 before the first one.

    asked, fetched, loaded, stored: what the machine is told: FETCH's burst was taken in, the last
    beat or response comes in that cycle; NEVER for nothing. outside_read, outside_write: in that
    cycle a burst of ``outside_source`` (STORE for the latter) was to be taken that leaves the
    window.
    """

    latency: int
    interval: int
    queue_bursts: int
    turnaround: int
    response: int
    sdram: Sdram
    fetch_beats: int
    fetch_address: int
    beats_per_word: int
    load: Transfer
    store: Transfer
    fetch_index: int
    fetch_offer: int
    fetch_outside: int
    check: int
    cut: int
    read_stage: int
    stopped: int
    last_answer: int
    reading: int
    read_at: int
    writing: int
    write_at: int
    ends: Int64s
    oldest: int
    last_accept: int
    last_end: int
    last_writes: int
    asked: int
    fetched: int
    loaded: int
    stored: int
    outside_read: int
    outside_write: int
    outside_source: int


def run_port(p: Port, limit: int) -> bool:
    """Do all that happens up to cycle ``limit``.

    Returns True, perhaps with some of it left to do, when the machine is told something; nothing in
    a cycle earlier than what it is told is left.
    """
    p.asked = p.fetched = p.loaded = p.stored = p.outside_read = p.outside_write = NEVER
    while True:
        # First cycle in which the memory can accept another command.
        room = max(p.last_accept, p.ends[p.oldest]) + 1
        read, write = _next_read(p, room), _next_write(p, room)
        now = min(read, write)
        if now > limit or now == NEVER:
            return False
        told = False
        address_accepted = False
        if read == now:
            if p.reading:
                address_accepted = True
                told = _accept_read(p, now)
            else:
                told = _take_read(p, now)
        # Of AR and AW in one cycle, AR only.
        if write == now and not (address_accepted and p.writing):
            if p.writing:
                if _accept_write(p, now):
                    told = True
            elif _take_write(p, now):
                told = True
        if told:
            return True


def _next_read(p: Port, room: int) -> int:
    """Cycle in which a read is accepted or taken next."""
    if p.reading:
        return max(p.read_at, room)
    if p.stopped:
        return NEVER
    offer = p.fetch_offer
    if p.load.active and p.load.taken < p.load.count:
        offer = min(offer, p.load.offer)
    return max(p.read_at, offer)


def _next_write(p: Port, room: int) -> int:
    """Cycle in which a write is accepted or taken next."""
    if p.writing:
        return max(p.write_at, room)
    if p.stopped or not p.store.active or p.store.taken == p.store.filled:
        return NEVER
    return max(p.write_at, p.store.ready[p.store.taken])


def _take_read(p: Port, now: int) -> bool:
    load = p.load
    if p.fetch_offer <= now:
        if p.fetch_index >= p.fetch_outside:
            # Nothing else is taken in this cycle.
            p.fetch_offer = NEVER
            p.read_at = now + 1
            p.outside_read = now
            p.outside_source = FETCH
            return True
        p.reading = FETCH
        p.read_at = now + 1
        p.fetch_index += 1
        p.asked = now
        return True
    if load.taken == load.outside:
        load.offer = NEVER
        p.outside_read = now
        p.outside_source = LOAD
        return True
    p.reading = LOAD
    p.read_at = now + 1
    load.taken += 1
    load.offer = now + 1 + p.cut + p.check
    return False


def _take_write(p: Port, now: int) -> bool:
    store = p.store
    if store.taken == store.outside:
        store.ready[store.taken] = NEVER
        p.outside_write = now
        return True
    p.writing = 1
    p.write_at = now + 1
    store.takes[store.taken] = now
    store.taken += 1
    if store.taken < store.count:
        store.ready[store.taken] = max(store.ready[store.taken], now + 1 + p.check)
    return False


def _accept(p: Port, now: int, address: int, beats: int, writes: int) -> int:
    """The memory accepts a command; return the cycle of its last beat."""
    s = p.sdram
    if s.present:
        first = sdram_burst(s, now, address, beats * s.step, writes)
        start = first if writes else first + s.step - 1 + s.lag
        over = first + beats * s.step - 1
        end = start + (beats - 1) * p.interval
    else:
        start = now + p.latency
        if p.last_writes >= 0:
            turn = p.turnaround if writes != p.last_writes else 0
            start = max(start, p.last_end + 1 + turn)
        end = start + (beats - 1) * p.interval
        over = end
    p.ends[p.oldest] = over
    p.oldest = p.oldest + 1 if p.oldest + 1 < p.queue_bursts else 0
    p.last_accept = now
    p.last_end = end
    p.last_writes = writes
    return end


def _accept_read(p: Port, now: int) -> bool:
    source, load = p.reading, p.load
    p.reading = EMPTY
    p.read_at = now + 1
    if source == FETCH:
        address = p.fetch_address + (p.fetch_index - 1) * FETCH_BYTES
        end = _accept(p, now, address, p.fetch_beats, 0)
        p.last_answer = max(p.last_answer, end)
        p.fetched = end
        return True
    beats = load.beats[load.accepted]
    end = _accept(p, now, load.addresses[load.accepted], beats, 0)
    p.last_answer = max(p.last_answer, end)
    _moved(load, end - (beats - 1) * p.interval, beats)
    if load.accepted == load.count:
        p.loaded = end
        return True
    return False


def _accept_write(p: Port, now: int) -> bool:
    store = p.store
    p.writing = 0
    p.write_at = now + 1
    beats = store.beats[store.accepted]
    end = _accept(p, now, store.addresses[store.accepted], beats, 1)
    p.last_answer = max(p.last_answer, end + p.response)
    _moved(store, end - (beats - 1) * p.interval, beats)
    fill_slot(p, end + 1)
    if store.accepted == store.count:
        p.stored = end + p.response
        return True
    return False


def _moved(transfer: Transfer, start: int, beats: int) -> None:
    transfer.starts[transfer.accepted] = start
    transfer.accepted += 1
    transfer.moved += beats


def fill_slot(p: Port, slot_free: int) -> None:
    """STORE fills a slot, free from ``slot_free``, with its next burst, if it has one left."""
    store = p.store
    if store.filled == store.count:
        return
    words = store.beats[store.filled] // p.beats_per_word
    filled = max(store.offer, slot_free) + words
    ready = filled + 1 + p.read_stage + p.check
    if store.filled == store.taken and store.taken:
        # Behind the burst before, which may be taken already.
        ready = max(ready, store.takes[store.taken - 1] + 1 + p.check)
    store.ready[store.filled] = ready
    store.offer = filled + p.cut
    store.filled += 1
