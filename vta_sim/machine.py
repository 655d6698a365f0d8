"""The event loop: which instruction starts when, and why it waited (docs/timing.md).

Everything that happens is one of: an action at the memory port, an instruction accepted, an
instruction dispatched.  Each depends only on what happened in earlier cycles, so they are done in
order of their cycle. All else is a formula: an instruction's end, the banks it holds, the tokens it
gives.
"""

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming
from dovetail.isa.errors import EncodingError
from dovetail.isa.footprint import dram_rows, scratchpad_reads
from dovetail.isa.instructions import (
    Gemm,
    Instruction,
    Load,
    Store,
    Vector,
    decode,
    legality_problem,
)
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.registers import COUNTERS, ErrorCode
from dovetail.isa.state import MachineState

from .compute import apply
from .errors import SimulationError
from .memory import NEVER, MemoryPort, Transfer, cut_bursts
from .timing import GEMM_LATENCY, VECTOR_LATENCY

__all__ = ["SimResult", "simulate"]

PRIORITY = (Unit.GEMM, Unit.VECTOR, Unit.STORE, Unit.LOAD)
ROLES = ("act_read_banks", "act_write_banks", "acc_banks")
LATENCY = {Unit.GEMM: GEMM_LATENCY, Unit.VECTOR: VECTOR_LATENCY}


@dataclass(frozen=True, slots=True)
class SimResult:
    """What a run did.

    finished: the program ended by itself; else ``error_code`` and ``error_index`` say why.
    counters: by the names of ``dovetail.isa.registers.COUNTERS``.
    dispatched, accepted, ended: int64[instructions], the cycle of each; -1 for never.
    waited_token, waited_port: int64[instructions], cycles at the head of the queue, the unit free,
    for want of a token or a bank.
    state: DRAM and scratchpads after the run; the arrays given, changed in place.
    """

    finished: bool
    error_code: int
    error_index: int
    counters: dict[str, int]
    dispatched: NDArray[np.int64]
    accepted: NDArray[np.int64]
    ended: NDArray[np.int64]
    waited_token: NDArray[np.int64]
    waited_port: NDArray[np.int64]
    state: MachineState


@dataclass(slots=True)
class _UnitState:
    """What a unit has to do, and how far it is."""

    queue: list[int] = field(default_factory=list)
    """Indices of the instructions dispatched to it."""
    done: int = 0
    """How many of them are accepted."""
    free_at: int = 0
    """First cycle in which it can accept; NEVER while not known."""
    held: dict[str, list[int]] = field(default_factory=dict)
    """For each role, the last cycle in which it holds each bank."""


