"""The model of DRAM by which cycles are predicted: who reads or writes which burst when.

Source: docs/timing.md, "Reading DRAM" to "DRAM model".
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.footprint import dram_rows
from dovetail.isa.instructions import Load, Store
from dovetail.isa.latency import pipeline_stages
from dovetail.isa.memories import Memory
from dovetail.isa.sdram import COLUMN_BYTES

from .sdram_rows import SdramRows

__all__ = ["FETCH", "LOAD", "NEVER", "STORE", "Bursts", "MemoryPort", "Source", "bursts_of"]

NEVER = 1 << 60
"""A cycle that is not known to come."""

FETCH, LOAD, STORE = 1, 2, 3
Source = int
"""FETCH, LOAD or STORE."""

SHORT = 4
"""Cycles between two bursts in which the next one is surely taken."""


@dataclass(slots=True)
class Bursts:
    """What a LOAD or STORE moves, burst by burst.

    beats, addresses: of each.  alike: for each, how many from it on have as many beats.
    starts: cycle of the first beat of each one that DRAM has accepted, where ``timed``.
    """

    beats: Sequence[int] = ()
    addresses: Sequence[int] = ()
    alike: Sequence[int] = ()
    timed: bool = False
    starts: list[int] = field(default_factory=list)


def bursts_of(instruction: Load | Store, config: HardwareConfig, *, timed: bool = False) -> Bursts:
    """The bursts of an instruction; rows are cut at multiples of the longest burst."""
    longest, bus = config.burst_bytes, config.bus_bytes
    beats: list[int] = []
    addresses: list[int] = []
    for address, size in dram_rows(instruction, config):
        begin, end = address, address + size
        if begin % longest:
            beats.append(min(size, -begin % longest) // bus)
            addresses.append(begin)
            begin += -begin % longest
        addresses += range(begin, end, longest)
        beats += [config.burst_beats] * ((end - begin) // longest)
        if begin < end and end % longest:
            beats.append(end % longest // bus)
    alike = [1] * len(beats)
    for place in range(len(beats) - 2, -1, -1):
        if beats[place] == beats[place + 1]:
            alike[place] = alike[place + 1] + 1
    return Bursts(beats, addresses, alike, timed)


class MemoryPort:
    """The registers in front of DRAM, and its queue of commands.

    Runs of equal bursts of a LOAD, which come one after the other while nobody else wants DRAM,
    are taken in one step.
    """

    def __init__(self, config: HardwareConfig, address: int, count: int) -> None:
        """``address``: of the program, which has ``count`` instructions."""
        dram, stages = config.dram, pipeline_stages(config)
        self._latency, self._interval = dram.latency_cycles, dram.beat_interval_cycles
        self._turnaround, self._response = dram.turnaround_cycles, dram.response_cycles
        self._check, self._cut, self._read_stage = stages.check, stages.cut, stages.read
        self._sdram = SdramRows(dram.sdram) if dram.sdram else None
        self._step = config.bus_bytes // COLUMN_BYTES
        if dram.sdram:
            self._interval = self._response = self._step
        self._address = address
        self._fetch_beats = INSTRUCTION_BYTES // config.bus_bytes
        self._word_beats = config.word_bytes(Memory.ACT) // config.bus_bytes
        self._slots = config.store_slots
        self._steady = dram.queue_bursts
        self._count, self._ahead = count, config.fetch_ahead
        self.dispatched: list[int] = []
        """Cycles in which instructions were dispatched, in their order."""
        self._asked = self._accepted_fetches = 0
        """Instructions of which FETCH's burst was taken."""
        self._fetch_offer = NEVER
        self.offer_fetch(0)
        self._reading, self._read_at = 0, 0
        self._writing, self._write_at = False, 0
        self._ends = deque([-1] * dram.queue_bursts, dram.queue_bursts)
        self._last_accept = self._last_end = -1
        self._last_writes: bool | None = None
        self._even, self._run = 0, 0
        """Bursts of LOAD of ``_even`` beats, one right after the other, up to the last command."""
        self._load, self._load_offer = Bursts(), NEVER
        self._load_taken = self._load_accepted = 0
        self._store = Bursts()
        self._filled = self._taken = self._accepted = 0
        self._fill_at = 0
        self._ready: list[int] = []
        self._taken_at = 0

    def offer_fetch(self, cycle: int) -> None:
        """FETCH offers its next burst as soon as it may, from ``cycle`` on."""
        freed = self._asked - self._ahead
        if self._asked == self._count or freed >= len(self.dispatched):
            self._fetch_offer = NEVER
            return
        if freed >= 0:
            cycle = max(cycle, self.dispatched[freed] + 1)
        self._fetch_offer = cycle + self._check

    @property
    def fetch_waits(self) -> bool:
        """Whether FETCH has nothing on offer."""
        return self._fetch_offer == NEVER

    def begin_load(self, bursts: Bursts, cycle: int) -> None:
        """LOAD offers the first of ``bursts`` from ``cycle`` on."""
        self._load, self._load_offer = bursts, cycle + self._cut + self._check
        self._load_taken = self._load_accepted = 0

    def begin_store(self, bursts: Bursts, cycle: int) -> None:
        """STORE fills the first slot from ``cycle`` on."""
        self._store, self._ready = bursts, []
        self._filled = self._taken = self._accepted = 0
        self._fill_at = cycle + self._cut
        for _ in range(self._slots):
            self._fill(0)

    def _fill(self, slot_free: int) -> None:
        """Fill a slot with the next burst, if one is left."""
        if self._filled == len(self._store.beats):
            return
        words = self._store.beats[self._filled] // self._word_beats
        done = max(self._fill_at, slot_free) + words
        ready = done + 1 + self._read_stage + self._check
        if self._filled == self._taken and self._taken:
            ready = max(ready, self._taken_at + 1 + self._check)
        self._ready.append(ready)
        self._fill_at = done + self._cut
        self._filled += 1

    def advance(self, limit: int) -> tuple[Source, int] | None:
        """Do what happens up to cycle ``limit``, until it is known when something ends.

        Then: who will have had the last beat, or response, of an instruction, and in which cycle.
        """
        ends, load = self._ends, self._load
        while True:
            room = max(self._last_accept, ends[0]) + 1
            if self._reading:
                read = max(self._read_at, room)
            else:
                read = self._fetch_offer
                if self._load_taken < len(load.beats) and self._load_offer < read:
                    read = self._load_offer
                read = max(read, self._read_at)
            write = NEVER
            if self._writing:
                write = max(self._write_at, room)
            elif self._taken < self._filled:
                write = max(self._write_at, self._ready[self._taken])
            now = min(read, write)
            if now > limit or now >= NEVER:
                return None
            told: tuple[Source, int] | None = None
            accepted = False
            if read == now:
                if self._reading:
                    accepted = True
                    told = self._accept_read(now)
                    if self._run > self._steady and now == room and write == NEVER:
                        self._skip(limit)
                elif self._fetch_offer <= now:
                    self._reading, self._read_at = FETCH, now + 1
                    self._asked += 1
                    self.offer_fetch(now + 1)
                else:
                    self._reading, self._read_at = LOAD, now + 1
                    self._load_taken += 1
                    self._load_offer = now + 1 + self._cut + self._check
            # Of a read and a write in one cycle, DRAM accepts the read.
            if write == now and not (accepted and self._writing):
                if self._writing:
                    told = self._accept_write(now) or told
                else:
                    self._writing, self._write_at = True, now + 1
                    self._taken_at = now
                    self._taken += 1
                    if self._taken < self._filled:
                        ready = now + 1 + self._check
                        self._ready[self._taken] = max(self._ready[self._taken], ready)
            if told:
                return told

    def _accept(self, now: int, address: int, beats: int, *, writes: bool) -> int:
        """DRAM accepts a command; the cycle of its last beat."""
        if self._sdram:
            columns = beats * self._step
            first = self._sdram.first_column(now, address, columns, writes=writes)
            over = first + columns - 1
            end = first + (beats - 1) * self._step
            if not writes:
                end += self._step - 1 + self._sdram.timing.read_latency
        else:
            start = now + self._latency
            if self._last_writes is not None:
                turn = self._turnaround if writes is not self._last_writes else 0
                start = max(start, self._last_end + 1 + turn)
            over = end = start + (beats - 1) * self._interval
        self._ends.append(over)
        self._last_accept, self._last_end, self._last_writes = now, end, writes
        return end

    def _accept_read(self, now: int) -> tuple[Source, int] | None:
        source, self._reading, self._read_at = self._reading, 0, now + 1
        if source == FETCH:
            self._run = 0
            address = self._address + self._accepted_fetches * INSTRUCTION_BYTES
            self._accepted_fetches += 1
            return FETCH, self._accept(now, address, self._fetch_beats, writes=False)
        load, place = self._load, self._load_accepted
        beats, before = load.beats[place], self._last_end
        end = self._accept(now, load.addresses[place], beats, writes=False)
        start = end - (beats - 1) * self._interval
        if start == before + 1 and beats == self._even and not self._sdram:
            self._run += 1
        else:
            self._even, self._run = beats, 1
        if load.timed:
            load.starts.append(start)
        self._load_accepted = place + 1
        if place + 1 == len(load.beats):
            self._load, self._load_taken = Bursts(), 0
            return LOAD, end
        return None

    def _skip(self, limit: int) -> None:
        """Take bursts of LOAD as they come, each as long after the last as the one before.

        All commands that DRAM has are of LOAD, equally long, and without a pause.
        """
        place, load, each = self._load_accepted, self._load, (self._even - 1) * self._interval + 1
        if load.timed or place >= len(load.beats) or load.beats[place] != self._even:
            return
        if each < self._cut + self._check + SHORT:
            return
        count = min(limit, self._fetch_offer) - self._last_accept
        count = min(count // each - 1, load.alike[place] - 1)
        if count <= 0:
            return
        moved = count * each
        self._load_accepted += count
        self._load_taken += count
        self._last_accept += moved
        self._last_end += moved
        self._read_at += moved
        self._load_offer += moved
        for place in range(len(self._ends)):
            self._ends[place] += moved

    def _accept_write(self, now: int) -> tuple[Source, int] | None:
        self._writing, self._write_at, self._run = False, now + 1, 0
        store, place = self._store, self._accepted
        end = self._accept(now, store.addresses[place], store.beats[place], writes=True)
        self._accepted += 1
        self._fill(end + 1)
        if self._accepted == len(self._store.beats):
            self._store, self._filled, self._taken = Bursts(), 0, 0
            return STORE, end + self._response
        return None
