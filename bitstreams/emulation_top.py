"""A board without a board: everything inside its pins, and a model of the chip outside them."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig

from .core import BoardCore
from .sdram_model import SdramModel
from .sdram_timing import SdramChip

__all__ = ["EmulationTop"]

BYTES = {
    "address": Out(32),
    "read_data": In(16),
    "write": Out(1),
    "write_data": Out(16),
    "write_strobe": Out(2),
    "violation": Out(8),
}


class EmulationTop(wiring.Component):
    """Members: the board's serial line and ``running``; the bytes of the chip's model."""

    def __init__(self, config: HardwareConfig, chip: SdramChip, baud: int) -> None:
        self._core = BoardCore(config, chip, baud)
        self._model = SdramModel(chip, config.clock_hz)
        super().__init__({"receive": In(1), "transmit": Out(1, init=1), "running": Out(1), **BYTES})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self._core
        m.submodules.model = model = self._model
        for name, member in core.sdram.signature.members.items():
            inner, outer = getattr(core.sdram, name), getattr(model.pins, name)
            m.d.sync += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        m.d.comb += [
            core.receive.eq(self.receive),
            self.transmit.eq(core.transmit),
            self.running.eq(core.running),
            model.read_data.eq(self.read_data),
        ]
        for name in BYTES:
            if name != "read_data":
                m.d.comb += getattr(self, name).eq(getattr(model, name))
        return m
