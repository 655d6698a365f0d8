"""An SDRAM and its controller as simulations have them: from the bus to the chip's bytes."""

from dataclasses import replace

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.config import HardwareConfig
from dovetail.isa.sdram import SdramTiming

from .axi import Axi4
from .sdram import SdramController, SdramPins
from .sdram_model import SdramModel

__all__ = ["BYTES", "DelayedChip", "SdramMemory", "forward_bytes"]

BYTES = {
    "address": Out(32),
    "read_data": In(16),
    "write": Out(1),
    "write_data": Out(16),
    "write_strobe": Out(2),
    "violation": Out(8),
}


def forward_bytes(m: Module, inner: wiring.Component, outer: wiring.Component) -> None:
    """Join the members ``BYTES`` of a component to those of the one around it."""
    for name, member in BYTES.items():
        inside, outside = getattr(inner, name), getattr(outer, name)
        m.d.comb += outside.eq(inside) if member.flow is Out else inside.eq(outside)


class DelayedChip(wiring.Component):
    """The model of a chip behind the registers that are between it and its controller.

    Members
    -------
    pins : In(SdramPins)
    address, read_data, write, write_data, write_strobe, violation
        Of the model.
    """

    def __init__(self, timing: SdramTiming, clock_hz: int) -> None:
        """``timing.io_delay``: 0, or 2: one register out and one back in."""
        assert timing.io_delay in (0, 2)
        self._delayed = timing.io_delay > 0
        self._model = SdramModel(timing.chip, clock_hz)
        super().__init__({"pins": In(SdramPins()), **BYTES})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.model = model = self._model
        for name, member in SdramPins().members.items():
            inner, outer = getattr(self.pins, name), getattr(model.pins, name)
            domain = m.d.sync if self._delayed else m.d.comb
            domain += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        forward_bytes(m, model, self)
        return m


class SdramMemory(wiring.Component):
    """Controller and chip; the chip is initialised after a short time.

    Members
    -------
    bus : In(Axi4)
    running : In(1)
        A run is under way: a refresh falls due when it begins.
    ready : Out(1)
        The chip is initialised.
    address, read_data, write, write_data, write_strobe, violation
        Of the chip's model.
    """

    def __init__(self, config: HardwareConfig) -> None:
        assert config.dram.sdram is not None, "the configuration has an SDRAM"
        timing = config.dram.sdram
        chip = replace(timing.chip, power_up=0)
        self._timing = replace(timing, chip=chip, power_up=1)
        self._config = config
        super().__init__(
            {
                "bus": In(Axi4(config.bus_bytes)),
                "running": In(1),
                "ready": Out(1),
                **BYTES,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing, config = self._timing, self._config
        m.submodules.controller = controller = SdramController(timing, config.bus_bytes)
        m.submodules.chip = chip = DelayedChip(timing, config.clock_hz)
        connect(m, controller.pins, chip.pins)
        connect(m, flipped(self.bus), controller.bus)
        before = Signal()
        m.d.sync += before.eq(self.running)
        m.d.comb += [
            controller.restart.eq(self.running & ~before),
            self.ready.eq(controller.ready),
        ]
        forward_bytes(m, chip, self)
        return m
