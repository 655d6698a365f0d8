"""The accelerator and its DRAM stepped cycle by cycle: the rules of docs/timing.md, literally.

Slow and simple on purpose; nothing is shared with the simulator that is tested against it.  In a
cycle every rule sees the registers as they were at its start; what it changes goes to ``later`` and
shows in the next one. After a run that was stopped the scratchpads are not those of the hardware.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.isa import semantics
from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming
from dovetail.isa.encoding import decode
from dovetail.isa.errors import EncodingError
from dovetail.isa.footprint import scratchpad_reads
from dovetail.isa.instructions import Instruction, Load, Store
from dovetail.isa.latency import compute_latency, pipeline_stages
from dovetail.isa.legality import legality_problem
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.registers import COUNTERS, ErrorCode
from dovetail.isa.state import MachineState

from .reference_flights import ROLES, Flight, Tokens, banks, last_issue, needs_bank
from .reference_memory import Burst, ReferenceMemory, bursts_of, completing_beats

__all__ = ["Reference", "ReferenceResult"]

PRIORITY = (Unit.GEMM, Unit.VECTOR, Unit.STORE, Unit.LOAD)
UNITS = tuple(Unit)
"""To iterate over it is quicker, which is done every cycle."""
CYCLE_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class ReferenceResult:
    """As ``dovetail.vta_sim.machine.SimResult``."""

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


class Reference:
    """One run, stepped."""

    def __init__(
        self,
        state: MachineState,
        program_address: int,
        program_count: int,
        window: tuple[int, int],
        timing: DramTiming | None = None,
        watchdog: int = 100_000,
    ) -> None:
        self.state, self.config = state, state.config
        self.address, self.count = program_address, program_count
        self.window, self.watchdog = window, watchdog
        self.memory = ReferenceMemory(timing or state.config.dram)
        self.later: list[Callable[[], object]] = []
        self.requested = self.next_dispatch = 0
        self.waiting: deque[bytes] = deque()
        self.decoded: dict[bytes, Instruction | None] = {}
        """The instruction of each word that was first in line; None for an illegal one."""
        self.queues: dict[Unit, deque[tuple[int, Instruction]]] = {u: deque() for u in Unit}
        self.flights: dict[Unit, deque[Flight]] = {u: deque() for u in Unit}
        self.tokens = Tokens(self.config.token_max, self.later)
        self.patience = 0
        self.stages = pipeline_stages(self.config)
        self.head_age = 0
        self.arriving: deque[tuple[int, bytes]] = deque()
        self.completes: set[int] = set()
        """Cycles in which LOAD has a whole word."""
        self.arrivals: set[int] = set()
        """Cycles in which LOAD has a beat of a memory that is written beat by beat."""
        self.ages = dict.fromkeys(("fetch", "load", "store"), 0)
        """Cycles for which each has offered its next burst."""
        self.decided: deque[set[Unit]] = deque([set()] * self.stages.accept)
        """Units that could start, in the cycles before this one."""
        self.enabled = True
        self.kept = False
        self.error = (ErrorCode.NONE, 0)
        self.counters = dict.fromkeys((name for name, _ in COUNTERS), 0)
        self.times = {name: [-1] * program_count for name in ("dispatched", "accepted", "ended")}
        self.waited = {name: [0] * program_count for name in ("token", "port")}

    def run(self) -> ReferenceResult:
        """Step to the end.  Raises RuntimeError when there is none within a million cycles."""
        for now in range(CYCLE_LIMIT):
            last = self.step(now)
            for change in self.later:
                change()
            self.later.clear()
            if last:
                break
        else:
            raise RuntimeError("the program does not end")
        code, index = self.error
        arrays = [np.array(a, np.int64) for a in (*self.times.values(), *self.waited.values())]
        finished = code is ErrorCode.NONE
        return ReferenceResult(finished, int(code), index, self.counters, *arrays, self.state)

    def step(self, now: int) -> bool:
        """One cycle; whether it is the last."""
        idle = (
            self.next_dispatch == self.count
            and not any(self.flights.values())
            and not any(self.queues.values())
        )
        last = idle if self.enabled else not self.memory.unanswered
        self.counters["cycles"] += 1
        errors: list[tuple[ErrorCode, int]] = []
        self.data_beats(now)
        if self.arriving and self.arriving[0][0] == now:
            word = self.arriving.popleft()[1]
            self.later.append(lambda: self.waiting.append(word))
        done = [unit for unit in UNITS if self.flights[unit] and self.units_step(unit, now)]
        self.counters["instructions"] += len(done)
        if self.enabled:
            errors += self.dispatch(now)
            self.accept_all(now)
        errors += self.take_bursts(now)
        self.memory.accept(now, self.later)
        if self.watchdog and self.patience == self.watchdog:
            errors.append((ErrorCode.WATCHDOG, self.oldest()))
        self.set(patience=0 if done else self.patience + 1)
        if self.enabled and errors:
            self.set(enabled=False, error=errors[0])
            return False
        return last

    def set(self, **values: object) -> None:
        """Give registers of the machine new values in the next cycle."""
        for name, value in values.items():
            self.later.append(lambda name=name, value=value: setattr(self, name, value))

    def change(self, flight: Flight, **values: object) -> None:
        for name, value in values.items():
            self.later.append(lambda name=name, value=value: setattr(flight, name, value))

    # FETCH and dispatch -----------------------------------------------------------------------

    def dispatch(self, now: int) -> list[tuple[ErrorCode, int]]:
        if not self.waiting:
            return []
        if self.head_age < self.stages.dispatch:
            self.set(head_age=self.head_age + 1)
            return []
        index = self.next_dispatch
        instruction = self.first_in_line()
        if instruction is None:
            return [(ErrorCode.ILLEGAL_INSTRUCTION, index)]
        queue = self.queues[instruction.unit]
        if len(queue) < self.config.queue_depth:
            self.times["dispatched"][index] = now
            self.later.append(self.waiting.popleft)
            self.later.append(lambda: queue.append((index, instruction)))
            self.set(next_dispatch=index + 1, head_age=0)
        return []

    def first_in_line(self) -> Instruction | None:
        """None for an illegal one."""
        word = self.waiting[0]
        if word not in self.decoded:
            try:
                found = decode(word)
            except EncodingError:
                self.decoded[word] = None
            else:
                self.decoded[word] = None if legality_problem(found, self.config) else found
        return self.decoded[word]

    # Accepting --------------------------------------------------------------------------------

    def accept_all(self, now: int) -> None:
        claimed = dict.fromkeys(ROLES, 0)
        waiting = [u for u in PRIORITY if self.queues[u] and self.is_free(u, now)]
        could = {u for u in waiting if self.tokens.allow(self.queues[u][0][1])}
        ready = {u for u in could if not needs_bank(self.queues[u][0][1], claimed, self.flights)}
        self.decided.append(ready)
        starting, accepted = self.decided.popleft(), False
        for unit in waiting:
            index, instruction = self.queues[unit][0]
            if unit not in could:
                kind = "token"
            elif unit not in starting or needs_bank(instruction, claimed, self.flights):
                kind = "port"
            else:
                for role in ROLES:
                    claimed[role] |= banks(instruction, role)
                self.accept(unit, index, instruction, now)
                accepted = True
                continue
            self.counters[f"{unit.name.lower()}_stall_{kind}"] += 1
            self.waited[kind][index] += 1
        if accepted:
            # What has been decided does not count any more.
            self.decided = deque([set()] * self.stages.accept)

    def is_free(self, unit: Unit, now: int) -> bool:
        flights = self.flights[unit]
        if unit is Unit.LOAD and flights and self.config.two_loads:
            last, following = flights[-1], self.queues[unit][0][1]
            # Data of the one before the last, if there is one in flight still, has all come.
            behind = any(flight.beats_left for flight in list(flights)[:-1])
            waiting = any(burst.start < 0 for burst in last.bursts)
            steps = last.instruction.step or following.step
            return not (waiting or last.cells_left or behind or steps)
        if unit in (Unit.LOAD, Unit.STORE):
            return not flights
        return not flights or now >= last_issue(flights[-1], self.config)

    def accept(self, unit: Unit, index: int, instruction: Instruction, now: int) -> None:
        self.times["accepted"][index] = now
        flight = Flight(index, instruction, now)
        flight.offer_from = now + 1 + self.stages.setup + self.stages.cut
        if isinstance(instruction, Load | Store):
            flight.bursts = bursts_of(instruction, self.config)
        if isinstance(instruction, Load):
            flight.completing = completing_beats(instruction, self.config)
            # Of TAB, with nibbles, a beat completes several words.
            flight.words_left = len(flight.completing)
            cells = instruction.count_z * instruction.rows * instruction.columns
            flight.cells_left = cells if cells != instruction.words else 0
            flight.beats_left = sum(burst.beats for burst in flight.bursts)
        elif isinstance(instruction, Store):
            (touch,) = scratchpad_reads(instruction, self.config)
            flight.read_addresses = [int(address) for address in touch.addresses]
        self.later.append(self.queues[unit].popleft)
        self.later.append(lambda: self.flights[unit].append(flight))
        self.tokens.start(instruction)

    def oldest(self) -> int:
        for unit in Unit:
            if self.flights[unit]:
                return self.flights[unit][0].index
            if self.queues[unit]:
                return self.queues[unit][0][0]
        return self.next_dispatch

    # Units at work ----------------------------------------------------------------------------

    def units_step(self, unit: Unit, now: int) -> bool:
        """True if the oldest of the unit's instructions in flight ends in this cycle."""
        flight = self.flights[unit][0]
        if unit is Unit.LOAD:
            busy, ends = True, self.load_step(flight, now)
        elif unit is Unit.STORE:
            busy, ends = True, self.store_step(flight, now)
        else:
            latency = compute_latency(self.config)[unit]
            busy = now <= last_issue(self.flights[unit][-1], self.config)
            ends = now == last_issue(flight, self.config) + latency
        self.counters[f"{unit.name.lower()}_busy"] += busy
        if ends:
            self.times["ended"][flight.index] = now
            if unit is not Unit.STORE:
                semantics.execute(self.state, flight.instruction)
            self.later.append(self.flights[unit].popleft)
            self.tokens.end(flight.instruction)
        return ends

    def load_step(self, flight: Flight, now: int) -> bool:
        """A word or a beat is written, or else a cell visited."""
        if flight.finishing:
            self.change(flight, finishing=flight.finishing - 1)
            return flight.finishing == 1
        if now < flight.accepted + 1 + self.stages.setup:
            return False
        words, cells = flight.words_left, flight.cells_left
        if now in self.completes:
            words -= 1
        if now not in self.completes and now not in self.arrivals and cells:
            cells -= 1
        self.change(flight, words_left=words, cells_left=cells)
        if not words and not cells and self.stages.write:
            self.change(flight, finishing=self.stages.write)
            return False
        return not words and not cells

    def store_step(self, flight: Flight, now: int) -> bool:
        """Fill a slot; see whether the last response is there."""
        if flight.filled_bursts < len(flight.bursts):
            begins = not flight.filled_words and flight.used_slots < self.config.store_slots
            begins = begins and now >= flight.offer_from
            if begins or flight.filled_words:
                word = self.state.words(Memory.ACT)[flight.read_addresses[len(flight.data)]]
                flight.data.append(word.copy())
                filled = flight.filled_words + 1
                burst = flight.bursts[flight.filled_bursts]
                if filled == burst.beats * self.config.bus_bytes // self.config.block:
                    self.change(flight, filled_bursts=flight.filled_bursts + 1)
                    flight.offered_from.append(now + 2 + self.stages.read)
                    self.change(flight, offer_from=now + 1 + self.stages.cut)
                    filled = 0
                self.change(flight, filled_words=filled)
            if begins:
                self.later.append(lambda: setattr(flight, "used_slots", flight.used_slots + 1))
        if not self.memory.response(now):
            return False
        self.change(flight, responses=flight.responses + 1)
        self.later.append(lambda: self.memory.answer())
        return flight.responses + 1 == len(flight.bursts)

    # Memory -----------------------------------------------------------------------------------

    def take_bursts(self, now: int) -> list[tuple[ErrorCode, int]]:
        """Fill the address registers; what leaves the window is an error instead."""
        if not self.enabled:
            return []
        errors = []
        loads, stores = self.flights[Unit.LOAD], self.flights[Unit.STORE]
        ahead = self.requested - self.next_dispatch
        offers = {
            "fetch": self.requested < self.count and ahead < self.config.fetch_ahead,
            "load": bool(loads)
            and loads[-1].taken < len(loads[-1].bursts)
            and now >= loads[-1].offer_from,
            "store": bool(stores)
            and stores[0].taken < len(stores[0].offered_from)
            and now >= stores[0].offered_from[stores[0].taken],
        }
        checked = {name for name in offers if offers[name] and self.ages[name] >= self.stages.check}
        ages = {name: self.ages[name] + 1 if offers[name] else 0 for name in offers}
        if self.memory.read is None and "fetch" in checked:
            address = self.address + INSTRUCTION_BYTES * self.requested & 0xFFFFFFFF
            burst = Burst("fetch", address, INSTRUCTION_BYTES // self.config.bus_bytes)
            ages["fetch"] = 0
            if self.take("read", burst):
                self.set(requested=self.requested + 1)
            else:
                errors.append((ErrorCode.WINDOW, self.requested))
        elif self.memory.read is None and "load" in checked:
            ages["load"] = 0
            self.change(loads[-1], offer_from=now + 1 + self.stages.cut)
            errors += self.take_next("read", loads[-1])
        if self.memory.write is None and "store" in checked:
            ages["store"] = 0
            errors += self.take_next("write", stores[0])
        self.set(ages=ages)
        return errors

    def take_next(self, channel: str, flight: Flight) -> list[tuple[ErrorCode, int]]:
        if not self.take(channel, flight.bursts[flight.taken]):
            return [(ErrorCode.WINDOW, flight.index)]
        self.change(flight, taken=flight.taken + 1)
        return []

    def take(self, channel: str, burst: Burst) -> bool:
        final = burst.address + burst.beats * self.config.bus_bytes - 1
        if burst.address < self.window[0] or final > self.window[1]:
            return False
        self.later.append(lambda: self.memory.take(channel, burst))
        return True

    def data_beats(self, now: int) -> None:
        """The memory moves a beat: of an instruction, of LOAD, or of STORE."""
        bus = self.config.bus_bytes
        on_offer = bool(self.memory.unsent)
        writes = self.enabled or self.kept
        burst = self.memory.beat(now)
        self.set(kept=writes and on_offer and (burst is None or burst.owner != "store"))
        if burst is None:
            return
        self.counters[f"{burst.owner}_beats"] += 1
        place = burst.address + burst.moved * bus - self.state.dram_base
        ends = burst.moved + 1 == burst.beats
        self.later.append(lambda: self.memory.move(burst))
        if burst.owner == "fetch" and ends:
            start = burst.address - self.state.dram_base
            data = self.state.dram[start : start + INSTRUCTION_BYTES].tobytes()
            self.arriving.append((now + self.stages.receive, data))
        elif burst.owner == "load":
            flight = next(each for each in self.flights[Unit.LOAD] if each.beats_left)
            assert isinstance(flight.instruction, Load)
            beats = flight.beats + 1
            self.change(flight, beats=beats, beats_left=flight.beats_left - 1)
            if beats in flight.completing:
                self.completes.add(now + 1 + self.stages.receive)
            if flight.instruction.memory in self.config.by_beats:
                self.arrivals.add(now + 1 + self.stages.receive)
        elif burst.owner == "store":
            flight = self.flights[Unit.STORE][0]
            data = np.concatenate(flight.data)[flight.beats * bus :][:bus]
            if writes:
                self.state.dram[place : place + bus] = data
            self.change(flight, beats=flight.beats + 1)
            if ends:
                self.later.append(lambda: setattr(flight, "used_slots", flight.used_slots - 1))
