"""Coverage by random programs: values of fields, units at work together, hazards, errors.

Only counted from what a run leaves anyway, a batch at a time, so that counting costs little.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.formats import Field, Format
from dovetail.isa.instructions import CLASSES, Finish, Fold, Multiplier
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.registers import ErrorCode
from dovetail.vta_sim.machine import SimResult

from .draw import roundings_of
from .generate import Case

__all__ = ["Coverage", "Goal", "goals"]

Goal = tuple[str, str, str]
"""A group, a thing of it, and a class of its values or ways in which it happens."""

FORMATS = {unit: cls.format for unit, cls in zip(Unit, CLASSES, strict=True)}
NAMED = {"memory": Memory, "fold": Fold, "multiplier": Multiplier, "finish": Finish}
MOST = {"reduction_levels": 5, "tab_address": 0xF00}
"""The largest legal value of a field that is not the largest of its bits."""
APART = {
    "opcode": "is the unit",
    "dram_address": "lies where programs may read and write",
    "dram_stride_y": "is a multiple of a word",
    "dram_stride_z": "is a multiple of a word",
    "count_x": "has a largest value beyond what memories hold",
    "count_y": "has a largest value beyond what memories hold",
    "count_z": "has a largest value beyond what memories hold",
}
"""Fields of which not every class is a goal, and why."""
NEVER_0 = {
    (Unit.LOAD, "count_z"),
    *((Unit.STORE, f"count_{axis}") for axis in "xyz"),
    (Unit.VECTOR, "reduction_levels"),
    *((unit, "act_read_banks") for unit in (Unit.GEMM, Unit.STORE)),
    (Unit.GEMM, "acc_banks"),
}
NEVER_1 = {
    *((Unit.LOAD, name) for name in ("wait", "post", "step")),
    (Unit.VECTOR, "tab_address"),
}
"""Values that are not legal."""
MASKS = ("act_read_banks", "act_write_banks", "acc_banks")


def goals(config: HardwareConfig) -> list[Goal]:
    """All there is to reach in programs of a configuration, in the order in which it is shown."""
    found = [
        (unit.name, each.name, name)
        for unit, layout in FORMATS.items()
        for each in layout.fields
        for name, _ in _classes(unit, each, config)
    ]
    pairs = list(combinations(Unit, 2))
    found += [("together", f"{a.name} {b.name}", "at work") for a, b in pairs]
    found += [("together", unit.name, "two in flight") for unit in (Unit.GEMM, Unit.VECTOR)]
    found += [("together", "all four", "at work")]
    for a, b in permutations(Unit, 2):
        found += [("token", f"{a.name} to {b.name}", how) for how in ("waited for", "most")]
    found += [("bank", f"{a.name} before {b.name}", "waited for") for a, b in _bank_pairs()]
    drawn = (ErrorCode.NONE, ErrorCode.ILLEGAL_INSTRUCTION, ErrorCode.WINDOW, ErrorCode.WATCHDOG)
    found += [("end", code.name, "the program") for code in drawn]
    stops = {ErrorCode.ILLEGAL_INSTRUCTION: tuple(Unit), ErrorCode.WINDOW: (Unit.LOAD, Unit.STORE)}
    found += [("end", code.name, unit.name) for code, units in stops.items() for unit in units]
    return found


def _bank_pairs() -> list[tuple[Unit, Unit]]:
    """Who may hold a bank that whom wants: in one role, or to write what VECTOR is to read."""
    load, gemm, vector, store = Unit
    readers, writers, adders = (gemm, vector, store), (load, vector), (load, gemm, vector)
    pairs = {pair for role in (readers, writers, adders) for pair in permutations(role, 2)}
    return sorted(pairs | {(vector, vector)})


def _classes(
    unit: Unit, each: Field, config: HardwareConfig
) -> Iterator[tuple[str, tuple[int, int]]]:
    """The classes of a field's values: names, and smallest and largest value."""
    name = each.name
    if name == "opcode":
        return
    if name in NAMED:
        for value, meaning in enumerate(NAMED[name]):
            yield meaning.name.lower(), (value, value)
        return
    if name == "rounding":
        for rounding in roundings_of(config):
            yield rounding.name.lower(), (int(rounding), int(rounding))
        return
    most = MOST.get(name, each.high)
    if name in ("wait", "post"):
        most = each.high & ~(1 << unit)
    low = each.low
    if name.startswith("dram_stride"):
        yield from (("least", (low, low)), ("0", (0, 0)), ("most", (most - 4095, most)))
        yield "other", (1, most - 4096)
        return
    if each.signed:
        yield from (("least", (low, low)), ("-1", (-1, -1)))
    if name != "dram_address":
        if not (name.startswith("extent") or (unit, name) in NEVER_0):
            yield "0", (0, 0)
        if (unit, name) not in NEVER_1:
            yield "1", (1, 1)
        if name not in APART and most > 1:
            yield "most", (most, most)
    if most > 2:
        yield "other", (2, most - 1)


