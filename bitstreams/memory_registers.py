"""Moving registers behind block RAMs into them, in a netlist for ECP5.

A DP16KD has registers for its outputs, which Yosys does not use; without them a word comes 5.8 ns
after the clock, with them early in the next cycle.  What the netlist does stays the same in every
cycle.  Source: Lattice FPGA-TN-02204 (ECP5 memory), output registers; nextpnr 0.11 for the
parameters.
"""

from typing import Any

from .netlist import Bit, Cell, Netlist

__all__ = ["absorb_output_registers"]

WIDE = 36
"""A port of so many bits has both sides' outputs, on the clock of side B."""
SIDES = {side: tuple(f"DO{side}{bit}" for bit in range(18)) for side in "AB"}


def absorb_output_registers(module: dict[str, Any]) -> int:
    """Give each block RAM of ``module`` (Yosys's JSON) the registers of its outputs that it can
    have; return how many have some now.

    They fit when nothing else reads the outputs, when they take a value in every cycle and begin
    with 0, when they are on the clock that the memory is read with, and when that reads in every
    cycle.
    """
    netlist = Netlist(module)
    memories = [cell for cell in netlist.cells.values() if cell["type"] == "DP16KD"]
    return sum(_absorb(netlist, cell) for cell in memories)


def _absorb(netlist: Netlist, cell: Cell) -> bool:
    given = cell["parameters"]
    if int(given["DATA_WIDTH_A"], 2) == WIDE:
        outputs = [("B", "AB", SIDES["A"] + SIDES["B"])]
    else:
        outputs = [(side, side, ports) for side, ports in SIDES.items()]
    changed = False
    for read, sides, ports in outputs:
        wires = cell["connections"]
        always = all(wires.get(port, ["1"]) == ["1"] for port in (f"CE{read}", f"OCE{read}"))
        clock: Bit | None = netlist.clock_behind(cell, ports)
        rises = given.get(f"CLK{read}MUX", "").strip() == f"CLK{read}"
        if always and rises and clock is not None and wires[f"CLK{read}"] == [clock]:
            netlist.take_behind(cell, ports)
            cell["parameters"] |= {f"REGMODE_{side}": "OUTREG" for side in sides}
            changed = True
    return changed
