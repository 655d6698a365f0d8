"""The area of a configuration: Yosys's counts where there are some, else a model fitted to them.

Block RAMs are counted from the memories' shapes; LUTs, registers and multipliers are sums of a few
features of the configuration, fitted to ``area_records.json``.  docs/explore.md states how far such
an estimate is off when the configuration itself is left out of the fit.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen

from .gateware import gateware_hash
from .least_squares import fit, leave_one_out
from .memories import block_rams, distributed_bits
from .space import HARDWARE

__all__ = [
    *("FIGURES", "RECORDS", "Area", "AreaModel", "AreaRecord", "Family"),
    *("area_config", "hardware_text", "load_area_model", "read_records"),
]

RECORDS = Path(__file__).with_name("area_records.json")
FIGURES = ("luts", "registers", "multipliers", "block_rams")
FITTED = FIGURES[:3]
FIXED_LANE = {"luts": 125.0, "registers": 61.0}
"""Area that ``fixed_rounding`` adds to a vector lane, counted on zynq7020 for Xilinx 7."""
ROWS = {"luts": 1939.0, "registers": 808.0, "multipliers": 2.0}
ROWS_LANE = {"luts": 117.0, "registers": 36.0, "multipliers": 0.0}
"""Area that ``row_parameters`` adds, and for each lane: ``vta_hw/rows.py`` and wide requantisation,
counted for Xilinx 7.
"""
NIBBLES = {"luts": 460.0, "registers": 27.0}
"""Area that ``nibble_weights`` adds: counted on zynq7020 for Xilinx 7."""
VARIED = (
    *("block", "bus_bytes", "act_banks", "acc_banks", "queue_depth"),
    *("tile_cycles", "lane_groups", "vector_cycles", "deep_pipelines"),
)
"""Beyond its largest counted value, one of these is extrapolated."""
MULTIPLIER_BITS = {"ECP5": 18, "Xilinx 7": 25}


@frozen
class Family:
    """An FPGA family, by the part whose capacity areas are compared with."""

    name: str
    part: str
    capacity: tuple[float, float, float, float]


@frozen
class AreaRecord:
    """Counts of Yosys.

    gateware, netlist: hashes of the sources and of the Verilog it was counted for.
    """

    config: HardwareConfig
    family: str
    counts: Mapping[str, float]
    gateware: str
    netlist: str
    yosys: str


@frozen
class Area:
    """LUTs, registers, multipliers and block RAMs.

    basis: ``synthesised``, ``estimated``, or ``extrapolated`` where a parameter is beyond all
    records.  share: of the family's part, of what it takes most of; above 1 it does not fit.

    error: largest relative error of LUTs or registers that leaving a record out has shown; 0 if
    counted, None beyond all records.
    """

    luts: int
    registers: int
    multipliers: int
    block_rams: float
    basis: str
    share: float
    error: float | None

    @property
    def said(self) -> str:
        """The basis, and how far off it may be."""
        if self.error is None:
            return f"{self.basis}, error unknown"
        return f"{self.basis} ±{self.error:.0%}" if self.error else self.basis


def area_config(config: HardwareConfig, family: str) -> HardwareConfig:
    """``config`` as it is built for ``family``, with a name that Verilog takes."""
    values = {each.name: getattr(config, each.name) for each in fields(HardwareConfig)}
    values |= {"name": "point", "multiplier_bits": MULTIPLIER_BITS[family]}
    return HardwareConfig(**values)


def hardware_text(config: HardwareConfig) -> str:
    """Everything an area depends on, except for the family."""
    return ",".join(f"{name}={getattr(config, name)}" for name in HARDWARE)


def features(config: HardwareConfig, family: str) -> dict[str, list[float]]:
    """Features that each figure is a weighted sum of.

    A multiplier is in a product of the matrix core, in a lane, or in the rest.  Logic is in the
    rest, in lanes, in products, in the choices of a byte by its place in a beat, in the choices
    between banks, in memories made of LUTs, in queues, and in registers that were asked for.
    """
    block, bus, cells = config.block, config.bus_bytes, config.macs_per_cycle
    deep, lanes = 1.0 if config.deep_pipelines else 0.0, block // config.vector_cycles
    logic = [
        *(1.0, lanes, block, cells, bus, bus * block),
        *(config.act_banks * block, config.acc_banks * block),
        *(distributed_bits(config, family), config.queue_depth),
        *(deep * lanes, deep * cells, (config.lane_groups - 1) * block),
    ]
    products = [1.0, lanes, (1.0 - deep) * lanes, cells]
    return {"luts": logic, "registers": logic, "multipliers": products}


class AreaModel:
    """The area of any configuration in one family."""

    def __init__(self, family: Family, records: list[AreaRecord], gateware: str) -> None:
        self.family = family
        mine = [each for each in records if each.family == family.name]
        self._counted = {
            hardware_text(each.config): each.counts for each in mine if each.gateware == gateware
        }
        self.records = mine
        self._weights, self.errors = {}, {}
        for figure in FITTED:
            rows = np.array([features(each.config, family.name)[figure] for each in mine], float)
            counts = np.array([each.counts[figure] for each in mine], float)
            self._weights[figure] = fit(rows, counts)
            self.errors[figure] = leave_one_out(rows, counts)
        self._largest = {name: max(getattr(each.config, name) for each in mine) for name in VARIED}

    @property
    def error(self) -> float:
        """Largest error of LUTs or registers when a record is left out."""
        return float(max(np.abs(self.errors[figure]).max() for figure in ("luts", "registers")))

    def area(self, config: HardwareConfig) -> Area:
        """Counted, or estimated."""
        counted = self._counted.get(hardware_text(config))
        counts = counted or self.estimate(config)
        beyond = [n for n, largest in self._largest.items() if getattr(config, n) > largest]
        basis = "synthesised" if counted else "extrapolated" if beyond else "estimated"
        share = max(
            counts[figure] / there
            for figure, there in zip(FIGURES, self.family.capacity, strict=True)
        )
        luts, registers, multipliers = (round(counts[figure]) for figure in FITTED)
        error = 0.0 if counted else None if beyond else self.error
        return Area(luts, registers, multipliers, counts["block_rams"], basis, share, error)

    def estimate(self, config: HardwareConfig) -> dict[str, float]:
        """The model's estimate, whether there is a count or not."""
        mine = features(config, self.family.name)
        found = {figure: float(self._weights[figure] @ mine[figure]) for figure in FITTED}
        if config.fixed_rounding:
            for figure, each in FIXED_LANE.items():
                found[figure] += each * config.block // config.vector_cycles
        if config.row_parameters:
            for figure, each in ROWS.items():
                lanes = config.block // config.vector_cycles
                found[figure] += each + ROWS_LANE[figure] * lanes
        if config.nibble_weights:
            for figure, each in NIBBLES.items():
                found[figure] += each
        return found | {"block_rams": block_rams(config, self.family.name)}


def read_records(path: Path = RECORDS) -> tuple[list[Family], list[AreaRecord]]:
    """The families and records in a file."""
    content: dict[str, Any] = json.loads(path.read_text())
    families = [
        Family(each["name"], each["part"], tuple(each["capacity"])) for each in content["families"]
    ]
    records = [
        AreaRecord(HardwareConfig(name="point", **each["config"]), **each["about"])
        for each in content["records"]
    ]
    return families, records


def load_area_model(more: tuple[AreaRecord, ...] = ()) -> dict[str, AreaModel]:
    """The model of each family, by name; ``more`` are counts of this machine's own."""
    families, records = _shipped()
    gateware = gateware_hash()
    return {each.name: AreaModel(each, [*records, *more], gateware) for each in families}


@lru_cache(maxsize=1)
def _shipped() -> tuple[list[Family], list[AreaRecord]]:
    return read_records()
