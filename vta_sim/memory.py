"""The memory port and the DRAM model, burst by burst.

Source: docs/timing.md, "Reading DRAM" to "DRAM model".

A burst is taken into an address register, accepted by the memory, and then its beats follow a
formula.  The machine asks for everything up to a cycle; what it must know at once ends the asking
early.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming, HardwareConfig

__all__ = ["NEVER", "Listener", "MemoryPort", "Source", "Transfer"]

NEVER = 1 << 62
"""A cycle that is not known to come."""


class Source(IntEnum):
    """Who asks for bursts; of two errors in one cycle, the smaller one's counts."""

    FETCH = 1
    LOAD = 2
    STORE = 3


@dataclass(slots=True)
class Transfer:
    """A LOAD or STORE at work.

    index: of the instruction.  beats: of each burst, in order.
    offer: LOAD: cycle from which its next burst is offered.  STORE: from which it can fill the next
    slot. outside: number of the first burst that leaves the window; NEVER for none. taken: bursts
    taken into the address register. starts: cycle of the first beat of each burst that the memory
    has accepted. ready, takes: STORE: cycle from which each filled burst is offered, and in which
    it was taken.
    """

    index: int
    beats: tuple[int, ...]
    offer: int
    outside: int = NEVER
    taken: int = 0
    starts: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    takes: list[int] = field(default_factory=list)

    @property
    def beats_moved(self) -> int:
        """Beats of the bursts that the memory has accepted."""
        return sum(self.beats[: len(self.starts)])

    def beat_cycles(self, interval: int) -> NDArray[np.int64]:
        """Cycle of every beat of the bursts that the memory has accepted."""
        counts = np.array(self.beats[: len(self.starts)], np.int64)
        first = np.repeat(np.array(self.starts, np.int64), counts)
        within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        return first + within * interval


class Listener(Protocol):
    """What the port tells the machine."""

    def asked(self, cycle: int) -> int:
        """FETCH's burst was taken in ``cycle``; return from when the next one is offered."""
        ...

    def fetched(self, index: int, cycle: int) -> None:
        """The last beat of instruction ``index`` comes in ``cycle``."""
        ...

    def loaded(self, transfer: Transfer, cycle: int) -> None:
        """The last beat of a LOAD comes in ``cycle``."""
        ...

    def stored(self, transfer: Transfer, cycle: int) -> None:
        """The last response to a STORE comes in ``cycle``."""
        ...

    def outside(self, source: Source, index: int, cycle: int) -> None:
        """In ``cycle`` a burst was to be taken that leaves the window."""
        ...


