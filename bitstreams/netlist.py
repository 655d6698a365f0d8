"""A netlist of ECP5's cells, as Yosys writes it: registers before and behind other cells."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

__all__ = ["Bit", "Cell", "Netlist", "wires"]

CONSTANTS = ("0", "1", "x")
Cell = dict[str, Any]
Bit = int | str


class Netlist:
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

    def clock_before(self, cell: Cell, ports: Iterable[str]) -> Bit | None:
        """The clock of the registers before ``ports``; None unless every bit has one, of one
        clock.
        """
        bits = [bit for _, bit in wires(cell, ports)]
        if not all(bit in self._giving for bit in bits):
            return None
        return self._clock(self._giving[bit] for bit in bits)

    def clock_behind(self, cell: Cell, ports: Iterable[str]) -> Bit | None:
        """The clock of the registers behind ``ports``; None unless every bit in use has one, for
        itself, and all of one clock.
        """
        bits = [bit for _, bit in wires(cell, ports) if self._readers[bit]]
        if not all(bit in self._taking and self._readers[bit] == 1 for bit in bits):
            return None
        return self._clock(self._taking[bit] for bit in bits)

    def _clock(self, registers: Iterable[str]) -> Bit | None:
        clocks: set[Bit] = {self.cells[name]["connections"]["CLK"][0] for name in registers}
        return clocks.pop() if len(clocks) == 1 else None

    def take_before(self, cell: Cell, ports: Iterable[str]) -> None:
        """Let ``cell`` read what the registers before ``ports`` read."""
        for port, bit in wires(cell, ports):
            name = self._giving[bit]
            (given,) = self.cells[name]["connections"]["DI"]
            cell["connections"][port] = [given]
            self._readers[given] += 1
            self._readers[bit] -= 1
            if not self._readers[bit]:
                self._remove(name)

    def take_behind(self, cell: Cell, ports: Iterable[str]) -> None:
        """Let ``cell`` give what the registers behind ``ports`` give."""
        for port, bit in wires(cell, ports):
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


def wires(cell: Cell, ports: Iterable[str]) -> list[tuple[str, Bit]]:
    """The connected ones among ``ports``, each with its wire's bit."""
    found = cell["connections"]
    return [(port, bit) for port in ports for bit in found.get(port, ()) if bit not in CONSTANTS]


def _plain(cell: Cell) -> bool:
    """True if ``cell`` is a register without enable and reset that begins with 0."""
    if cell["type"] != "TRELLIS_FF":
        return False
    given, wires = cell["parameters"], cell["connections"]
    enabled = given.get("CEMUX", "1").strip() == "1"
    reset = wires.get("LSR", ["0"])[0] != "0"
    rises = given.get("CLKMUX", "CLK") == "CLK"
    return enabled and rises and not reset and given.get("REGSET", "RESET") == "RESET"
