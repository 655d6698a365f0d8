"""Gateware of every board with an SDRAM and a serial line, from its pins inwards."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.config import HardwareConfig
from dovetail.isa.link import GRAIN
from dovetail.vta_hw.accelerator import Accelerator
from dovetail.vta_hw.axi import Axi4, Axi4Lite
from dovetail.vta_hw.registers import ADDRESS_BITS
from dovetail.vta_hw.sdram import SdramController, SdramPins

from .boards import cycles_of_a_bit
from .bridge import HostBridge

__all__ = ["BoardCore"]

TO_MEMORY = tuple(name for name, member in Axi4(GRAIN).members.items() if member.flow is Out)
FROM_MEMORY = tuple(name for name, member in Axi4(GRAIN).members.items() if member.flow is In)


class BoardCore(wiring.Component):
    """Accelerator, host bridge and SDRAM controller, all on one clock; multipliers of the matrix
    core may have one of their own.

    Memory belongs to the accelerator while a program runs, and to the host otherwise.  A register
    is written, and with it a run started, when the memory has settled, and a refresh falls due in
    the first cycle of each run: so a run takes the same cycles every time.

    Members
    -------
    receive : In(1), transmit : Out(1)
        The host's serial line.
    sdram : Out(SdramPins)
        To be registered once more on the way out, and on the way in.
    running : Out(1)
    ready : Out(1)
        The SDRAM is initialised.
    """

    def __init__(self, config: HardwareConfig, baud: int) -> None:
        """Raises ConfigError as ``cycles_of_a_bit``."""
        self._divisor = cycles_of_a_bit(config, baud)
        assert config.dram.sdram is not None
        self._config, self._sdram = config, config.dram.sdram
        super().__init__(
            {
                "receive": In(1),
                "transmit": Out(1, init=1),
                "sdram": Out(SdramPins()),
                "running": Out(1),
                "ready": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.accelerator = accelerator = Accelerator(config)
        m.submodules.bridge = bridge = HostBridge(self._divisor, config.bus_bytes)
        m.submodules.controller = controller = SdramController(self._sdram, config.bus_bytes)
        connect(m, controller.pins, flipped(self.sdram))

        running, before = accelerator.trace_cycle, Signal()
        m.d.sync += before.eq(running)
        m.d.comb += [
            self.running.eq(running),
            self.ready.eq(controller.ready),
            controller.restart.eq(running & ~before),
            bridge.receive.eq(self.receive),
            self.transmit.eq(bridge.transmit),
            bridge.running.eq(running),
            bridge.finished.eq(accelerator.irq),
        ]
        writable = running | controller.settled
        for name, member in Axi4Lite(ADDRESS_BITS).members.items():
            host, own = getattr(bridge.registers, name), getattr(accelerator.host, name)
            source, sink = (host, own) if member.flow is Out else (own, host)
            waits = name in ("awvalid", "awready", "wvalid", "wready")
            m.d.comb += sink.eq(source & writable if waits else source)
        for name in TO_MEMORY:
            chosen = Mux(running, getattr(accelerator.memory, name), getattr(bridge.memory, name))
            m.d.comb += getattr(controller.bus, name).eq(chosen)
        for name in FROM_MEMORY:
            value = getattr(controller.bus, name)
            if name.endswith(("valid", "ready")):
                m.d.comb += getattr(accelerator.memory, name).eq(value & running)
                m.d.comb += getattr(bridge.memory, name).eq(value & ~running)
            else:
                m.d.comb += getattr(accelerator.memory, name).eq(value)
                m.d.comb += getattr(bridge.memory, name).eq(value)
        return m
