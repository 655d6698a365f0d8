"""Registers in multipliers, on netlists that are evaluated cycle by cycle."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from dovetail.bitstreams.multiplier_registers import absorb_registers

CLOCK, SLOW = 2, 3
"""SLOW has one cycle in two of CLOCK."""
BITS = 18


class Builder:
    """A netlist of multipliers and registers."""

    def __init__(self) -> None:
        self.cells: dict[str, Any] = {}
        self.ports: dict[str, Any] = {}
        self.next = SLOW + 1

    def wires(self, count: int) -> list[int]:
        self.next += count
        return list(range(self.next - count, self.next))

    def port(self, name: str, bits: list[int], direction: str) -> list[int]:
        self.ports[name] = {"direction": direction, "bits": bits}
        return bits

    def register(self, bits: list[int], enable: str | int = "1", clock: int = CLOCK) -> list[int]:
        given = self.wires(len(bits))
        for bit, output in zip(bits, given, strict=True):
            mode = "1 " if enable == "1" else "CE"
            self.cells[f"register{output}"] = {
                "type": "TRELLIS_FF",
                "parameters": {"CEMUX": mode, "CLKMUX": "CLK", "REGSET": "RESET"},
                "connections": {"CLK": [clock], "DI": [bit], "LSR": ["0"], "CE": [enable]}
                | {"Q": [output]},
                "port_directions": dict.fromkeys(("CLK", "DI", "LSR", "CE"), "input")
                | {"Q": "output"},
            }
        return given

    def multiply(self, a: list[int], b: list[int], count: int) -> list[int]:
        """The low ``count`` bits of a signed product; operands are extended by their top bits."""
        product = self.wires(2 * BITS)
        wires: dict[str, list[int | str]] = {}
        for side, bits in (("A", a), ("B", b)):
            for place in range(BITS):
                wires[f"{side}{place}"] = [bits[min(place, len(bits) - 1)]]
        for place, bit in enumerate(product):
            wires[f"P{place}"] = [bit]
        directions = {port: "output" if port[0] == "P" else "input" for port in wires}
        self.cells[f"multiplier{product[0]}"] = {
            "type": "MULT18X18D",
            "parameters": {},
            "connections": wires,
            "port_directions": directions,
        }
        return product[:count]

    @property
    def module(self) -> dict[str, Any]:
        return {"cells": self.cells, "ports": self.ports}


def run(module: dict[str, Any], inputs: dict[str, list[int]]) -> dict[str, list[int]]:
    """The outputs of each cycle; all registers begin with 0."""
    cells = module["cells"]
    held: dict[tuple[str, str], int] = {}
    found: dict[str, list[int]] = {
        n: [] for n, p in module["ports"].items() if p["direction"] == "output"
    }
    for cycle in range(len(next(iter(inputs.values())))):
        bits: dict[Any, int] = {"0": 0, "1": 1, CLOCK: 0}
        for name, values in inputs.items():
            for place, bit in enumerate(module["ports"][name]["bits"]):
                bits[bit] = values[cycle] >> place & 1
        combinational = []
        for name, cell in cells.items():
            wires, given = cell["connections"], cell["parameters"]
            if cell["type"] == "TRELLIS_FF":
                bits[wires["Q"][0]] = held.get((name, "Q"), 0)
            elif "REG_OUTPUT_CLK" in given:
                spread(bits, wires, held.get((name, "P"), 0))
            else:
                combinational.append(name)
        for _ in combinational:
            for name in combinational:
                spread(bits, cells[name]["connections"], product_of(cells[name], name, bits, held))
        for name in found:
            ports = module["ports"][name]["bits"]
            found[name].append(sum(bits[bit] << place for place, bit in enumerate(ports)))
        following = dict(held)
        for name, cell in cells.items():
            wires, given = cell["connections"], cell["parameters"]
            if cell["type"] == "TRELLIS_FF":
                if bits[wires["CE"][0]] and rises(wires["CLK"][0], cycle):
                    following[name, "Q"] = bits[wires["DI"][0]]
                continue
            if rises(clock_of(cell, "OUTPUT"), cycle):
                following[name, "P"] = product_of(cell, name, bits, held)
            for side in "AB":
                if rises(clock_of(cell, f"INPUT{side}"), cycle):
                    following[name, side] = operand(wires, side, bits)
        held = following
    return found


def rises(clock: int, cycle: int) -> bool:
    return clock == CLOCK or cycle % 2 == 1


def clock_of(cell: dict[str, Any], register: str) -> int:
    """The net that clocks a register of a multiplier."""
    name = cell["parameters"].get(f"REG_{register}_CLK")
    return CLOCK if name is None else int(cell["connections"][name][0])


def spread(bits: dict[Any, int], wires: dict[str, Any], product: int) -> None:
    for place in range(2 * BITS):
        bits[wires[f"P{place}"][0]] = product >> place & 1


def operand(wires: dict[str, Any], side: str, bits: dict[Any, int]) -> int:
    value = sum(bits.get(wires[f"{side}{place}"][0], 0) << place for place in range(BITS))
    return value - (1 << BITS) * (value >> (BITS - 1))


def product_of(
    cell: dict[str, Any], name: str, bits: dict[Any, int], held: dict[tuple[str, str], int]
) -> int:
    if "REG_INPUTA_CLK" in cell["parameters"]:
        return held.get((name, "A"), 0) * held.get((name, "B"), 0)
    return operand(cell["connections"], "A", bits) * operand(cell["connections"], "B", bits)


def pair(enable: bool = False, watched: bool = False) -> dict[str, Any]:
    """Two products with a common operand; registers on both sides, two behind."""
    b = Builder()
    b.port("clk", [CLOCK], "input")
    common = b.register(b.register(b.port("common", b.wires(8), "input")))
    on = b.port("on", b.wires(1), "input")[0]
    for k in range(2):
        own = b.register(b.port(f"own{k}", b.wires(8), "input"), on if enable else "1")
        product = b.multiply(own, common, 16)
        if watched:
            b.port(f"early{k}", product, "output")
        b.port(f"product{k}", b.register(b.register(product)), "output")
    return b.module


def halves() -> dict[str, Any]:
    """Two factors for each common one, which has the slower clock."""
    b = Builder()
    b.port("clk", [CLOCK], "input")
    b.port("slow", [SLOW], "input")
    common = b.register(b.register(b.port("common", b.wires(8), "input"), clock=SLOW), clock=SLOW)
    own = b.register(b.port("own", b.wires(8), "input"))
    product = b.multiply(own, common, 16)
    b.port("product", b.register(b.register(product)), "output")
    return b.module


def mixed() -> dict[str, Any]:
    """The bits of one factor have two clocks."""
    b = Builder()
    b.port("clk", [CLOCK], "input")
    given = b.port("given", b.wires(8), "input")
    own = [*b.register(given[:4]), *b.register(given[4:], clock=SLOW)]
    product = b.multiply(own, b.register(given), 16)
    b.port("product", b.register(b.register(product)), "output")
    return b.module


@pytest.mark.parametrize(
    ("module", "complete", "registers"),
    [
        (halves(), 1, 8 + 16),
        (mixed(), 0, 2 * 8 + 16),
        # Of 112 registers, two of 8 bits for the common operand, 8 and 32 for each product.
        (pair(), 2, 8 + 2 * 16),
        (pair(watched=True), 0, 8 + 2 * 32),
        (pair(enable=True), 0, 16 + 2 * 24),
    ],
)
def test_products_stay_the_same_in_every_cycle(
    module: dict[str, Any], complete: int, registers: int
) -> None:
    changed = deepcopy(module)
    assert absorb_registers(changed) == complete
    left = [cell for cell in changed["cells"].values() if cell["type"] == "TRELLIS_FF"]
    assert len(left) == registers
    rng = np.random.default_rng(1)
    inputs = {
        name: [int(value) for value in rng.integers(0, 1 << len(port["bits"]), 40)]
        for name, port in module["ports"].items()
        if port["direction"] == "input" and name not in ("clk", "slow")
    }
    assert run(changed, inputs) == run(module, inputs)
