"""Cycles that a program takes, predicted before anything runs: by instructions and bursts.

Source: the rules of ``docs/timing.md``.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import written_beats
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.latency import compute_latency, issue_cycles, pipeline_stages
from dovetail.isa.memories import Memory, Unit

from .memory_port import FETCH, LOAD, NEVER, Bursts, MemoryPort, bursts_of

__all__ = ["predict"]

UNITS = len(Unit)
PRIORITY = (Unit.GEMM, Unit.VECTOR, Unit.STORE, Unit.LOAD)
"""Of the units that accept in one cycle, the first gets the bank."""

WRITTEN, SUMS = 8, 16
"""First bit of the banks of ACT that are written, and of those of ACC."""


def predict(
    program: Sequence[Instruction], config: HardwareConfig, address: int = 0
) -> list[tuple[int, int]]:
    """Cycles in which each instruction is accepted and in which it ends.

    program: with its tokens and bank masks.  address: of it in DRAM, which matters to SDRAM.
    Raises ValueError for a program that can never end.
    """
    model = _Model(program, config, address)
    model.run()
    return list(zip(model.accepted, model.ended, strict=True))


@dataclass(frozen=True, slots=True)
class _Step:
    """What time needs of an instruction.

    waits, posts: numbers of its pairs of units.  claim: its banks.  reads, writes: those that two
    VECTOR instructions may not share.  issues: of GEMM and VECTOR.
    """

    unit: int
    waits: tuple[int, ...]
    posts: tuple[int, ...]
    claim: int
    reads: int = 0
    writes: int = 0
    issues: int = 0


def _step(instruction: Instruction, each: dict[Unit, int]) -> _Step:
    unit = instruction.unit
    waits = tuple(int(other) * UNITS + int(unit) for other in instruction.wait)
    posts = tuple(int(unit) * UNITS + int(other) for other in instruction.post)
    match instruction:
        case Load():
            claim = instruction.act_write_banks << WRITTEN | instruction.acc_banks << SUMS
            return _Step(unit, waits, posts, claim)
        case Store():
            return _Step(unit, waits, posts, instruction.act_read_banks)
        case Gemm():
            claim = instruction.act_read_banks | instruction.acc_banks << SUMS
            return _Step(unit, waits, posts, claim, issues=prod(instruction.extent) * each[unit])
        case Vector():
            act_reads, act_writes = instruction.act_read_banks, instruction.act_write_banks
            sums = instruction.acc_banks << SUMS
            return _Step(
                unit,
                waits,
                posts,
                act_reads | act_writes << WRITTEN | sums,
                act_reads | (sums if instruction.source is Memory.ACC else 0),
                act_writes | (sums if instruction.destination is Memory.ACC else 0),
                prod(instruction.extent) * each[unit],
            )


class _Model:
    """Queues, tokens, banks, and the memory port behind LOAD, STORE and FETCH."""

    def __init__(
        self, program: Sequence[Instruction], config: HardwareConfig, address: int
    ) -> None:
        each, stages = issue_cycles(config), pipeline_stages(config)
        self._config, self._program, self._stages = config, program, stages
        self._steps = [_step(instruction, each) for instruction in program]
        self._latency = {int(unit): cycles for unit, cycles in compute_latency(config).items()}
        self.accepted = [-1] * len(program)
        self.ended = [-1] * len(program)
        self._port = MemoryPort(config, address, len(program))
        self._dispatched = self._port.dispatched
        self._fetched: list[int] = []
        self._dispatch_at = NEVER
        self._queues: list[deque[int]] = [deque() for _ in range(UNITS)]
        self._popped: list[deque[int]] = [deque([-1] * config.queue_depth) for _ in range(UNITS)]
        """Cycles in which places of queues became free, the oldest first."""
        self._tokens: list[deque[int]] = [deque() for _ in range(UNITS * UNITS)]
        self._credits = [deque([0] * config.token_max) for _ in range(UNITS * UNITS)]
        self._free = [0] * UNITS
        self._next = [NEVER] * UNITS
        self._flights: list[list[tuple[int, int, int]]] = [[] for _ in range(UNITS)]
        """Of each unit: the end of what it has in flight, the banks that holds, those it writes."""
        self._working = [-1] * UNITS
        self._bursts = Bursts()
        self._now = 0

    def run(self) -> None:
        """Find out when every instruction starts and ends."""
        upcoming, port = self._next, self._port
        while True:
            unit = min(PRIORITY, key=upcoming.__getitem__)
            now = min(upcoming[unit], self._dispatch_at)
            told = port.advance(now)
            if told:
                self._listen(*told)
                continue
            if now >= NEVER:
                break
            dispatched = self._dispatch_at == now
            if dispatched:
                self._dispatch(now)
            if upcoming[unit] == now:
                self._accept(unit, now)
        if -1 in self.ended:
            raise ValueError(f"instruction {self.ended.index(-1)} never ends")

    def _listen(self, source: int, cycle: int) -> None:
        if source == FETCH:
            self._fetched.append(cycle)
            if len(self._fetched) == len(self._dispatched) + 1:
                self._prepare()
            return
        unit = Unit.LOAD if source == LOAD else Unit.STORE
        if unit is Unit.LOAD:
            cycle = self._written(cycle + self._stages.receive)
        self._end(unit, cycle)

    def _prepare(self) -> None:
        """Work out when the next instruction is dispatched."""
        index, stages = len(self._dispatched), self._stages
        if index >= len(self._fetched):
            self._dispatch_at = NEVER
            return
        cycle = self._fetched[index] + 1 + stages.receive + stages.dispatch
        if index:
            cycle = max(cycle, self._dispatched[-1] + 1 + stages.dispatch)
        freed = self._popped[self._steps[index].unit]
        self._dispatch_at = max(cycle, freed[0] + 1) if freed else NEVER

    def _dispatch(self, cycle: int) -> None:
        index = len(self._dispatched)
        unit = self._steps[index].unit
        self._popped[unit].popleft()
        self._queues[unit].append(index)
        self._dispatched.append(cycle)
        if len(self._queues[unit]) == 1:
            self._next[unit] = self._acceptance(unit)
        self._prepare()
        if self._port.fetch_waits:
            self._port.offer_fetch(cycle + 1)

    def _acceptance(self, unit: int) -> int:
        """When the unit accepts the head of its queue, as far as is known."""
        if not self._queues[unit] or self._free[unit] == NEVER:
            return NEVER
        index, stage = self._queues[unit][0], self._stages.accept
        step = self._steps[index]
        cycle = max(self._free[unit], self._dispatched[index] + 1, self._now - stage)
        for pair in step.waits:
            if not self._tokens[pair]:
                return NEVER
            cycle = max(cycle, self._tokens[pair][0])
        for pair in step.posts:
            if not self._credits[pair]:
                return NEVER
            cycle = max(cycle, self._credits[pair][0])
        for other, flights in enumerate(self._flights):
            for end, held, writes in flights:
                if end >= cycle and (writes & step.reads if other == unit else held & step.claim):
                    cycle = end + 1
        if cycle > self._now - stage:
            cycle = max(cycle, self._now + (stage > 0))
        return min(cycle + stage, NEVER)

    def _accept(self, unit: int, cycle: int) -> None:
        index = self._queues[unit].popleft()
        step, stages = self._steps[index], self._stages
        full = not self._popped[unit]
        self._popped[unit].append(cycle)
        self.accepted[index] = self._now = cycle
        for pair in step.waits:
            self._tokens[pair].popleft()
            self._credits[pair].append(cycle + 1)
        for pair in step.posts:
            self._credits[pair].popleft()
        flights = self._flights[unit]
        if step.issues:
            flights[:] = [each for each in flights if each[0] >= cycle - stages.accept]
            self._free[unit] = cycle + step.issues
            self._finish(index, cycle + step.issues + self._latency[unit])
        else:
            self._free[unit] = NEVER
            self._working[unit] = index
            flights[:] = [(NEVER, step.claim, step.writes)]
            self._transfer(index, cycle + 1 + stages.setup)
        if full:
            self._prepare()
        self._refresh()

    def _transfer(self, index: int, cycle: int) -> None:
        """A LOAD or STORE has its first address in ``cycle``."""
        match self._program[index]:
            case Load() as load:
                self._bursts = bursts_of(load, self._config, timed=load.padded)
                if self._bursts.beats:
                    self._port.begin_load(self._bursts, cycle)
                else:
                    self._end(Unit.LOAD, self._written(cycle - 1))
            case Store() as store:
                self._port.begin_store(bursts_of(store, self._config), cycle)

    def _written(self, last_beat: int) -> int:
        """The end of the LOAD at work: its last word is written, its last cell visited.

        Cell ``n`` is visited in the ``n``-th cycle in which nothing else is written.
        """
        index, stages, config = self._working[Unit.LOAD], self._stages, self._config
        load, last = self._program[index], last_beat + 1
        assert isinstance(load, Load)
        if not load.padded:
            return last + stages.write
        cells = load.count_z * load.rows * load.columns
        first = self.accepted[index] + 1 + stages.setup
        writes = written_beats(load, config)
        written = 0
        if self._bursts.beats and first + cells + len(writes) > last:
            beats = np.array(self._bursts.beats)
            within = np.arange(beats.sum()) - np.repeat(np.cumsum(beats) - beats, beats)
            cycles = (
                np.repeat(self._bursts.starts, beats) + within * config.dram.beat_interval_cycles
            )
            cycles = cycles[writes] + 1 + stages.receive
            over = cycles - first - np.arange(len(cycles)) >= cells
            written = int(over.argmax()) if over.any() else len(cycles)
            last = max(last, first + cells + written - 1)
        elif not self._bursts.beats:
            last = max(last, first + cells - 1)
        return last + stages.write

    def _end(self, unit: Unit, cycle: int) -> None:
        """The LOAD or STORE at work ends in ``cycle``."""
        self._free[unit] = cycle + 1
        self._flights[unit].clear()
        self._finish(self._working[unit], cycle)
        self._refresh()

    def _finish(self, index: int, cycle: int) -> None:
        step = self._steps[index]
        self.ended[index] = cycle
        self._flights[step.unit].append((cycle, step.claim, step.writes))
        for pair in step.posts:
            self._tokens[pair].append(cycle + 1)

    def _refresh(self) -> None:
        self._next[:] = [self._acceptance(unit) for unit in range(UNITS)]
