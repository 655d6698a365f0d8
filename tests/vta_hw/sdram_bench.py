"""The SDRAM controller and the model of its chip, under test."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.sdram import MT48LC16M16A2_75, SdramTiming, sdram_timing
from dovetail.vta_hw.axi import Axi4
from dovetail.vta_hw.sdram import SdramController
from dovetail.vta_hw.sdram_memory import DelayedChip

__all__ = ["BUS_BYTES", "CHIP", "REGION", "SdramBench", "make_fast", "make_slow"]

CHIP = MT48LC16M16A2_75
BUS_BYTES = 8
REGION = 1 << 16
"""Bytes that the bench keeps: sixteen rows of every bank."""


class SdramBench(wiring.Component):
    """Members: those of the controller but its pins; ``violation`` of the model.

    The chip's bytes are kept here, 0 at first; addresses wrap at ``REGION``.
    """

    def __init__(self, timing: SdramTiming, clock_hz: int) -> None:
        self._timing, self._clock = timing, clock_hz
        super().__init__(
            {
                "bus": In(Axi4(BUS_BYTES)),
                "restart": In(1),
                "ready": Out(1),
                "settled": Out(1),
                "violation": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.controller = controller = SdramController(self._timing, BUS_BYTES)
        m.submodules.model = model = DelayedChip(self._timing, self._clock)
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
            self.settled.eq(controller.settled),
            self.violation.eq(model.violation),
        ]
        return m


def make_fast() -> SdramBench:
    """At 100 MHz."""
    return SdramBench(sdram_timing(CHIP, 100_000_000), 100_000_000)


def make_slow() -> SdramBench:
    """At 50 MHz, registers between controller and chip."""
    return SdramBench(sdram_timing(CHIP, 50_000_000, io_delay=2), 50_000_000)