class _Machine:
    def __init__(
        self,
        state: MachineState,
        words: list[bytes],
        program_address: int,
        window: tuple[int, int],
        timing: DramTiming,
        watchdog: int,
    ) -> None:
        self.state, self.config, self.words = state, state.config, words
        self.timing, self.watchdog = timing, watchdog
        self.window = window
        self.instructions: list[Instruction | None] = [None] * len(words)
        count = len(words)
        self.dispatched, self.accepted, self.ended = ([-1] * count for _ in range(3))
        self.waited_token, self.waited_port = [0] * count, [0] * count
        self.arrived = [NEVER] * count
        self.next_dispatch = 0
        self.units = {unit: _UnitState(held={role: [-1] * 8 for role in ROLES}) for unit in Unit}
        # Tokens there and credits there: the cycle from which each can be used.
        pairs = [(a, b) for a in Unit for b in Unit if a is not b]
        self.tokens: dict[tuple[Unit, Unit], deque[int]] = {pair: deque() for pair in pairs}
        self.credits = {pair: deque([0] * self.config.token_max) for pair in pairs}
        self.vector_writes = {role: [-1] * 8 for role in ROLES}
        self.stopped_at = NEVER
        self.error = (ErrorCode.NONE, 0)
        self.changed = False
        self.known_ends = 0
        self.ends: list[int] = []
        self.last_end = -1
        self.stores: list[Transfer] = []
        self.unwritten: Transfer | None = None
        self.fetch_beats = self.load_beats = self.store_beats = 0
        self.port = MemoryPort(
            self.config, timing, window, self._fetched, self._loaded, self._stored, self._outside
        )
        self.port.fetch_address = program_address
        self._offer_fetch(0)

    # FETCH ------------------------------------------------------------------------------------

    def _offer_fetch(self, cycle: int) -> None:
        """Offer the next instruction's burst from ``cycle``, or as soon as one is dispatched."""
        index, port = self.port.fetch_index, self.port
        if index >= len(self.words):
            return
        before = index - self.config.fetch_ahead
        if before < 0:
            port.fetch_offer = cycle
        elif self.dispatched[before] >= 0:
            port.fetch_offer = max(cycle, self.dispatched[before] + 1)
        else:
            port.fetch_offer = NEVER

    def _fetched(self, index: int, cycle: int) -> None:
        """A fetch was taken (index -1), or accepted: its last beat comes in ``cycle``."""
        if index < 0:
            self._offer_fetch(cycle + 1)
        else:
            self.arrived[index] = cycle
            self.fetch_beats += INSTRUCTION_BYTES // self.config.bus_bytes
            self.changed = True

    def _dispatch_time(self) -> int:
        """Cycle of the next dispatch."""
        index = self.next_dispatch
        if index >= len(self.words) or self.arrived[index] == NEVER:
            return NEVER
        soonest = self.arrived[index] + 1
        if index:
            soonest = max(soonest, self.dispatched[index - 1] + 1)
        instruction = self._instruction(index)
        if instruction is None:
            return soonest if self.stopped_at == NEVER else NEVER
        unit = self.units[instruction.unit]
        earlier = len(unit.queue) - self.config.queue_depth
        if earlier >= 0:
            if unit.done <= earlier:
                return NEVER
            soonest = max(soonest, self.accepted[unit.queue[earlier]] + 1)
        return soonest

    def _instruction(self, index: int) -> Instruction | None:
        """The instruction, decoded when it is first asked for; None when it is illegal."""
        known = self.instructions[index]
        if known is None:
            try:
                known = decode(self.words[index])
            except EncodingError:
                return None
            if legality_problem(known, self.config):
                return None
            self.instructions[index] = known
        return known

    def _dispatch(self, cycle: int) -> None:
        index = self.next_dispatch
        instruction = self._instruction(index)
        self.changed = True
        if instruction is None:
            self._stop(cycle, ErrorCode.ILLEGAL_INSTRUCTION, index)
            return
        self.dispatched[index] = cycle
        self.units[instruction.unit].queue.append(index)
        self.next_dispatch += 1
        if self.port.fetch_offer == NEVER:
            self._offer_fetch(cycle + 1)

    # Accepting --------------------------------------------------------------------------------

    def _accept_time(self, unit: Unit) -> tuple[int, int, int]:
        """When the head of the unit's queue is accepted, as far as is known; when it could be but
        for tokens and banks; and when it could be but for banks."""
        own = self.units[unit]
        if own.done >= len(own.queue) or own.free_at == NEVER:
            return NEVER, NEVER, NEVER
        index = own.queue[own.done]
        instruction = self.instructions[index]
        assert instruction is not None
        could = max(own.free_at, self.dispatched[index] + 1)
        tokens = could
        for other in instruction.wait:
            there = self.tokens[other, unit]
            tokens = max(tokens, there[0]) if there else NEVER
        for other in instruction.post:
            room = self.credits[unit, other]
            tokens = max(tokens, room[0]) if room else NEVER
        if tokens == NEVER:
            return NEVER, could, NEVER
        return self._banks_free(unit, instruction, tokens), could, tokens

    def _banks_free(self, unit: Unit, instruction: Instruction, cycle: int) -> int:
        """First cycle, from ``cycle`` on, in which no other unit holds a bank the instruction
        needs.
        """
        for role in ROLES:
            mask = getattr(instruction, role, 0)
            for bank in _bits(mask):
                for other, held in self.units.items():
                    if other is not unit and held.held[role][bank] >= cycle:
                        cycle = min(held.held[role][bank] + 1, NEVER)
        if isinstance(instruction, Vector):
            for role, mask in _vector_reads(instruction):
                for bank in _bits(mask):
                    cycle = max(cycle, self.vector_writes[role][bank] + 1)
        return cycle

    def _accept(self, unit: Unit, cycle: int, could: int, tokens: int) -> None:
        own = self.units[unit]
        index = own.queue[own.done]
        instruction = self.instructions[index]
        assert instruction is not None
        self._flush(cycle)
        self.changed = True
        own.done += 1
        self.accepted[index] = cycle
        self.waited_token[index] = tokens - could
        self.waited_port[index] = cycle - tokens
        for other in instruction.wait:
            self.tokens[other, unit].popleft()
            self.credits[other, unit].append(cycle + 1)
        for other in instruction.post:
            self.credits[unit, other].popleft()
        match instruction:
            case Gemm(extent=extent) | Vector(extent=extent):
                iterations = 1
                for count in extent:
                    iterations *= count
                own.free_at = cycle + iterations
                self._end(unit, index, cycle + iterations + LATENCY[unit])
            case Load() | Store():
                own.free_at = NEVER
                self._hold(unit, instruction, NEVER)
                self._begin(unit, index, instruction, cycle)
        leaves_window = unit is Unit.LOAD and self.port.load and self.port.load.outside >= 0
        if unit is not Unit.STORE and not leaves_window:
            apply(self.state, instruction)

    def _hold(self, unit: Unit, instruction: Instruction, until: int) -> None:
        for role in ROLES:
            held = self.units[unit].held[role]
            for bank in _bits(getattr(instruction, role, 0)):
                held[bank] = until
        if isinstance(instruction, Vector):
            for bank in _bits(instruction.act_write_banks):
                self.vector_writes["act_read_banks"][bank] = until
            if instruction.destination is Memory.ACC:
                for bank in _bits(instruction.acc_banks):
                    self.vector_writes["acc_banks"][bank] = until

    def _end(self, unit: Unit, index: int, cycle: int) -> None:
        """The instruction ends in ``cycle``: let go of its banks and give its tokens then."""
        instruction = self.instructions[index]
        assert instruction is not None
        self.ended[index] = cycle
        self.known_ends += 1
        self.changed = True
        if self.watchdog:
            heappush(self.ends, cycle)
        self._hold(unit, instruction, cycle)
        for other in instruction.post:
            self.tokens[unit, other].append(cycle + 1)

    # LOAD and STORE ---------------------------------------------------------------------------

    def _begin(self, unit: Unit, index: int, instruction: Load | Store, cycle: int) -> None:
        transfer = Transfer(index, cut_bursts(instruction, self.config), cycle + 1)
        base, limit = self.window
        rows = dram_rows(instruction, self.config)
        if any(start < base or start + size - 1 > limit for start, size in rows):
            bus = self.config.bus_bytes
            transfer.outside = next(
                number
                for number, (start, beats) in enumerate(transfer.bursts)
                if start < base or start + beats * bus - 1 > limit
            )
        if unit is Unit.LOAD:
            if transfer.bursts:
                self.port.load = transfer
            else:
                self._loaded(transfer, -1)
            return
        self.port.store = transfer
        self.stores.append(transfer)
        for _ in range(self.config.store_slots):
            self.port.fill(transfer, 0)

    def _loaded(self, transfer: Transfer, _: int) -> None:
        """All of LOAD's bursts are accepted: its end is known."""
        self.port.load = None
        index = transfer.index
        instruction = self.instructions[index]
        assert isinstance(instruction, Load)
        beats = transfer.beat_cycles(self.timing.beat_interval_cycles)
        word = self.config.word_bytes(instruction.memory) // self.config.bus_bytes
        writes = beats[word - 1 :: word] + 1
        end = int(writes[-1]) if len(writes) else -1
        if instruction.padded:
            cells = instruction.count_z * instruction.rows * instruction.columns
            begin = self.accepted[index] + 1
            # Cell number n is visited in the n-th cycle without a data write.
            before = int(np.count_nonzero(writes - begin - np.arange(len(writes)) < cells))
            end = max(end, begin + cells + before - 1)
        self.load_beats += len(beats)
        self.units[Unit.LOAD].free_at = end + 1
        self._end(Unit.LOAD, index, end)

    def _stored(self, transfer: Transfer, answered: int) -> None:
        """All of STORE's bursts are accepted: its end is known."""
        self.port.store = None
        self.store_beats += sum(beats for _, beats in transfer.bursts)
        self.unwritten = transfer
        self.units[Unit.STORE].free_at = answered + 1
        self._end(Unit.STORE, transfer.index, answered)

    # Errors and the end -----------------------------------------------------------------------

    def _outside(self, _: str, index: int, cycle: int) -> None:
        self._stop(cycle, ErrorCode.WINDOW, index)

    def _stop(self, cycle: int, code: ErrorCode, index: int) -> None:
        if cycle < self.stopped_at:
            self.stopped_at = cycle
            self.error = (code, index)

    def _watchdog_time(self) -> int:
        """Cycle in which the watchdog fires, as far as is known."""
        if not self.watchdog:
            return NEVER
        while self.ends and self.ends[0] <= self.last_end + self.watchdog:
            self.last_end = max(self.last_end, heappop(self.ends))
        return self.last_end + 1 + self.watchdog

    def _oldest(self, cycle: int) -> int:
        """Index of the oldest instruction of the first unit that has one."""
        for unit in Unit:
            own = self.units[unit]
            for place, index in enumerate(own.queue):
                if place >= own.done:
                    if self.dispatched[index] < cycle:
                        return index
                elif self.accepted[index] < cycle and not 0 <= self.ended[index] < cycle:
                    return index
        return sum(0 <= when < cycle for when in self.dispatched)

    def run(self) -> int:
        """Run to the end; return the last cycle."""
        port = self.port
        choice, dispatch = self._next_accept(), self._dispatch_time()
        while True:
            if self.changed:
                choice, dispatch = self._next_accept(), self._dispatch_time()
                self.changed = False
            limit = min(choice[0], dispatch)
            memory = port.next()
            now = min(memory, limit)
            if now > self._watchdog_time() and self.stopped_at == NEVER and not self._complete():
                fires = self._watchdog_time()
                self._stop(fires, ErrorCode.WATCHDOG, self._oldest(fires))
            if now > self.stopped_at or now == NEVER:
                break
            if memory == now:
                port.act(now)
            if dispatch == now:
                self._dispatch(now)
            if choice[0] == now:
                self._accept(choice[3], *choice[:3])
        if self.stopped_at != NEVER:
            return self._drain()
        if not self._complete():
            raise SimulationError(self._deadlock())
        self._flush(NEVER)
        return max(self.ended, default=-1) + 1

    def _complete(self) -> bool:
        """Whether every instruction's end is known."""
        return self.known_ends == len(self.words)

    def _drain(self) -> int:
        """After a stop: let memory answer the bursts already taken; return the last cycle."""
        self.port.stopped = True
        while (cycle := self.port.next()) != NEVER:
            self.port.act(cycle)
        free = 0
        for transfer in self.stores:
            free = self._store_until(transfer, self.stopped_at, free)
        load, store = self.port.load, self.port.store
        self.load_beats += load.beats_accepted if load else 0
        self.store_beats += store.beats_accepted if store else 0
        return max(self.stopped_at, self.port.last_answer) + 1

    def _flush(self, cycle: int) -> None:
        """Write to DRAM what a STORE that ended before ``cycle`` stores."""
        if self.unwritten is not None and self.ended[self.unwritten.index] < cycle:
            instruction = self.instructions[self.unwritten.index]
            assert instruction is not None
            apply(self.state, instruction)
            self.stores.clear()
            self.unwritten = None

    def _store_until(self, transfer: Transfer, cycle: int, free: int) -> int:
        """Write the beats that STORE first offers by ``cycle``; those after a stop carry no byte.

        free: cycle from which STORE can offer the transfer's first beat, as far as earlier beats
        are concerned. Returns the same for the transfer after it.
        """
        instruction = self.instructions[transfer.index]
        assert isinstance(instruction, Store)
        bus, dram = self.config.bus_bytes, self.state.dram
        (touch,) = scratchpad_reads(instruction, self.config)
        data = self.state.words(Memory.ACT)[touch.addresses].reshape(-1)
        interval = self.timing.beat_interval_cycles
        position = 0
        bursts = zip(transfer.bursts, transfer.starts, transfer.takes, strict=False)
        for (address, beats), start, taken in bursts:
            # The first beat is offered when the burst is taken and the beat before is gone, each
            # other one in the cycle after the beat before it.
            moved = 0
            if max(taken + 1, free) <= cycle:
                moved = min(beats, 1 + max(0, (cycle - 1 - start) // interval + 1)) * bus
            place = address - self.state.dram_base
            dram[place : place + moved] = data[position : position + moved]
            position += beats * bus
            free = start + (beats - 1) * interval + 1
        return free

    def _deadlock(self) -> str:
        """Say what every unit waits for."""
        waits = []
        for unit, own in self.units.items():
            if own.done < len(own.queue):
                index = own.queue[own.done]
                instruction = self.instructions[index]
                assert instruction is not None
                missing = [o.name for o in instruction.wait if not self.tokens[o, unit]]
                full = [o.name for o in instruction.post if not self.credits[unit, o]]
                why = [f"a token from {name}" for name in missing]
                why += [f"room for a token to {name}" for name in full]
                waits.append(f"{unit.name} instruction {index} for {' and '.join(why) or 'a bank'}")
        return (
            f"deadlock: {'; '.join(waits)} ({self.next_dispatch} of {len(self.words)} instructions "
            "dispatched); every wait needs a post before it, in program order"
        )

    def counters(self, last: int) -> dict[str, int]:
        """Every counter, for a run whose last cycle is ``last``."""
        values = dict.fromkeys((name for name, _ in COUNTERS), 0)
        values["cycles"] = last + 1
        values["instructions"] = sum(0 <= end <= last for end in self.ended)
        for unit, own in self.units.items():
            name = unit.name.lower()
            for index in own.queue[: own.done]:
                until = last if self.ended[index] < 0 else min(self.ended[index], last)
                busy = until - self.accepted[index]
                if unit in LATENCY:
                    iterations = self.ended[index] - LATENCY[unit] - self.accepted[index]
                    busy = min(iterations, last - self.accepted[index])
                values[f"{name}_busy"] += busy
                values[f"{name}_stall_token"] += self.waited_token[index]
                values[f"{name}_stall_port"] += self.waited_port[index]
            if self.stopped_at != NEVER:
                self._unfinished_stall(unit, values)
        beats = {"fetch": self.fetch_beats, "load": self.load_beats, "store": self.store_beats}
        values |= {f"{name}_beats": count for name, count in beats.items()}
        return values

    def _unfinished_stall(self, unit: Unit, values: dict[str, int]) -> None:
        """Count the wait of an instruction that the stop left in its queue."""
        _, could, tokens = self._accept_time(unit)
        end = self.stopped_at + 1
        if could < end:
            name = unit.name.lower()
            values[f"{name}_stall_token"] += min(tokens, end) - could
            values[f"{name}_stall_port"] += end - min(tokens, end)

    def _next_accept(self) -> tuple[int, int, int, Unit]:
        best = (NEVER, NEVER, NEVER, Unit.LOAD)
        for unit in PRIORITY:
            cycle, could, tokens = self._accept_time(unit)
            if cycle < best[0]:
                best = (cycle, could, tokens, unit)
        return best


def _bits(mask: int) -> list[int]:
    return _BITS[mask]


_BITS = [[bank for bank in range(8) if mask >> bank & 1] for mask in range(256)]


def _vector_reads(vector: Vector) -> list[tuple[str, int]]:
    reads = [("act_read_banks", vector.act_read_banks)]
    if vector.source is Memory.ACC:
        reads.append(("acc_banks", vector.acc_banks))
    return reads


def simulate(
    state: MachineState,
    program_address: int,
    program_count: int,
    window: tuple[int, int],
    timing: DramTiming | None = None,
    watchdog: int = 100_000,
) -> SimResult:
    """Run the program that lies in the DRAM of ``state``, which is changed in place.

    program_address, program_count: first byte address (a multiple of 64) and number of
    instructions.  The program may not write over itself.
    window: first and last byte address an access may touch.
    timing: of the DRAM; that of the configuration when None.
    watchdog: cycles without a completed instruction before a stop; 0: never.

    Raises SimulationError when the program can never end and no watchdog stops it, or the window is
    not in DRAM.
    """
    config = state.config
    first, limit = state.dram_base, state.dram_base + state.dram.size - 1
    if not first <= window[0] <= window[1] <= limit:
        raise SimulationError(
            f"window {window[0]:#x} to {window[1]:#x}; "
            f"required within DRAM, {first:#x} to {limit:#x}"
        )
    start = program_address - state.dram_base
    code = state.dram[start : start + INSTRUCTION_BYTES * program_count].tobytes()
    words = [
        code[INSTRUCTION_BYTES * i : INSTRUCTION_BYTES * (i + 1)].ljust(INSTRUCTION_BYTES, b"\0")
        for i in range(program_count)
    ]
    machine = _Machine(state, words, program_address, window, timing or config.dram, watchdog)
    last = machine.run()
    counters = machine.counters(last)
    if machine.stopped_at != NEVER:
        machine.ended = [end if end <= last else -1 for end in machine.ended]
    error_code, error_index = machine.error
    return SimResult(
        finished=machine.stopped_at == NEVER,
        error_code=int(error_code),
        error_index=error_index,
        counters=counters,
        dispatched=np.array(machine.dispatched, np.int64),
        accepted=np.array(machine.accepted, np.int64),
        ended=np.array(machine.ended, np.int64),
        waited_token=np.array(machine.waited_token, np.int64),
        waited_port=np.array(machine.waited_port, np.int64),
        state=state,
    )
