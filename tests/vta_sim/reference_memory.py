"""Address registers and DRAM of the stepped reference.

Source: docs/timing.md, "Reading DRAM" to "DRAM model".
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from dovetail.isa.config import DramTiming, HardwareConfig
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory

__all__ = ["Burst", "ReferenceMemory", "bursts_of", "completing_beats"]


@dataclass(slots=True)
class Burst:
    """One command: ``owner`` "fetch", "load" or "store"."""

    owner: str
    address: int
    beats: int
    start: int = -1
    """Cycle of its first beat, once the memory has accepted it."""
    moved: int = 0
    """Beats that the memory has moved."""


def bursts_of(instruction: Load | Store, config: HardwareConfig) -> list[Burst]:
    """Rows in the order z, y, cut at multiples of the longest burst."""
    load = isinstance(instruction, Load)
    size_of_word = word_bytes(instruction, config)
    owner = "load" if load else "store"
    bursts = []
    for z in range(instruction.count_z):
        for y in range(instruction.count_y):
            address = instruction.dram_address
            address += z * instruction.dram_stride_z + y * instruction.dram_stride_y
            left = instruction.count_x * size_of_word
            if load and instruction.step and instruction.count_x:
                last = address + (instruction.count_x - 1) * instruction.step + config.block - 1
                address -= address % config.bus_bytes
                left = last - last % config.bus_bytes + config.bus_bytes - address
            while left:
                address &= 0xFFFFFFFF
                size = min(left, config.burst_bytes - address % config.burst_bytes)
                bursts.append(Burst(owner, address, size // config.bus_bytes))
                address += size
                left -= size
    return bursts


def word_bytes(instruction: Load | Store, config: HardwareConfig) -> int:
    """Bytes of a word in DRAM; with nibbles half as many of WGT, after a multiplier of 4 bits a
    lane, and of PAR, or a bias and a scale; and of TAB a quarter of a beat.
    """
    if isinstance(instruction, Store):
        return config.word_bytes(Memory.ACT)
    if instruction.nibbles and instruction.memory is Memory.PAR:
        return max(8, config.bus_bytes) if instruction.gap else 4 * config.block
    if instruction.nibbles and instruction.memory is Memory.TAB:
        return config.bus_bytes // 4
    if instruction.nibbles:
        return max(config.bus_bytes, config.block // 2) + config.block**2 // 2
    return config.word_bytes(instruction.memory)


def completing_beats(load: Load, config: HardwareConfig) -> set[int]:
    """Numbers, from 1, of the beats of ``load`` that bring the last byte of a word."""
    bus, size = config.bus_bytes, word_bytes(load, config)
    found, before = set(), 0
    for _ in range(load.count_z * load.count_y):
        place = load.dram_address % bus if load.step else 0
        for _ in range(load.count_x):
            last = before + (place + size - 1) // bus + 1
            found.add(last)
            place += load.step or size
        before = max(found, default=0)
    return found


class ReferenceMemory:
    """One address register a direction, and the memory's queue of commands."""

    def __init__(self, timing: DramTiming) -> None:
        self.timing = timing
        self.read: Burst | None = None
        self.write: Burst | None = None
        self.commands: deque[Burst] = deque()
        """Accepted and not over."""
        self.end_before: int | None = None
        self.wrote_before = False
        self.unsent: deque[Burst] = deque()
        """STORE's bursts that are taken and not over."""
        self.responses: deque[int] = deque()
        self.unanswered = 0

    def take(self, channel: str, burst: Burst) -> None:
        setattr(self, channel, burst)
        self.unanswered += 1
        if channel == "write":
            self.unsent.append(burst)

    def accept(self, now: int, later: list[Callable[[], object]]) -> None:
        """The memory accepts a command when there is one and room."""
        if len(self.commands) >= self.timing.queue_bursts:
            return
        channel = "read" if self.read is not None else "write"
        burst = getattr(self, channel)
        if burst is None:
            return
        start = now + self.timing.latency_cycles
        if self.end_before is not None:
            turns = self.wrote_before != (channel == "write")
            turn = self.timing.turnaround_cycles if turns else 0
            start = max(start, self.end_before + 1 + turn)
        burst.start = start
        self.end_before = start + (burst.beats - 1) * self.timing.beat_interval_cycles
        self.wrote_before = channel == "write"
        later.append(lambda: setattr(self, channel, None))
        later.append(lambda: self.commands.append(burst))

    def beat(self, now: int) -> Burst | None:
        """The burst of which a beat moves in this cycle."""
        if not self.commands:
            return None
        burst = self.commands[0]
        due = burst.start + burst.moved * self.timing.beat_interval_cycles
        return burst if due == now else None

    def move(self, burst: Burst) -> None:
        """The beat has moved; after the last the command is over."""
        burst.moved += 1
        if burst.moved < burst.beats:
            return
        self.commands.popleft()
        if burst.owner == "store":
            self.unsent.popleft()
            last = burst.start + (burst.beats - 1) * self.timing.beat_interval_cycles
            self.responses.append(last + self.timing.response_cycles)
        else:
            self.unanswered -= 1

    def response(self, now: int) -> bool:
        """True if a write is answered in this cycle."""
        return bool(self.responses) and self.responses[0] == now

    def answer(self) -> None:
        self.responses.popleft()
        self.unanswered -= 1
