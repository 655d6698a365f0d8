"""The SDRAM controller and the model of its chip, under test."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.bitstreams.sdram import SdramController
from dovetail.bitstreams.sdram_model import SdramModel
from dovetail.bitstreams.sdram_timing import MT48LC16M16A2_75, SdramChip, SdramCycles, sdram_cycles
from dovetail.vta_hw.axi import Axi4

__all__ = ["BUS_BYTES", "CHIP", "REGION", "SdramBench", "make_fast", "make_slow"]

CHIP = MT48LC16M16A2_75
BUS_BYTES = 8
REGION = 1 << 16
"""Bytes that the bench keeps: sixteen rows of every bank."""


class SdramBench(wiring.Component):
    """Members: those of the controller but its pins; ``violation`` and ``refreshes`` of the model.

    The chip's bytes are kept here, 0 at first; addresses wrap at ``REGION``.
    """

    def __init__(self, chip: SdramChip, clock_hz: int, cycles: SdramCycles | None = None) -> None:
        self._chip, self._clock = chip, clock_hz
        self._cycles = cycles or sdram_cycles(chip, clock_hz)
        super().__init__(
            {
                "bus": In(Axi4(BUS_BYTES)),
                "restart": In(1),
                "ready": Out(1),
                "violation": Out(8),
                "refreshes": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cycles = self._cycles
        m.submodules.controller = controller = SdramController(self._chip, cycles, BUS_BYTES)
        m.submodules.model = model = SdramModel(self._chip, self._clock)
        connect(m, controller.pins, model.pins)
        connect(m, flipped(self.bus), controller.bus)
        m.submodules.memory = memory = Memory(shape=16, depth=REGION // 2, init=[])
        read, write = memory.read_port(domain="comb"), memory.write_port(granularity=8)
        m.d.comb += [
            read.addr.eq(model.address[1:]),
            write.addr.eq(model.address[1:]),
            write.data.eq(model.write_data),
            write.en.eq(Mux(model.write, model.write_strobe, 0)),
            model.read_data.eq(read.data),
            controller.restart.eq(self.restart),
            self.ready.eq(controller.ready),
            self.violation.eq(model.violation),
            self.refreshes.eq(model.refreshes),
        ]
        return m


def make_fast() -> SdramBench:
    """At 100 MHz."""
    return SdramBench(CHIP, 100_000_000)


def make_slow() -> SdramBench:
    """At 50 MHz."""
    return SdramBench(CHIP, 50_000_000)
