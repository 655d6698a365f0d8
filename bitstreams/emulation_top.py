"""A board without a board: everything inside its pins, and a model of the chip outside them."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from dovetail.isa.config import HardwareConfig
from dovetail.vta_hw.sdram_memory import BYTES, DelayedChip, forward_bytes

from .core import BoardCore

__all__ = ["EmulationTop"]


class EmulationTop(wiring.Component):
    """Members: the board's serial line and ``running``; the bytes of the chip's model."""

    def __init__(self, config: HardwareConfig, baud: int) -> None:
        self._core = BoardCore(config, baud)
        assert config.dram.sdram is not None, "BoardCore requires it"
        self._chip = DelayedChip(config.dram.sdram, config.clock_hz)
        super().__init__({"receive": In(1), "transmit": Out(1, init=1), "running": Out(1), **BYTES})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self._core
        m.submodules.chip = chip = self._chip
        connect(m, core.sdram, chip.pins)
        m.d.comb += [
            core.receive.eq(self.receive),
            self.transmit.eq(core.transmit),
            self.running.eq(core.running),
        ]
        forward_bytes(m, chip, self)
        return m
