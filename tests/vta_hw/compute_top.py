"""The compute units under test: GEMM, VECTOR and their memories, wired as in the accelerator."""

import os
from dataclasses import replace

from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.memories import Memory
from dovetail.vta_hw import layouts
from dovetail.vta_hw.banked_scratchpad import BankedScratchpad
from dovetail.vta_hw.gemm import Gemm, matrix_parts
from dovetail.vta_hw.load_writes import write_port
from dovetail.vta_hw.ports import ReadPort, UnitControl, WritePort
from dovetail.vta_hw.requantize import Requantize
from dovetail.vta_hw.scratchpad import SimpleScratchpad
from dovetail.vta_hw.table_scratchpad import TableScratchpad
from dovetail.vta_hw.tap_scratchpad import TapScratchpad
from dovetail.vta_hw.vector import Vector
from dovetail.vta_hw.weight_scratchpad import weight_scratchpad

__all__ = [
    "BUILDS",
    "CONFIG",
    "REQUANTIZE_LANES",
    "TESTED",
    "TOPS",
    "ComputeTop",
    "make_compute_top",
]

CONFIG = find_config("tiny")
BUILDS = {
    "plain": CONFIG,
    "paired": replace(CONFIG, multiplier_bits=25),
    "skewed": replace(CONFIG, lane_groups=4),
    "paired_turns": replace(CONFIG, multiplier_bits=25, tile_cycles=2, vector_cycles=2),
    "deep": replace(CONFIG, deep_pipelines=True),
    "deep_turns": replace(
        CONFIG, tile_cycles=2, lane_groups=2, vector_cycles=2, deep_pipelines=True
    ),
    "fast_core": replace(CONFIG, lane_groups=2, core_clock_ratio=2, deep_pipelines=True),
}
"""Ways to build the same units."""
TESTED = tuple(
    name
    for name in BUILDS
    if "SLOW_GATEWARE" in os.environ or name in ("plain", "deep_turns", "fast_core")
)
"""Builds that are tested: the others by ``make gateware`` only, for what they have is in these, or
in the products that are tested alone."""
REQUANTIZE_LANES = 8


