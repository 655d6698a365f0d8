"""The time of a run, from its program alone."""

from functools import cache

import numpy as np

from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming, HardwareConfig
from dovetail.isa.latency import compute_latency, pipeline_stages
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.priorities import ACCEPTING
from dovetail.isa.sdram import COLUMN_BYTES, SdramTiming
from dovetail.isa.table import InstructionTable

from .errors import SimulationError
from .event_loop import Machine, Outcome, run_machine
from .issue import FLIGHTS, RING, Issue
from .native.find import find_library
from .native.library import Library
from .plans import MOST_BURSTS, UNITS, make_plans
from .port import Port, Transfer
from .sdram import CLOSED, Sdram

__all__ = ["run_clock"]

LATER_ENDS = 2 * UNITS * FLIGHTS
"""Ends known before their cycle, at most."""


@cache
def _library() -> Library:
    return find_library([run_machine])


def run_clock(
    table: InstructionTable,
    config: HardwareConfig,
    timing: DramTiming,
    program: tuple[int, int],
    window: tuple[int, int],
    watchdog: int,
) -> tuple[Machine, Outcome]:
    """Run the program of which ``table`` has all that can be fetched; no data is touched.

    program: first byte address, and number of instructions. The rest is as for
    ``machine.simulate``. The arrays of the machine are those of ``machine.SimResult``.
    Raises SimulationError when an instruction is too long, and when the program can never end.
    """
    machine = _make(table, config, timing, program, window, watchdog)
    outcome = Outcome(_library().call(run_machine, machine))
    if outcome is Outcome.TOO_LONG:
        index = machine.refused
        raise SimulationError(
            f"instruction {index} has up to {machine.issue.plans.bursts[index]} bursts; the "
            f"simulator takes {MOST_BURSTS}; split it"
        )
    if outcome is Outcome.DEADLOCK:
        raise SimulationError(_deadlock(machine))
    if outcome is Outcome.STOPPED:
        # What would have ended after that did not.
        issue = machine.issue
        issue.ended[issue.ended > machine.last] = -1
    return machine, outcome


