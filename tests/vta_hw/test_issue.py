"""The issue logic on Verilator, in every cycle against the rules of docs/timing.md."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge, ReadOnly

from dovetail.isa.configs import find_config
from dovetail.isa.instructions import FORMATS
from dovetail.isa.memories import Unit
from dovetail.vta_hw.issue import QUEUED, Issue

from .rtl import parameters, simulate, start_clock

CONFIG = find_config("tiny")
PRIORITY = (Unit.GEMM, Unit.VECTOR, Unit.STORE, Unit.LOAD)
ROLES = ("act_read_banks", "act_write_banks", "acc_banks")
PAIRS = [(source, target) for source in Unit for target in Unit if source is not target]

Values = dict[str, int]


@dataclass
class Model:
    """The rules, cycle by cycle: what is counted, and what is in flight."""

    count: dict[tuple[Unit, Unit], int] = field(default_factory=lambda: dict.fromkeys(PAIRS, 0))
    credit: dict[tuple[Unit, Unit], int] = field(
        default_factory=lambda: dict.fromkeys(PAIRS, CONFIG.token_max)
    )
    flying: dict[Unit, deque[Values]] = field(
        default_factory=lambda: {unit: deque() for unit in Unit}
    )

    def tokens(self, unit: Unit, head: Values) -> bool:
        """Rule 2."""
        others = [other for other in Unit if other is not unit]
        return all(
            (not head["wait"] >> other & 1 or self.count[other, unit])
            and (not head["post"] >> other & 1 or self.credit[unit, other])
            for other in others
        )

    def banks(self, unit: Unit, head: Values, claimed: list[Values]) -> bool:
        """Rule 3; ``claimed`` are the instructions accepted in this cycle."""
        others = [
            other
            for unit_there in Unit
            if unit_there is not unit
            for other in self.flying[unit_there]
        ]
        for other in (*others, *claimed):
            if any(head.get(role, 0) & other.get(role, 0) for role in ROLES):
                return False
        if unit is not Unit.VECTOR:
            return True
        for other in self.flying[unit]:
            if head["act_read_banks"] & other["act_write_banks"]:
                return False
            if head["source"] and other["destination"] and head["acc_banks"] & other["acc_banks"]:
                return False
        return True

    def step(self, accepted: dict[Unit, Values], done: list[Unit]) -> None:
        """The end of a cycle."""
        for unit in done:
            ended = self.flying[unit].popleft()
            for other in Unit:
                if ended["post"] >> other & 1:
                    self.count[unit, other] += 1
        for unit, head in accepted.items():
            for other in Unit:
                if head["wait"] >> other & 1:
                    self.count[other, unit] -= 1
                    self.credit[other, unit] += 1
                if head["post"] >> other & 1:
                    self.credit[unit, other] -= 1
            self.flying[unit].append(head)
        assert all(0 <= number <= CONFIG.token_max for number in self.count.values())


def random_instruction(rng: np.random.Generator, unit: Unit, tokens: int) -> Values:
    """Field values with sparse bank masks; about ``tokens`` in 8 of the token bits set."""
    values = {layout.name: 0 for layout in FORMATS[unit].fields}
    values["opcode"] = unit + 1
    for name in ("wait", "post"):
        mask = sum(int(rng.integers(0, 8) < tokens) << other for other in Unit)
        values[name] = mask & ~(1 << unit)
    for role in ROLES:
        if role in values:
            width = 4 if role == "acc_banks" else 8
            values[role] = int(rng.integers(0, 1 << width) & rng.integers(0, 1 << width))
            values[role] &= int(rng.integers(0, 1 << width))
    if unit is Unit.VECTOR:
        values |= {"source": int(rng.integers(0, 2)), "destination": int(rng.integers(0, 2))}
    return values


def make_issue() -> Issue:
    """The issue logic of ``CONFIG``."""
    return Issue(CONFIG)


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Heads, readiness and ends at random; a bias in turn for tokens given and for tokens taken."""
    rng = np.random.default_rng(parameters()["seed"])
    await start_clock(dut)
    model = Model()
    heads: dict[Unit, Values | None] = dict.fromkeys(Unit)
    most_flying = {Unit.LOAD: 1, Unit.GEMM: 6, Unit.VECTOR: 15, Unit.STORE: 1}
    seen = dict.fromkeys(("accept", "stall_token", "stall_port"), 0)
    for cycle in range(2400):
        if cycle % 300 == 299:
            heads = dict.fromkeys(Unit)
        tokens = (0, 1, 2, 4)[cycle // 300 % 4]
        for unit in Unit:
            if heads[unit] is None and rng.integers(0, 2):
                heads[unit] = random_instruction(rng, unit, tokens)
        enable = bool(rng.integers(0, 20))
        free = {unit: len(model.flying[unit]) < most_flying[unit] for unit in Unit}
        free = {unit: free[unit] and bool(rng.integers(0, 3)) for unit in Unit}
        done = [unit for unit in Unit if model.flying[unit] and rng.integers(0, 4) == 0]
        present(dut, heads, enable, free, done)
        await ReadOnly()
        accepted = check(dut, model, heads, enable, free)
        for name in seen:
            seen[name] += int(getattr(dut, name).value).bit_count()
        model.step(accepted, done)
        for unit in accepted:
            heads[unit] = None
        await FallingEdge(dut.clk)
    assert min(seen.values()) > 250, seen


def present(
    dut: Any,
    heads: dict[Unit, Values | None],
    enable: bool,
    free: dict[Unit, bool],
    done: list[Unit],
) -> None:
    """Set the inputs of this cycle."""
    dut.enable.value = enable
    dut.head_valid.value = sum(1 << unit for unit in Unit if heads[unit] is not None)
    for unit in Unit:
        name = unit.name.lower()
        head = heads[unit]
        word = 0 if head is None else FORMATS[unit].encode(head)
        index = QUEUED[unit]["index"].offset
        getattr(dut, f"head_{name}").value = word | (unit + 7) << index
        getattr(dut, f"control_{name}__free").value = free[unit]
        getattr(dut, f"control_{name}__done").value = unit in done
        getattr(dut, f"control_{name}__busy").value = 0


def check(
    dut: Any,
    model: Model,
    heads: dict[Unit, Values | None],
    enable: bool,
    free: dict[Unit, bool],
) -> dict[Unit, Values]:
    """Hold the outputs of this cycle to the rules; return what is accepted."""
    accepted: dict[Unit, Values] = {}
    expected = dict.fromkeys(("accept", "stall_token", "stall_port", "in_flight"), 0)
    for unit in PRIORITY:
        head = heads[unit]
        expected["in_flight"] |= bool(model.flying[unit]) << unit
        if head is None or not enable or not free[unit]:
            continue
        if not model.tokens(unit, head):
            expected["stall_token"] |= 1 << unit
        elif not model.banks(unit, head, list(accepted.values())):
            expected["stall_port"] |= 1 << unit
        else:
            expected["accept"] |= 1 << unit
            accepted[unit] = head
    for name, value in expected.items():
        assert int(getattr(dut, name).value) == value, name
    for unit in Unit:
        start = getattr(dut, f"control_{unit.name.lower()}__start").value
        assert start == (unit in accepted)
    return accepted


@pytest.mark.parametrize("seed", [41])
def test_instructions_start_exactly_when_the_rules_let_them(seed: int) -> None:
    simulate(make_issue, random_traffic, seed=seed)
