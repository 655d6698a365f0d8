"""One run: what happens to each instruction, in the cycles that docs/timing.md gives.

Everything that happens is an action at the memory port, an instruction dispatched, or one accepted.
Each depends only on what happened in earlier cycles, so they are done in order of their cycle; all
else is a formula.

A LOAD changes the data when it is accepted, GEMM and VECTOR when they end; STORE reads when it is
accepted and writes when it ends.  For programs without races that is what the hardware does.  A
program may not write over its own instructions.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming
from dovetail.isa.instructions import Gemm, Load, Store, Vector
from dovetail.isa.registers import ErrorCode
from dovetail.isa.state import MachineState

from .bursts import first_outside
from .compute import apply
from .counters import Beats, count
from .errors import SimulationError
from .memory import NEVER, MemoryPort, Source, Transfer
from .plans import Plan, make_plan
from .store import StoreWrite
from .units import Issue

__all__ = ["SimResult", "simulate"]

LAST_ADDRESS = (1 << 32) - 1
MOST_ITERATIONS = 1 << 28
WATCHDOG_RANK = len(Source) + 1
"""Of errors in one cycle the lowest rank counts: dispatch 0, each ``Source``, the watchdog."""


@dataclass(frozen=True, slots=True)
class SimResult:
    """What a run did.

    finished: the program ended by itself; else ``error_code`` and ``error_index`` say why.
    counters: by the names of ``dovetail.isa.registers.COUNTERS``.
    units: int64[instructions], the unit of each; -1 when it was never dispatched.
    fetched, dispatched, accepted, ended: int64[instructions], the cycle of each; -1 for never.
    ``fetched`` is that of the last beat. waited_token, waited_port: int64[instructions], cycles at
    the head of the queue, the unit free, for want of a token or a bank. state: DRAM and scratchpads
    after the run; the arrays given, changed in place.  After an error the scratchpads are not those
    of the hardware.
    """

    finished: bool
    error_code: int
    error_index: int
    counters: dict[str, int]
    units: NDArray[np.int64]
    fetched: NDArray[np.int64]
    dispatched: NDArray[np.int64]
    accepted: NDArray[np.int64]
    ended: NDArray[np.int64]
    waited_token: NDArray[np.int64]
    waited_port: NDArray[np.int64]
    state: MachineState


class _Machine:
    """The event loop; listens to the memory port."""

    def __init__(
        self,
        state: MachineState,
        program_address: int,
        program_count: int,
        window: tuple[int, int],
        timing: DramTiming,
        watchdog: int,
    ) -> None:
        self.state, self.config = state, state.config
        self.address, self.count = program_address, program_count
        self.window, self.timing, self.watchdog = window, timing, watchdog
        self.issue = Issue(self.config)
        self.port = MemoryPort(self.config, timing, self)
        self.port.fetch_outside = self._fetch_outside()
        self.port.fetch_offer = self._fetch_offer(0)
        self.fetched_at: list[int] = []
        self.next_plan: Plan | None = None
        self.dispatch_at = NEVER
        self.stopped_at = NEVER
        self.error = (0, ErrorCode.NONE, 0)
        # For the watchdog: known ends that it has not looked at, and when it fires if there are
        # none.
        self.ends: list[int] = []
        self.fires_at = watchdog or NEVER
        self.loads: list[Transfer] = []
        self.stores: list[Transfer] = []
        # What takes effect when it ends: a STORE's write, and GEMM and VECTOR instructions.
        self.unwritten: StoreWrite | None = None
        self.working: list[int] = []

    # FETCH and dispatch -----------------------------------------------------------------------

    def _fetch_outside(self) -> int:
        """First instruction outside the window."""
        base, limit = self.window
        if self.address < base:
            return 0
        return max(0, limit + 1 - self.address) // INSTRUCTION_BYTES

    def _fetch_offer(self, cycle: int) -> int:
        """From when the next instruction's burst is offered: not before ``cycle``."""
        index = self.port.fetch_index
        dispatched = self.issue.dispatched
        if index >= self.count:
            return NEVER
        before = index - self.config.fetch_ahead
        if before < 0:
            return cycle
        return max(cycle, dispatched[before] + 1) if before < len(dispatched) else NEVER

    def asked(self, cycle: int) -> int:
        return self._fetch_offer(cycle + 1)

    def fetched(self, index: int, cycle: int) -> None:
        self.fetched_at.append(cycle)
        if index == len(self.issue.plans):
            self._prepare()

    def _prepare(self) -> None:
        """Work out when the next instruction is dispatched, if it has been asked for."""
        issue = self.issue
        index = len(issue.plans)
        if index >= len(self.fetched_at):
            self.dispatch_at = NEVER
            return
        start = self.address + INSTRUCTION_BYTES * index - self.state.dram_base
        word = self.state.dram[start : start + INSTRUCTION_BYTES].tobytes()
        plan = self.next_plan = make_plan(word, self.config)
        cycle = self.fetched_at[index] + 1
        if index:
            cycle = max(cycle, issue.dispatched[-1] + 1)
        if plan is not None:
            cycle = max(cycle, issue.room(plan, self.config.queue_depth))
        self.dispatch_at = cycle

    def _dispatch(self, cycle: int) -> None:
        if self.next_plan is None:
            self._stop(cycle, 0, ErrorCode.ILLEGAL_INSTRUCTION, len(self.issue.plans))
            self.dispatch_at = NEVER
            return
        self.issue.dispatch(self.next_plan, cycle)
        self._prepare()
        if self.port.fetch_offer == NEVER:
            self.port.fetch_offer = self._fetch_offer(cycle + 1)

    # Accepting and ending ---------------------------------------------------------------------

    def _accept(self, unit: int, cycle: int) -> None:
        self._settle(cycle)
        index = self.issue.accept(unit, cycle)
        plan = self.issue.plans[index]
        instruction = plan.instruction
        if self.dispatch_at == NEVER:
            self._prepare()
        if isinstance(instruction, Store):
            self._begin_store(index, plan, instruction, cycle)
        elif isinstance(instruction, Load):
            self._begin_load(index, plan, instruction, cycle)
        else:
            self.working.append(index)
            if self.watchdog:
                heappush(self.ends, self.issue.ended[index])

    def _settle(self, cycle: int) -> None:
        """What ended before ``cycle`` takes effect.

        Raises SimulationError for an instruction that is too long to be simulated.
        """
        issue = self.issue
        if self.unwritten is not None and 0 <= issue.ended[self.unwritten.index] < cycle:
            self._write()
        over = [index for index in self.working if issue.ended[index] < cycle]
        for index in over:
            plan = issue.plans[index]
            assert isinstance(plan.instruction, Gemm | Vector)
            if plan.issues > MOST_ITERATIONS:
                raise SimulationError(
                    f"instruction {index} has {plan.issues} iterations; the simulator takes "
                    f"{MOST_ITERATIONS}; set a watchdog, or split it"
                )
            apply(self.state, plan.instruction)
            self.working.remove(index)

    def _begin_load(self, index: int, plan: Plan, load: Load, cycle: int) -> None:
        outside = first_outside(load, self.config, self.window)
        transfer = Transfer(index, plan.beats, cycle + 1, outside)
        self.loads.append(transfer)
        if transfer.beats:
            self.port.load = transfer
        else:
            self.loaded(transfer, cycle)
        if outside == NEVER:
            apply(self.state, load)

    def loaded(self, transfer: Transfer, cycle: int) -> None:
        self.port.load = None
        load = self.issue.plans[transfer.index].instruction
        assert isinstance(load, Load)
        end = cycle + 1
        if load.padded:
            end = max(end, self._last_visit(transfer, load))
        self._end(transfer.index, end)

    def _last_visit(self, transfer: Transfer, load: Load) -> int:
        """Cycle in which the last cell of a padded block is visited."""
        cells = load.count_z * load.rows * load.columns
        begin = self.issue.accepted[transfer.index] + 1
        if not transfer.beats:
            return begin + cells - 1
        word = self.config.word_bytes(load.memory) // self.config.bus_bytes
        writes = transfer.beat_cycles(self.timing.beat_interval_cycles)[word - 1 :: word] + 1
        # The cell number n (from 0) is visited in cycle number n of those without a data write.
        between = writes - begin - np.arange(len(writes))
        return begin + cells + int(np.count_nonzero(between < cells)) - 1

    def _begin_store(self, index: int, plan: Plan, store: Store, cycle: int) -> None:
        outside = first_outside(store, self.config, self.window)
        transfer = Transfer(index, plan.beats, cycle + 1, outside)
        self.stores.append(transfer)
        self.unwritten = StoreWrite(self.state, store, transfer)
        self.port.store = transfer
        for _ in range(self.config.store_slots):
            self.port.fill(transfer, 0)

    def stored(self, transfer: Transfer, cycle: int) -> None:
        self.port.store = None
        self._end(transfer.index, cycle)

    def _end(self, index: int, cycle: int) -> None:
        self.issue.end(index, cycle)
        if self.watchdog:
            heappush(self.ends, cycle)

    def _write(self) -> None:
        """What the last STORE stores reaches DRAM."""
        assert self.unwritten is not None
        self.unwritten.write(self.stopped_at, self.timing.beat_interval_cycles)
        self.unwritten = None

    # Errors and the end -----------------------------------------------------------------------

    def outside(self, source: Source, index: int, cycle: int) -> None:
        self._stop(cycle, source, ErrorCode.WINDOW, index)

    def _stop(self, cycle: int, rank: int, code: ErrorCode, index: int) -> None:
        if (cycle, rank) < (self.stopped_at, self.error[0]):
            self.stopped_at = cycle
            self.error = (rank, code, index)

    def _watch(self) -> None:
        """All up to ``fires_at`` is done: see when the watchdog fires next, or stop the run."""
        fires = self.fires_at
        while self.ends and self.ends[0] < self.fires_at:
            self.fires_at = max(self.fires_at, heappop(self.ends) + 1 + self.watchdog)
        if self.issue.known_ends == self.count and not self.ends:
            self.fires_at = NEVER
        elif self.fires_at == fires:
            self._stop(fires, WATCHDOG_RANK, ErrorCode.WATCHDOG, self.issue.oldest(fires))

    def run(self) -> int:
        """Run to the end; return the last cycle.

        Raises SimulationError when the program can never end.
        """
        issue, port = self.issue, self.port
        while True:
            accept_at, unit = issue.next()
            now = min(accept_at, self.dispatch_at)
            if port.run(min(now, self.fires_at, self.stopped_at)):
                continue
            if now > self.stopped_at:
                return self._drain()
            if now > self.fires_at:
                self._watch()
                continue
            if now == NEVER:
                break
            if self.dispatch_at == now:
                self._dispatch(now)
            if accept_at == now:
                self._accept(unit, now)
        if issue.known_ends != self.count:
            raise SimulationError(self._deadlock())
        last = max(issue.ended, default=-1) + 1
        self._settle(last)
        return last

    def _drain(self) -> int:
        """After a stop the memory answers the bursts taken; return the last cycle."""
        self.issue.stop(self.stopped_at)
        self.port.stopped = True
        while self.port.run(NEVER):
            pass
        if self.unwritten is not None:
            self._write()
        return max(self.stopped_at, self.port.last_answer) + 1

    def _deadlock(self) -> str:
        left = self.count - len(self.issue.plans)
        waits = self.issue.waits()
        if left:
            waits.append(f"{left} instructions wait behind a full queue")
        return (
            f"deadlock: {'; '.join(waits)}; required: for each token waited for, a post that does "
            "not itself wait for it; look at the tokens of these instructions, or set a watchdog"
        )

    def result(self, last: int) -> SimResult:
        """Everything about the run, whose last cycle was ``last``."""
        issue = self.issue
        if self.stopped_at != NEVER:
            issue.ended = [end if end <= last else -1 for end in issue.ended]

        def array(values: list[int], rest: int = -1) -> NDArray[np.int64]:
            whole = np.full(self.count, rest, np.int64)
            whole[: len(values)] = values
            return whole

        beats = Beats(
            len(self.fetched_at) * INSTRUCTION_BYTES // self.config.bus_bytes,
            sum(transfer.beats_moved for transfer in self.loads),
            sum(transfer.beats_moved for transfer in self.stores),
        )
        _, code, index = self.error
        return SimResult(
            finished=code is ErrorCode.NONE,
            error_code=int(code),
            error_index=index,
            counters=count(issue, last, beats),
            units=array([plan.unit for plan in issue.plans]),
            fetched=array(self.fetched_at),
            dispatched=array(issue.dispatched),
            accepted=array(issue.accepted),
            ended=array(issue.ended),
            waited_token=array(issue.waited_token, 0),
            waited_port=array(issue.waited_port, 0),
            state=self.state,
        )


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
    instructions. window: first and last byte address an access may touch; within DRAM, or empty.
    timing: of the DRAM; that of the configuration when None. watchdog: cycles without a completed
    instruction before a stop; 0: never.

    Raises SimulationError for a program address or window that cannot be, and when the program can
    never end and no watchdog stops it.
    """
    base, limit = window
    first, last = state.dram_base, state.dram_base + state.dram.size - 1
    if program_address % INSTRUCTION_BYTES or not 0 <= program_address <= LAST_ADDRESS:
        raise SimulationError(
            f"program address {program_address:#x}; required a multiple of {INSTRUCTION_BYTES} "
            "below 2**32"
        )
    if base <= limit and not first <= base <= limit <= last:
        raise SimulationError(
            f"window {base:#x} to {limit:#x}; required within DRAM, {first:#x} to {last:#x}"
        )
    machine = _Machine(
        state, program_address, program_count, window, timing or state.config.dram, watchdog
    )
    return machine.result(machine.run())
