"""Running one case on every backend, and what differs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.isa import semantics
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState
from dovetail.vta_hw.simulate import RtlJob, RtlResult, run_programs
from dovetail.vta_sim.machine import SimResult, simulate

from .generate import Case

__all__ = ["Difference", "compare"]

WATCHDOG = 50_000


@dataclass(frozen=True, slots=True)
class Difference:
    """How the backends differ on one case; all zero and empty when they agree."""

    bytes_wrong: int
    cycles_wrong: int
    counters_wrong: int
    first: str

    def __bool__(self) -> bool:
        return bool(self.bytes_wrong or self.cycles_wrong or self.counters_wrong)


def compare(cases: Sequence[Case]) -> list[Difference]:
    """Semantics, simulator and RTL on every case (of one configuration)."""
    jobs = [
        RtlJob(
            case.initial(),
            case.program_address,
            len(case.instructions),
            case.window,
            case.timing,
            WATCHDOG,
            dump=True,
            cycle_limit=1 << 22,
        )
        for case in cases
    ]
    results = run_programs(cases[0].config, jobs)
    return [_compare(case, rtl) for case, rtl in zip(cases, results, strict=True)]


def _compare(case: Case, rtl: RtlResult) -> Difference:
    expected = case.initial()
    for instruction in case.instructions:
        semantics.execute(expected, instruction)
    sim = simulate(
        case.initial(),
        case.program_address,
        len(case.instructions),
        case.window,
        case.timing,
        WATCHDOG,
    )
    notes: list[str] = []
    wrong = _bytes("simulator", sim.state, expected, notes)
    wrong += _bytes("rtl", rtl.state, expected, notes)
    cycles = _cycles(sim, rtl, notes)
    counters = [name for name, value in sim.counters.items() if value != rtl.counters[name]]
    for name in counters:
        notes.append(f"{name}: simulator {sim.counters[name]}, rtl {rtl.counters[name]}")
    return Difference(wrong, cycles, len(counters), notes[0] if notes else "")


def _bytes(who: str, state: MachineState, expected: MachineState, notes: list[str]) -> int:
    """Bytes in which ``state`` is not what it must be."""
    wrong = 0
    for name, got, want in (
        ("dram", state.dram, expected.dram),
        *((m.value, state.words(m), expected.words(m)) for m in Memory),
    ):
        places = np.argwhere(got != want)
        if len(places):
            at = tuple(int(i) for i in places[0])
            notes.append(f"{who}: {name}[{at}] = {got[at]}, semantics {want[at]}")
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
