"""Moving registers beside multipliers into them, in a netlist for ECP5.

A MULT18X18D has registers for its operands and for its product, which Yosys does not use.  A
register of its own lies where the multiplier is; one in the fabric may lie half a die away.  What
the netlist does stays the same in every cycle.  Source: Lattice FPGA-TN-02205 (ECP5 sysDSP),
registers of MULT18X18D; nextpnr 0.11 for the parameters.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

__all__ = ["absorb_registers"]

OPERANDS = tuple(f"{side}{bit}" for side in "AB" for bit in range(18))
PRODUCT = tuple(f"P{bit}" for bit in range(36))
CONSTANTS = ("0", "1", "x")
Cell = dict[str, Any]
Bit = int | str


def absorb_registers(module: dict[str, Any]) -> int:
    """Give each multiplier of ``module`` (Yosys's JSON) the registers around it that it can have:
    those of both operands, that of the product.  Return how many multipliers have both now.

    A register fits when it takes a value in every cycle and begins with 0, and when it is on the
    clock of the others; that of the product, when nothing else reads what it takes.
    """
    netlist = _Netlist(module)
    multipliers = [cell for cell in netlist.cells.values() if cell["type"] == "MULT18X18D"]
    complete = 0
    for cell in multipliers:
        operands, product = netlist.before(cell), netlist.behind(cell)
        clocks = {netlist.cells[name]["connections"]["CLK"][0] for name in operands | product}
        if len(clocks) == 1:
            if operands:
                netlist.take_operands(cell)
            if product:
                netlist.take_product(cell)
            _clock(cell, clocks.pop(), operands=bool(operands), product=bool(product))
            complete += bool(operands and product)
    return complete


class _Netlist:
    """The cells, who reads each bit how often, and the registers by what they take and give."""

    def __init__(self, module: dict[str, Any]) -> None:
        self.cells: dict[str, Cell] = module["cells"]
        self._readers: Counter[Bit] = Counter()
        self._giving: dict[Bit, str] = {}
        self._taking: dict[Bit, str] = {}
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] != "output":
                    self._readers.update(bits)
            if _plain(cell):
                self._giving[cell["connections"]["Q"][0]] = name
                self._taking[cell["connections"]["DI"][0]] = name
        for port in module["ports"].values():
            self._readers.update(port["bits"])

    def before(self, cell: Cell) -> set[str]:
        """The registers of the operands; none unless every bit has one."""
        bits = [bit for _, bit in _wires(cell, OPERANDS)]
        known = all(bit in self._giving for bit in bits)
        return {self._giving[bit] for bit in bits} if known else set()

    def behind(self, cell: Cell) -> set[str]:
        """The registers of the product; none unless every bit in use has one, for itself."""
        bits = [bit for _, bit in _wires(cell, PRODUCT) if self._readers[bit]]
        known = all(bit in self._taking and self._readers[bit] == 1 for bit in bits)
        return {self._taking[bit] for bit in bits} if known else set()

    def take_operands(self, cell: Cell) -> None:
        """Let ``cell`` read what the registers before it read."""
        for port, bit in _wires(cell, OPERANDS):
            name = self._giving[bit]
            (given,) = self.cells[name]["connections"]["DI"]
            cell["connections"][port] = [given]
            self._readers[given] += 1
            self._readers[bit] -= 1
            if not self._readers[bit]:
                self._remove(name)

    def take_product(self, cell: Cell) -> None:
        """Let ``cell`` give what the registers behind it give."""
        for port, bit in _wires(cell, PRODUCT):
            if self._readers[bit]:
                name = self._taking[bit]
                cell["connections"][port] = self.cells[name]["connections"]["Q"]
                self._remove(name)

    def _remove(self, name: str) -> None:
        wires = self.cells.pop(name)["connections"]
        (given,), (taken,) = wires["Q"], wires["DI"]
        self._readers[taken] -= 1
        self._giving.pop(given, None)
        if self._taking.get(taken) == name:
            del self._taking[taken]


def _wires(cell: Cell, ports: Iterable[str]) -> list[tuple[str, Bit]]:
    """Those of ``ports`` that are connected to a wire, and the wire's bit."""
    wires = cell["connections"]
    return [(port, bit) for port in ports for bit in wires.get(port, ()) if bit not in CONSTANTS]


def _plain(cell: Cell) -> bool:
    """Whether ``cell`` is a register without enable and reset that begins with 0."""
    if cell["type"] != "TRELLIS_FF":
        return False
    given, wires = cell["parameters"], cell["connections"]
    enabled = given.get("CEMUX", "1").strip() == "1"
    reset = wires.get("LSR", ["0"])[0] != "0"
    rises = given.get("CLKMUX", "CLK") == "CLK"
    return enabled and rises and not reset and given.get("REGSET", "RESET") == "RESET"


def _clock(cell: Cell, clock: Bit, *, operands: bool, product: bool) -> None:
    used = (*(("INPUTA", "INPUTB") if operands else ()), *(("OUTPUT",) if product else ()))
    for register in used:
        cell["parameters"] |= {
            f"REG_{register}_CLK": "CLK0",
            f"REG_{register}_CE": "CE0",
            f"REG_{register}_RST": "RST0",
        }
    for port, bit in (("CLK0", clock), ("CE0", "1"), ("RST0", "0")):
        cell["connections"][port] = [bit]
        cell["port_directions"][port] = "input"