class MemoryPort:
    """The registers in front of AR and AW, and the DRAM's queue of commands.

    load, store: the transfer at work, set by the machine.
    fetch_offer: cycle from which FETCH offers its next burst, that of instruction ``fetch_index``.
    fetch_outside: first instruction that lies outside the window.
    """

    __slots__ = (
        "_config",
        "_ends",
        "_last_accept",
        "_last_end",
        "_last_writes",
        "_listener",
        "_read_at",
        "_reading",
        "_timing",
        "_words_per_beat",
        "_write_at",
        "_writing",
        "fetch_index",
        "fetch_offer",
        "fetch_outside",
        "last_answer",
        "load",
        "stopped",
        "store",
    )

    def __init__(self, config: HardwareConfig, timing: DramTiming, listener: Listener) -> None:
        self._config, self._timing, self._listener = config, timing, listener
        self.load: Transfer | None = None
        self.store: Transfer | None = None
        self.fetch_index = 0
        self.fetch_offer = NEVER
        self.fetch_outside = NEVER
        self.stopped = False
        """Whether no more bursts are taken."""
        self.last_answer = -1
        """Cycle of the latest last beat of a read, or response to a write, accepted so far."""
        # Address registers: valid from ``_at``, or empty from then on.
        self._reading: Source | None = None
        self._read_at = 0
        self._writing = False
        self._write_at = 0
        # Commands accepted: the ends of the last ``queue_bursts``, and the last one's direction.
        self._ends = deque([-1] * timing.queue_bursts, timing.queue_bursts)
        self._last_accept = self._last_end = -1
        self._last_writes: bool | None = None

    def run(self, limit: int) -> bool:
        """Do all that happens up to cycle ``limit``.

        Returns True, perhaps with some of it left to do, when the listener was told something;
        nothing in a cycle earlier than what it was told is left.
        """
        while True:
            cycle = self._read_load(limit) if self._only_loads() else -1
            if cycle >= 0:
                assert self.load is not None
                self._listener.loaded(self.load, cycle)
                return True
            room = self._room()
            read, write = self._next_read(room), self._next_write(room)
            now = read if read <= write else write
            if now > limit or now == NEVER:
                return False
            told = accepted = False
            if read == now:
                accepted = self._reading is not None
                told = self._accept_read(now) if accepted else self._take_read(now)
            if write == now and not (accepted and self._writing):
                told |= self._accept_write(now) if self._writing else self._take_write(now)
            if told:
                return True

    def _room(self) -> int:
        """First cycle in which the memory can accept another command."""
        return max(self._last_accept, self._ends[0]) + 1

    def _next_read(self, room: int) -> int:
        """Cycle in which a read is accepted or taken next."""
        if self._reading is not None:
            return max(self._read_at, room)
        if self.stopped:
            return NEVER
        offer = self.fetch_offer
        load = self.load
        if load is not None and load.taken < len(load.beats) and load.offer < offer:
            offer = load.offer
        return max(self._read_at, offer)

    def _next_write(self, room: int) -> int:
        """Cycle in which a write is accepted or taken next."""
        if self._writing:
            return max(self._write_at, room)
        store = self.store
        if self.stopped or store is None or store.taken == len(store.ready):
            return NEVER
        return max(self._write_at, store.ready[store.taken])

    def _take_read(self, now: int) -> bool:
        load = self.load
        if self.fetch_offer <= now:
            if self.fetch_index >= self.fetch_outside:
                # Nothing else is taken in this cycle.
                self.fetch_offer, self._read_at = NEVER, now + 1
                self._listener.outside(Source.FETCH, self.fetch_index, now)
                return True
            self._reading, self._read_at = Source.FETCH, now + 1
            self.fetch_index += 1
            self.fetch_offer = self._listener.asked(now)
            return False
        assert load is not None
        if load.taken == load.outside:
            load.offer = NEVER
            self._listener.outside(Source.LOAD, load.index, now)
            return True
        self._reading, self._read_at = Source.LOAD, now + 1
        load.taken += 1
        load.offer = now + 1
        return False

    def _take_write(self, now: int) -> bool:
        store = self.store
        assert store is not None
        if store.taken == store.outside:
            store.ready[store.taken] = NEVER
            self._listener.outside(Source.STORE, store.index, now)
            return True
        self._writing, self._write_at = True, now + 1
        store.taken += 1
        store.takes.append(now)
        return False

    def _accept(self, now: int, beats: int, *, writes: bool) -> int:
        """The memory accepts a command; return the cycle of its last beat."""
        timing = self._timing
        start = now + timing.latency_cycles
        if self._last_writes is not None:
            turn = timing.turnaround_cycles if writes != self._last_writes else 0
            start = max(start, self._last_end + 1 + turn)
        end = start + (beats - 1) * timing.beat_interval_cycles
        self._ends.append(end)
        self._last_accept, self._last_end, self._last_writes = now, end, writes
        return end

    def _accept_read(self, now: int) -> bool:
        source, self._reading, self._read_at = self._reading, None, now + 1
        if source is Source.FETCH:
            end = self._accept(now, INSTRUCTION_BYTES // self._config.bus_bytes, writes=False)
            self.last_answer = max(self.last_answer, end)
            self._listener.fetched(self.fetch_index - 1, end)
            return True
        load = self.load
        assert load is not None
        beats = load.beats[len(load.starts)]
        end = self._accept(now, beats, writes=False)
        self.last_answer = max(self.last_answer, end)
        load.starts.append(end - (beats - 1) * self._timing.beat_interval_cycles)
        if len(load.starts) == len(load.beats):
            self._listener.loaded(load, end)
            return True
        return False

    def _accept_write(self, now: int) -> bool:
        self._writing, self._write_at = False, now + 1
        store = self.store
        assert store is not None
        beats = store.beats[len(store.starts)]
        end = self._accept(now, beats, writes=True)
        answer = end + self._timing.response_cycles
        self.last_answer = max(self.last_answer, answer)
        store.starts.append(end - (beats - 1) * self._timing.beat_interval_cycles)
        self.fill(store, end + 1)
        if len(store.starts) == len(store.beats):
            self._listener.stored(store, answer)
            return True
        return False

    def fill(self, store: Transfer, slot_free: int) -> None:
        """STORE fills a slot, free from ``slot_free``, with its next burst, if it has one left."""
        number = len(store.ready)
        if number == len(store.beats):
            return
        words = store.beats[number] * self._config.bus_bytes // self._config.block
        store.offer = max(store.offer, slot_free) + words
        store.ready.append(store.offer + 1)

    # LOAD alone at the port -------------------------------------------------------------------

    def _only_loads(self) -> bool:
        """Whether only LOAD has anything to do here."""
        load = self.load
        return (
            load is not None
            and self.fetch_offer == NEVER
            and self._reading is not Source.FETCH
            and not self._writing
            and not self.stopped
            and (self.store is None or self.store.taken == len(self.store.ready))
        )

    def _read_load(self, limit: int) -> int:
        """LOAD's bursts up to ``limit``; return the cycle of its last beat, or -1 while unknown."""
        load, timing, ends = self.load, self._timing, self._ends
        assert load is not None
        beats, starts = load.beats, load.starts
        latency, interval = timing.latency_cycles, timing.beat_interval_cycles
        reading, at = self._reading is not None, self._read_at
        accepted, before = self._last_accept, self._last_end + 1
        if self._last_writes is None:
            before = 0
        elif self._last_writes:
            before += timing.turnaround_cycles
        number, stop = len(starts), min(len(beats), load.outside)
        first = number
        while number < stop or reading:
            if not reading:
                now = at if at >= load.offer else load.offer
                if now > limit:
                    break
                reading, at = True, now + 1
                load.offer = at
            now = ends[0] if ends[0] > accepted else accepted
            now = at if at > now else now + 1
            if now > limit:
                break
            start = now + latency
            if start < before:
                start = before
            starts.append(start)
            before = start + (beats[number] - 1) * interval + 1
            ends.append(before - 1)
            number += 1
            accepted = now
            reading, at = False, now + 1
        load.taken = number + reading
        self._reading, self._read_at = Source.LOAD if reading else None, at
        if number == first:
            return -1
        self._last_accept, self._last_end, self._last_writes = accepted, before - 1, False
        self.last_answer = max(self.last_answer, before - 1)
        return before - 1 if number == len(beats) else -1