def _make(
    table: InstructionTable,
    config: HardwareConfig,
    timing: DramTiming,
    program: tuple[int, int],
    window: tuple[int, int],
    watchdog: int,
) -> Machine:
    plans = make_plans(table, config)
    latency, stages = compute_latency(config), pipeline_stages(config)
    assert max(latency.values()) + 2 <= FLIGHTS
    known, pairs = len(table.units), UNITS * UNITS

    def cycles(count: int, value: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.full(count, value, np.int64)

    issue = Issue(
        plans=plans,
        order=np.array(ACCEPTING, np.int64),
        token_max=config.token_max,
        accept_stage=stages.accept,
        latency=np.array([latency.get(unit, 0) for unit in Unit], np.int64),
        dispatched=cycles(known, -1),
        accepted=cycles(known, -1),
        ended=cycles(known, -1),
        waited_token=cycles(known),
        waited_port=cycles(known),
        queued=cycles(UNITS),
        accepts=cycles(UNITS),
        free_at=cycles(UNITS),
        idle_at=cycles(UNITS),
        next_at=cycles(UNITS),
        could=cycles(UNITS),
        ready=cycles(UNITS),
        stale=(1 << UNITS) - 1,
        tokens=cycles(pairs * RING),
        tokens_first=cycles(pairs),
        tokens_last=cycles(pairs),
        credits=cycles(pairs * RING),
        credits_first=cycles(pairs),
        credits_last=cycles(pairs, config.token_max),
        flights=cycles(UNITS),
        flight_end=cycles(UNITS * FLIGHTS),
        flight_held=cycles(UNITS * FLIGHTS),
        flight_writes=cycles(UNITS * FLIGHTS),
    )

    def transfer(unit: Unit) -> Transfer:
        mine = plans.bursts[table.units == int(unit)]
        bursts = min(int(mine.max(initial=0)), MOST_BURSTS)
        names = ("beats", "addresses", "starts", "ready", "takes")
        return Transfer(**{name: np.empty(bursts, np.int64) for name in names})

    base, limit = window
    address, count = program
    sdram, step = timing.sdram, config.bus_bytes // COLUMN_BYTES
    outside = max(0, limit + 1 - address) // INSTRUCTION_BYTES if address >= base else 0
    port = Port(
        latency=timing.latency_cycles,
        interval=step if sdram else timing.beat_interval_cycles,
        queue_bursts=timing.queue_bursts,
        turnaround=timing.turnaround_cycles,
        # The response comes in the cycle after the last column of the last beat.
        response=step if sdram else timing.response_cycles,
        sdram=_make_sdram(sdram, step),
        fetch_address=address,
        fetch_beats=INSTRUCTION_BYTES // config.bus_bytes,
        beats_per_word=config.word_bytes(Memory.ACT) // config.bus_bytes,
        load=transfer(Unit.LOAD),
        store=transfer(Unit.STORE),
        fetch_outside=outside,
        check=stages.check,
        cut=stages.cut,
        read_stage=stages.read,
        last_answer=-1,
        ends=cycles(timing.queue_bursts, -1),
        last_accept=-1,
        last_end=-1,
        last_writes=-1,
    )
    return Machine(
        issue=issue,
        port=port,
        count=count,
        fetch_ahead=config.fetch_ahead,
        queue_depth=config.queue_depth,
        burst_bytes=config.burst_bytes,
        bus_bytes=config.bus_bytes,
        store_slots=config.store_slots,
        dispatch_stage=stages.dispatch,
        setup=stages.setup,
        receive=stages.receive,
        write_stage=stages.write,
        base=base,
        limit=limit,
        watchdog=watchdog,
        arrived=-1,
        fetched_at=cycles(known, -1),
        later_ends=cycles(LATER_ENDS),
    )


def _make_sdram(timing: SdramTiming | None, step: int) -> Sdram:
    """``step``: columns of a beat."""
    if timing is None:
        return Sdram(rows=np.empty(0, np.int64), closes=np.empty(0, np.int64))
    chip = timing.chip
    return Sdram(
        present=1,
        rcd=timing.rcd,
        rp=timing.rp,
        ras=timing.ras,
        rfc=timing.rfc,
        wr=timing.wr,
        cas=timing.cas,
        refresh=timing.refresh,
        row_bytes=chip.row_bytes,
        banks=chip.banks,
        step=step,
        lag=timing.read_latency,
        rows=np.full(chip.banks, CLOSED, np.int64),
        closes=np.zeros(chip.banks, np.int64),
        last=-1,
        last_writes=-1,
    )


def _deadlock(machine: Machine) -> str:
    waits = _waits(machine.issue)
    left = machine.count - machine.issue.count
    if left:
        waits.append(f"{left} instructions wait behind a full queue")
    return (
        f"deadlock: {'; '.join(waits)}; required: for each token waited for, a post that does "
        "not itself wait for it; look at the tokens of these instructions, or set a watchdog"
    )


def _waits(issue: Issue) -> list[str]:
    """Cause of waiting of each queue's head, if it waits for ever."""
    lines, plans = [], issue.plans
    for unit in Unit:
        if issue.accepts[unit] == issue.queued[unit]:
            continue
        index = plans.order[plans.first[unit] + issue.accepts[unit]]
        why = [
            f"a token from {other.name}"
            for other in Unit
            if plans.waits[index] >> other & 1
            and issue.tokens_first[other * UNITS + unit] == issue.tokens_last[other * UNITS + unit]
        ]
        why += [
            f"{other.name} to take a token (it has as many as it can have)"
            for other in Unit
            if plans.posts[index] >> other & 1
            and issue.credits_first[unit * UNITS + other]
            == issue.credits_last[unit * UNITS + other]
        ]
        why = why or ["a memory bank"]
        lines.append(f"{unit.name} instruction {index} waits for {' and '.join(why)}")
    return lines
