"""One run: its time first, which depends on no data, then its data in the order of that time.

A LOAD changes the data when it is accepted, GEMM and VECTOR when they end; STORE reads when it is
accepted and writes when it ends.  For programs without races that is what the hardware does.  A
program may not write over its own instructions.
"""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Unit
from dovetail.isa.registers import ErrorCode
from dovetail.isa.state import MachineState
from dovetail.isa.table import InstructionTable, decode_table

from .clock import run_clock
from .counters import count
from .errors import SimulationError
from .event_loop import Machine, Outcome
from .last_store import finish_store
from .replay import replay

__all__ = ["SimResult", "simulate"]

LAST_ADDRESS = (1 << 32) - 1
MOST_ITERATIONS = 1 << 28


@frozen
class SimResult:
    """Result of a run.

    finished: the program ended normally; else ``error_code`` and ``error_index`` say why.
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


def simulate(
    state: MachineState,
    program_address: int,
    program_count: int,
    window: tuple[int, int],
    timing: DramTiming | None = None,
    watchdog: int = 100_000,
) -> SimResult:
    """Run the program that is in the DRAM of ``state``, which is changed in place.

    program_address, program_count: first byte address (a multiple of 64) and number of
    instructions. window: first and last byte address an access may touch; within DRAM, or empty.
    timing: of the DRAM; that of the configuration when None. watchdog: cycles without a completed
    instruction before a stop; 0: never.

    Raises SimulationError for a program address or window that cannot be, for an instruction that
    is too long to be simulated, and when the program can never end and no watchdog stops it.
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
    words = _fetchable(state, program_address, program_count, window)
    table = decode_table(words, state.config)
    timing = timing or state.config.dram
    program = (program_address, program_count)
    machine, outcome = run_clock(table, state.config, timing, program, window, watchdog)
    _compute(state, table, machine, outcome)
    return _result(state, machine, program_count)


def _fetchable(
    state: MachineState, address: int, count: int, window: tuple[int, int]
) -> NDArray[np.uint8]:
    """The instructions that are in the window, uint8[n, 64]."""
    base, limit = window
    inside = max(0, limit + 1 - address) // INSTRUCTION_BYTES if address >= base else 0
    known = min(count, inside)
    start = address - state.dram_base
    return state.dram[start : start + known * INSTRUCTION_BYTES].reshape(-1, INSTRUCTION_BYTES)


def _compute(
    state: MachineState, table: InstructionTable, machine: Machine, outcome: Outcome
) -> None:
    """Effects of the instructions, in the order in which they happen."""
    issue = machine.issue
    over, number = issue.ended >= 0, np.arange(len(table.units))
    long = over & (issue.plans.issues > MOST_ITERATIONS)
    if long.any():
        index = int(long.argmax())
        raise SimulationError(
            f"instruction {index} has {issue.plans.issues[index]} iterations; the simulator takes "
            f"{MOST_ITERATIONS}; set a watchdog, or split it"
        )
    loads = number[over & (table.units == int(Unit.LOAD))]
    stores = number[(issue.accepted >= 0) & (table.units == int(Unit.STORE))]
    others = number[over & (issue.plans.issues > 0)]
    # After a stop, the last STORE may have written some of its beats only.
    written = stores[:-1] if outcome is Outcome.STOPPED else stores
    early = np.concatenate([loads, stores])
    late = np.concatenate([others, written])
    steps = np.concatenate([2 * loads, 2 * stores, 2 * others, 2 * written + 1])
    # What happens at the end of a cycle comes after what happens when one is accepted in it.
    when = np.concatenate([2 * issue.accepted[early], 2 * issue.ended[late] + 1])
    stored = replay(state, table, steps[np.argsort(when, kind="stable")])
    if len(written) < len(stores):
        finish_store(state, machine, stored)


def _result(state: MachineState, machine: Machine, program_count: int) -> SimResult:
    def whole(values: NDArray[np.int64], rest: int = -1) -> NDArray[np.int64]:
        return np.append(values, np.full(program_count - len(values), rest, np.int64))

    issue, code = machine.issue, ErrorCode(machine.code)
    return SimResult(
        finished=code is ErrorCode.NONE,
        error_code=int(code),
        error_index=machine.error_index,
        counters=count(machine),
        units=whole(np.where(issue.dispatched >= 0, issue.plans.units, -1)),
        fetched=whole(machine.fetched_at),
        dispatched=whole(issue.dispatched),
        accepted=whole(issue.accepted),
        ended=whole(issue.ended),
        waited_token=whole(issue.waited_token, 0),
        waited_port=whole(issue.waited_port, 0),
        state=state,
    )
