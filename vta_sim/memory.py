"""The memory port and the DRAM model, burst by burst (docs/timing.md, "Reading DRAM" to "DRAM
model").

Each burst is taken into an address register, accepted by the memory, and then its beats follow a
formula. Actions are done one at a time, in order of their cycle; what an action depends on always
happened in an earlier cycle, so the caller only has to interleave them with the rest of the machine
by time.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import DramTiming, HardwareConfig
from dovetail.isa.footprint import dram_rows
from dovetail.isa.instructions import Load, Store

__all__ = ["NEVER", "MemoryPort", "Transfer", "cut_bursts"]

NEVER = 1 << 62
"""A cycle that is not known to come."""


def cut_bursts(instruction: Load | Store, config: HardwareConfig) -> list[tuple[int, int]]:
    """Each burst of the instruction, in order: (first byte address, beats)."""
    size, bus = config.burst_bytes, config.bus_bytes
    bursts = []
    for start, length in dram_rows(instruction, config):
        end = start + length
        while start < end:
            stop = min((start // size + 1) * size, end)
            bursts.append((start & 0xFFFFFFFF, (stop - start) // bus))
            start = stop
    return bursts


@dataclass(slots=True)
class Transfer:
    """A LOAD or STORE at work: its bursts, and the first data beat of each one accepted so far."""

    index: int
    bursts: list[tuple[int, int]]
    offer: int
    """Cycle from which the next burst is offered."""
    taken: int = 0
    starts: list[int] = field(default_factory=list)
    takes: list[int] = field(default_factory=list)
    """STORE: cycle in which each burst was taken."""
    ready: list[int] = field(default_factory=list)
    """STORE: from when each filled burst is offered."""
    outside: int = -1
    """First burst that leaves the window; -1 for none."""

    @property
    def beats_accepted(self) -> int:
        """Beats of the bursts accepted."""
        return sum(beats for _, beats in self.bursts[: len(self.starts)])

    def beat_cycles(self, interval: int) -> NDArray[np.int64]:
        """Cycle of every beat of the bursts accepted."""
        counts = np.array([beats for _, beats in self.bursts[: len(self.starts)]], np.int64)
        first = np.repeat(np.array(self.starts, np.int64), counts)
        within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        return first + within * interval


class MemoryPort:
    """AR and AW registers in front of the DRAM's command queue.

    next: the cycle of the next action, ``NEVER`` when there is none; ``act`` does it.
    """

    def __init__(
        self,
        config: HardwareConfig,
        timing: DramTiming,
        window: tuple[int, int],
        fetched: Callable[[int, int], None],
        loaded: Callable[[Transfer, int], None],
        stored: Callable[[Transfer, int], None],
        outside: Callable[[str, int, int], None],
    ) -> None:
        self.config, self.timing, self.window = config, timing, window
        self._fetched, self._loaded, self._stored, self._outside = fetched, loaded, stored, outside
        self.load: Transfer | None = None
        self.store: Transfer | None = None
        self.fetch_address = 0
        self.fetch_offer = NEVER
        self.fetch_index = 0
        self._fetch_beats = 64 // config.bus_bytes
        # Address registers: what is valid, and from when; or from when they are empty.
        self._read: tuple[Transfer | None, int] | None = None
        self._read_at = 0
        self._write: Transfer | None = None
        self._write_at = 0
        # The memory: ends of the commands accepted (the last few), and the last one's direction.
        self._ends: deque[int] = deque(maxlen=timing.queue_bursts)
        self._last_accept = -1
        self._last_end = NEVER
        self._last_is_write = False
        self.last_answer = -1
        """Cycle of the latest last beat or write response of any burst accepted."""
        self.stopped = False
        """Whether no more bursts are taken."""

    def next(self) -> int:
        """Cycle of the next action."""
        room = self._room()
        if self._read is not None:
            read = max(self._read_at, room)
        elif self.stopped:
            read = NEVER
        else:
            offer = self.fetch_offer
            load = self.load
            if load is not None and load.taken < len(load.bursts) and load.offer < offer:
                offer = load.offer
            read = max(self._read_at, offer)
        if self._write is not None:
            write = max(self._write_at, room)
        elif self.stopped:
            write = NEVER
        else:
            store = self.store
            write = NEVER
            if store is not None and store.taken < len(store.ready):
                write = max(self._write_at, store.ready[store.taken])
        return read if read <= write else write

    def _room(self) -> int:
        """First cycle in which the memory can accept another command."""
        soonest = self._last_accept + 1
        if len(self._ends) == self.timing.queue_bursts:
            return max(soonest, self._ends[0] + 1)
        return soonest

    def act(self, cycle: int) -> None:
        """Do the actions of ``cycle``, the one ``next`` gave: at most one on either address
        channel.
        """
        room = self._room() <= cycle
        accept_read = self._read is not None and self._read_at <= cycle and room
        accept_write = (
            self._write is not None and self._write_at <= cycle and room and not accept_read
        )
        taking = not self.stopped
        if self._read is None and self._read_at <= cycle and taking:
            self._take_read(cycle)
        elif accept_read:
            self._accept_read(cycle)
        if self._write is None and self._write_at <= cycle and taking:
            self._take_write(cycle)
        elif accept_write:
            self._accept_write(cycle)

    def _take_read(self, cycle: int) -> None:
        load = self.load
        if self.fetch_offer <= cycle:
            address = (self.fetch_address + 64 * self.fetch_index) & 0xFFFFFFFF
            if not self.window[0] <= address <= address + 63 <= self.window[1]:
                self._outside("fetch", self.fetch_index, cycle)
                self.fetch_offer = NEVER
                return
            self._read = (None, self.fetch_index)
            self.fetch_index += 1
            self.fetch_offer = NEVER
            self._fetched(-1, cycle)
        elif load is not None and load.taken < len(load.bursts) and load.offer <= cycle:
            if load.taken == load.outside:
                self._outside("load", load.index, cycle)
                load.offer = NEVER
                return
            self._read = (load, load.taken)
            load.taken += 1
            load.offer = cycle + 1
        else:
            return
        self._read_at = cycle + 1

    def _take_write(self, cycle: int) -> None:
        store = self.store
        if store is None or store.taken >= len(store.ready) or store.ready[store.taken] > cycle:
            return
        if store.taken == store.outside:
            self._outside("store", store.index, cycle)
            store.ready[store.taken] = NEVER
            return
        self._write = store
        store.taken += 1
        store.takes.append(cycle)
        self._write_at = cycle + 1

    def _start(self, cycle: int, beats: int, *, write: bool) -> tuple[int, int]:
        """First and last beat of a command accepted in ``cycle``."""
        timing = self.timing
        start = cycle + timing.latency_cycles
        if self._last_end != NEVER:
            turn = timing.turnaround_cycles if write != self._last_is_write else 0
            start = max(start, self._last_end + 1 + turn)
        end = start + (beats - 1) * timing.beat_interval_cycles
        self._ends.append(end)
        self._last_accept, self._last_end, self._last_is_write = cycle, end, write
        return start, end

    def _accept_read(self, cycle: int) -> None:
        assert self._read is not None
        transfer, number = self._read
        self._read, self._read_at = None, cycle + 1
        beats = self._fetch_beats if transfer is None else transfer.bursts[number][1]
        start, end = self._start(cycle, beats, write=False)
        self.last_answer = max(self.last_answer, end)
        if transfer is None:
            self._fetched(number, end)
            return
        transfer.starts.append(start)
        if len(transfer.starts) == len(transfer.bursts):
            self._loaded(transfer, end)

    def _accept_write(self, cycle: int) -> None:
        assert self._write is not None
        transfer = self._write
        self._write, self._write_at = None, cycle + 1
        number = len(transfer.starts)
        start, end = self._start(cycle, transfer.bursts[number][1], write=True)
        self.last_answer = max(self.last_answer, end + self.timing.response_cycles)
        transfer.starts.append(start)
        self.fill(transfer, end + 1)
        if len(transfer.starts) == len(transfer.bursts):
            self._stored(transfer, end + self.timing.response_cycles)

    def fill(self, store: Transfer, slot_free: int) -> None:
        """Fill the next burst's slot, which is free from ``slot_free``; ``offer`` is when filling
        can go on.
        """
        number = len(store.ready)
        if number == len(store.bursts):
            return
        words = store.bursts[number][1] * self.config.bus_bytes // self.config.block
        begin = max(store.offer, slot_free)
        store.offer = begin + words
        store.ready.append(begin + words + 1)