class ComputeTop(wiring.Component):
    """GEMM and VECTOR as users of all six memories; beside them some requantisers alone.

    Members
    -------
    gemm, vector : In(UnitControl)
    load_<memory> : In(WritePort)
        LOAD's side of each memory.
    read_act, read_acc : In(ReadPort)
        STORE's side of ACT, and a reader of ACC that only testbenches have.
    requantize_values, requantize_scales, requantize_shifts, requantize_fixed,
    requantize_zero_point, requantize_results
        ``REQUANTIZE_LANES`` requantisers.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        width = {memory: 8 * config.word_bytes(memory) for memory in Memory}
        lanes = REQUANTIZE_LANES
        super().__init__(
            {
                "gemm": In(UnitControl(layouts.GEMM)),
                "vector": In(UnitControl(layouts.VECTOR)),
                **{f"load_{memory.value}": In(WritePort(width[memory])) for memory in Memory},
                "load_tab": In(write_port(Memory.TAB, config)),
                "read_act": In(ReadPort(width[Memory.ACT])),
                "read_acc": In(ReadPort(width[Memory.ACC])),
                "requantize_values": In(data.ArrayLayout(32, lanes)),
                "requantize_scales": In(data.ArrayLayout(32, lanes)),
                "requantize_shifts": In(data.ArrayLayout(5, lanes)),
                "requantize_fixed": In(1),
                "requantize_zero_point": In(signed(8)),
                "requantize_results": Out(data.ArrayLayout(32, lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.gemm = gemm = Gemm(config)
        m.submodules.vector = vector = Vector(config)
        parts = matrix_parts(config)
        registered = ("gemm", "vector") if config.deep_pipelines else ()
        m.submodules.act = act = BankedScratchpad(
            config,
            Memory.ACT,
            ("gemm", "vector", "bench"),
            ("load", "vector"),
            registered=registered,
            in_turns=("vector",),
        )
        m.submodules.acc = acc = BankedScratchpad(
            config,
            Memory.ACC,
            ("gemm", "vector", "bench"),
            ("gemm", "vector", "load"),
            registered=registered,
            parted=("gemm",),
            parts=parts,
            in_turns=("vector",),
        )
        m.submodules.wgt = wgt = weight_scratchpad(config, parts)
        m.submodules.par = par = SimpleScratchpad(
            config, Memory.PAR, in_turns=True, rows=config.row_parameters
        )
        m.submodules.tap = tap = TapScratchpad(config)
        m.submodules.tab = tab = TableScratchpad(config)
        for user, memory_side in (
            (flipped(self.gemm), gemm.control),
            (flipped(self.vector), vector.control),
            (gemm.act, act.read_gemm),
            *((getattr(gemm, f"wgt_{k}"), getattr(wgt, f"read_{k}")) for k in range(parts)),
            *(
                (getattr(gemm, f"acc_read_{k}"), getattr(acc, f"read_gemm_{k}"))
                for k in range(parts)
            ),
            *(
                (getattr(gemm, f"acc_write_{k}"), getattr(acc, f"write_gemm_{k}"))
                for k in range(parts)
            ),
            (vector.act_read, act.read_vector),
            (vector.acc_read, acc.read_vector),
            (vector.act_write, act.write_vector),
            (vector.acc_write, acc.write_vector),
            (vector.par, par.read_0),
            *(((vector.par_row, par.row),) if config.row_parameters else ()),
            (vector.tap, tap.read),
            (vector.tab, tab.read),
            (flipped(self.load_act), act.write_load),
            (flipped(self.load_acc), acc.write_load),
            (flipped(self.load_wgt), wgt.write),
            (flipped(self.load_par), par.write),
            (flipped(self.load_tap), tap.write),
            (flipped(self.load_tab), tab.write),
            (flipped(self.read_act), act.read_bench),
            (flipped(self.read_acc), acc.read_bench),
        ):
            connect(m, user, memory_side)
        for lane in range(REQUANTIZE_LANES):
            m.submodules[f"requantize{lane}"] = unit = Requantize(
                deep=config.deep_pipelines,
                fixed=config.fixed_rounding,
                wide=config.row_parameters,
            )
            m.d.comb += [
                unit.value.eq(self.requantize_values[lane]),
                unit.scale.eq(self.requantize_scales[lane]),
                unit.fixed.eq(self.requantize_fixed),
                unit.power_shift.eq(self.requantize_shifts[lane]),
                unit.zero_point.eq(self.requantize_zero_point),
                self.requantize_results[lane].eq(unit.result),
            ]
        return m


def make_compute_top() -> ComputeTop:
    """The compute units of the smallest configuration."""
    return ComputeTop(CONFIG)


def make_paired_top() -> ComputeTop:
    """With two products in each multiplier of the matrix core."""
    return ComputeTop(BUILDS["paired"])


def make_skewed_top() -> ComputeTop:
    """With a group for each lane."""
    return ComputeTop(BUILDS["skewed"])


def make_paired_turns_top() -> ComputeTop:
    """With two products in each multiplier, and two cycles a tile or word."""
    return ComputeTop(BUILDS["paired_turns"])


def make_deep_top() -> ComputeTop:
    """With deep pipelines."""
    return ComputeTop(BUILDS["deep"])


def make_deep_turns_top() -> ComputeTop:
    """With deep pipelines, groups of lanes, and two cycles a tile or word."""
    return ComputeTop(BUILDS["deep_turns"])


def make_fast_core_top() -> ComputeTop:
    """With multipliers that have a clock of their own."""
    return ComputeTop(BUILDS["fast_core"])


TOPS = {
    "plain": make_compute_top,
    "paired": make_paired_top,
    "skewed": make_skewed_top,
    "paired_turns": make_paired_turns_top,
    "deep": make_deep_top,
    "deep_turns": make_deep_turns_top,
    "fast_core": make_fast_core_top,
}
"""Makers of each build."""
