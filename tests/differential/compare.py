"""Running one case on every backend, and what differs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.isa import semantics
from dovetail.isa.memories import Memory
from dovetail.isa.registers import ErrorCode
from dovetail.isa.state import MachineState
from dovetail.vta_hw.simulate import RtlJob, RtlResult, run_programs
from dovetail.vta_sim.machine import SimResult, simulate

from .generate import Case

__all__ = ["BACKENDS", "Difference", "compare"]

BACKENDS = ("semantics", "sim", "rtl")
CYCLE_LIMIT = 1 << 24


@dataclass(frozen=True, slots=True)
class Difference:
    """How the backends differ on one case; all zero and empty when they agree.

    error_code: how the run ended.
    """

    bytes_wrong: int
    cycles_wrong: int
    counters_wrong: int
    first: str
    error_code: int = 0

    def __bool__(self) -> bool:
        return bool(self.bytes_wrong or self.cycles_wrong or self.counters_wrong)


def compare(
    cases: Sequence[Case],
    backends: Sequence[str] = BACKENDS,
    watch: Callable[[Case, SimResult], None] = lambda case, run: None,
) -> list[Difference]:
    """Run every case (of one configuration) on ``backends``, names of ``BACKENDS``.

    ``watch`` is told each run of the simulator.

    A case that the machine stops has no meaning in the semantics: what the simulator and the RTL
    leave in DRAM is compared, and when and why they stop.
    """
    rtls: Sequence[RtlResult | None] = [None] * len(cases)
    if "rtl" in backends:
        rtls = _run_rtl(cases)
    found = []
    for case, rtl in zip(cases, rtls, strict=True):
        sim = _simulate(case) if "sim" in backends else None
        found.append(_compare(case, sim, rtl, backends))
        if sim is not None:
            watch(case, sim)
    return found


def _run_rtl(cases: Sequence[Case]) -> list[RtlResult]:
    """Sound cases in one batch; each that may be stopped by itself, since units of a stopped
    machine go on, and must not write into the memories of the case after it.
    """
    sound = [case for case in cases if case.outcomes == {ErrorCode.NONE}]
    batch = iter(run_programs(cases[0].config, [_job(case) for case in sound]) if sound else [])
    return [
        next(batch)
        if case.outcomes == {ErrorCode.NONE}
        else run_programs(case.config, [_job(case)])[0]
        for case in cases
    ]


def _job(case: Case) -> RtlJob:
    return RtlJob(
        case.initial(),
        case.program_address,
        len(case.instructions),
        case.window,
        case.timing,
        case.watchdog,
        dump=True,
        cycle_limit=CYCLE_LIMIT,
    )


def _simulate(case: Case) -> SimResult:
    return simulate(
        case.initial(),
        case.program_address,
        len(case.instructions),
        case.window,
        case.timing,
        case.watchdog,
    )


def _compare(
    case: Case, sim: SimResult | None, rtl: RtlResult | None, backends: Sequence[str]
) -> Difference:
    notes: list[str] = []
    runs = {"simulator": sim, "rtl": rtl}
    wrong = cycles = counters = 0
    code = 0
    for name, run in runs.items():
        if run is None:
            continue
        code = run.error_code
        if ErrorCode(code) not in case.outcomes or run.finished == bool(code):
            allowed = " or ".join(sorted(outcome.name for outcome in case.outcomes))
            ended = ErrorCode(code).name if code or run.finished else "no end"
            notes.append(f"{name}: {ended} at instruction {run.error_index}; required {allowed}")
            cycles += 1
    whole = all(run is None or run.finished for run in runs.values())
    if "semantics" in backends and whole:
        expected = case.initial()
        for instruction in case.instructions:
            semantics.execute(expected, instruction)
        for name, run in runs.items():
            if run is not None:
                wrong += _bytes(name, run.state, "semantics", expected, notes, scratchpads=True)
    elif sim is not None and rtl is not None:
        wrong += _bytes("rtl", rtl.state, "simulator", sim.state, notes, scratchpads=whole)
    if sim is not None and rtl is not None:
        cycles += _cycles(sim, rtl, notes)
        for name, value in sim.counters.items():
            if value != rtl.counters[name]:
                notes.append(f"{name}: simulator {value}, rtl {rtl.counters[name]}")
                counters += 1
    return Difference(wrong, cycles, counters, notes[0] if notes else "", code)


def _bytes(
    who: str,
    state: MachineState,
    reference: str,
    expected: MachineState,
    notes: list[str],
    *,
    scratchpads: bool,
) -> int:
    """Bytes in which ``state`` is not what it must be."""
    wrong = 0
    memories = tuple(Memory) if scratchpads else ()
    for name, got, want in (
        ("dram", state.dram, expected.dram),
        *((m.value, state.words(m), expected.words(m)) for m in memories),
    ):
        places = np.argwhere(got != want)
        if len(places):
            at = tuple(int(i) for i in places[0])
            notes.append(f"{who}: {name}{list(at)} = {got[at]}, {reference} {want[at]}")
        wrong += len(places)
    return wrong


def _cycles(sim: SimResult, rtl: RtlResult, notes: list[str]) -> int:
    """Dispatches, accepts and ends that are not in the same cycle."""
    wrong = 0
    for name in ("finished", "error_code", "error_index"):
        ours, theirs = getattr(sim, name), getattr(rtl, name)
        if ours != theirs:
            notes.append(f"{name}: simulator {ours}, rtl {theirs}")
            wrong += 1
    for name in ("dispatched", "accepted", "ended"):
        ours, theirs = getattr(sim, name), getattr(rtl, name)
        different = np.flatnonzero(ours != theirs)
        if len(different):
            at = int(different[0])
            notes.append(f"instruction {at} {name}: simulator {ours[at]}, rtl {theirs[at]}")
        wrong += len(different)
    return wrong
