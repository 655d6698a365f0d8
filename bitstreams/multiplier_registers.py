"""Moving registers beside multipliers into them, in a netlist for ECP5.

A MULT18X18D has registers for its operands and for its product, which Yosys does not use.  A
register of its own is where the multiplier is; one in the fabric may be half a die away.  What
the netlist does stays the same in every cycle.  Source: Lattice FPGA-TN-02205 (ECP5 sysDSP),
registers of MULT18X18D; nextpnr 0.11 for the parameters.
"""

from typing import Any

from .netlist import Bit, Cell, Netlist

__all__ = ["absorb_registers"]

OPERANDS = tuple(tuple(f"{side}{bit}" for bit in range(18)) for side in "AB")
PRODUCT = tuple(f"P{bit}" for bit in range(36))
CONTROLS = (("CE0", "1"), ("RST0", "0"))


def absorb_registers(module: dict[str, Any]) -> int:
    """Give each multiplier of ``module`` (Yosys's JSON) the registers around it that it can have:
    those of both operands, that of the product.  Return how many multipliers have both now.

    A register fits when it takes a value in every cycle and begins with 0; that of the product,
    when nothing else reads what it takes.  Each of the three has one clock, which may be another
    than that of the others.
    """
    netlist = Netlist(module)
    multipliers = [cell for cell in netlist.cells.values() if cell["type"] == "MULT18X18D"]
    complete = 0
    for cell in multipliers:
        clocks: dict[str, Bit] = {}
        product = netlist.clock_behind(cell, PRODUCT)
        if product is not None:
            clocks["OUTPUT"] = product
        operands = [netlist.clock_before(cell, side) for side in OPERANDS]
        known = [clock for clock in operands if clock is not None]
        if len(known) == len(operands):
            clocks |= dict(zip(("INPUTA", "INPUTB"), known, strict=True))
            for side in OPERANDS:
                netlist.take_before(cell, side)
        if product is not None:
            netlist.take_behind(cell, PRODUCT)
        _clock(cell, clocks)
        complete += len(clocks) == 1 + len(OPERANDS)
    return complete


def _clock(cell: Cell, clocks: dict[str, Bit]) -> None:
    """Give each register of ``clocks`` its clock.

    nextpnr takes ``CLK0`` for that of all, here the product's if it has a register; and it gives
    all multipliers of a block the same names.
    """
    names: dict[Bit, str] = {}
    for register, clock in clocks.items():
        name = names.setdefault(clock, f"CLK{len(names)}")
        cell["parameters"] |= {
            f"REG_{register}_CLK": name,
            f"REG_{register}_CE": "CE0",
            f"REG_{register}_RST": "RST0",
        }
    if clocks:
        for port, bit in (*((name, clock) for clock, name in names.items()), *CONTROLS):
            cell["connections"][port] = [bit]
            cell["port_directions"][port] = "input"