@dataclass
class Coverage:
    """How often each goal was reached."""

    config: HardwareConfig
    hits: Counter[Goal] = field(default_factory=Counter)
    _words: list[NDArray[np.uint8]] = field(default_factory=list)

    def add(self, case: Case, run: SimResult) -> None:
        """Count a program and its run on the simulator."""
        code = ErrorCode(run.error_code)
        self.hits["end", code.name, "the program"] += 1
        if code in (ErrorCode.ILLEGAL_INSTRUCTION, ErrorCode.WINDOW):
            stopped = case.instructions[run.error_index].unit
            self.hits["end", code.name, stopped.name] += 1
        start, count = case.program_address - run.state.dram_base, len(case.instructions)
        words = run.state.dram[start : start + INSTRUCTION_BYTES * count]
        words = words.reshape(count, INSTRUCTION_BYTES)
        self._words.append(np.delete(words, list(case.damage), axis=0))
        if code is ErrorCode.NONE:
            masks = [[getattr(each, name, 0) for name in MASKS] for each in case.instructions]
            self._concurrent(run)
            self._banks(run, np.array(masks))
            self._tokens(case, run)

    def _concurrent(self, run: SimResult) -> None:
        working = [
            (run.accepted[mine], run.ended[mine]) for mine in (run.units == unit for unit in Unit)
        ]
        together = np.zeros(int(run.ended.max()) + 1, np.int8)
        for unit, (first, last) in zip(Unit, working, strict=True):
            if unit in (Unit.GEMM, Unit.VECTOR) and (first[1:] < last[:-1]).any():
                self.hits["together", unit.name, "two in flight"] += 1
            for a, b in zip(first, last, strict=True):
                together[a:b] |= 1 << unit
        seen = np.flatnonzero(np.bincount(together, minlength=16))
        for a, b in combinations(Unit, 2):
            both = 1 << a | 1 << b
            self.hits["together", f"{a.name} {b.name}", "at work"] += bool(
                (seen & both == both).any()
            )
        self.hits["together", "all four", "at work"] += 15 in seen

    def _banks(self, run: SimResult, masks: NDArray[np.int64]) -> None:
        """Who worked, when an instruction began to wait for a bank, on one that it wants."""
        for index in np.flatnonzero(run.waited_port > 0):
            since = run.accepted[index] - run.waited_port[index]
            before = (run.accepted < since) & (run.ended >= since)
            shared = (masks & masks[index]).any(axis=1)
            shared |= (masks[:, 1] & masks[index, 0]) > 0
            for unit in np.unique(run.units[before & shared]):
                pair = f"{Unit(unit).name} before {Unit(run.units[index]).name}"
                self.hits["bank", pair, "waited for"] += 1

    def _tokens(self, case: Case, run: SimResult) -> None:
        for a, b in permutations(Unit, 2):
            pair = f"{a.name} to {b.name}"
            waits = [
                i for i, each in enumerate(case.instructions) if each.unit is b and a in each.wait
            ]
            posts = [
                i for i, each in enumerate(case.instructions) if each.unit is a and b in each.post
            ]
            self.hits["token", pair, "waited for"] += bool((run.waited_token[waits] > 0).any())
            given, taken = np.sort(run.ended[posts]), np.sort(run.accepted[waits])
            there = np.arange(1, len(given) + 1) - np.searchsorted(taken, given, "right")
            self.hits["token", pair, "most"] += bool((there >= self.config.token_max).any())

    def reached(self) -> dict[Goal, int]:
        """Every goal and how often it was reached: fields by instructions, the rest by programs."""
        if self._words:
            words = np.concatenate(self._words)
            self._words = []
            for unit, layout in FORMATS.items():
                mine = words[words[:, 0] & 15 == unit + 1]
                bits = np.unpackbits(mine, axis=1, bitorder="little")
                for each in layout.fields:
                    values = _values(bits, layout, each)
                    for name, (low, high) in _classes(unit, each, self.config):
                        inside = (values >= low) & (values <= high)
                        self.hits[unit.name, each.name, name] += int(inside.sum())
        return {goal: self.hits[goal] for goal in goals(self.config)}


def _values(bits: NDArray[np.uint8], layout: Format, each: Field) -> NDArray[np.int64]:
    """A field of instructions whose bits are uint8[n, 512]."""
    place = layout.offset(each.name)
    powers = 1 << np.arange(each.width, dtype=np.int64)
    values = bits[:, place : place + each.width].astype(np.int64) @ powers
    return np.where(values > each.high, values - (1 << each.width), values)
