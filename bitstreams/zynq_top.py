"""The accelerator and the processors of a Zynq-7000: one control port, one memory port."""

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Elaboratable,
    Instance,
    Module,
    Signal,
)
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.config import HardwareConfig
from dovetail.isa.errors import ConfigError
from dovetail.vta_hw.accelerator import Accelerator

from .axi3 import Axi3, ControlPort

__all__ = ["ZynqCore", "ZynqTop", "require_ports"]

CONTROL, MEMORY = "MAXIGP0", "SAXIHP0"
MEMORY_BYTES, MEMORY_BEATS = 8, 16
CACHE = 0b0011
"""Bufferable, modifiable: what a high-performance port expects."""


def require_ports(config: HardwareConfig) -> None:
    """Raises ConfigError unless bus and bursts are those of a high-performance port, and there is
    one clock.
    """
    if config.bus_bytes != MEMORY_BYTES or config.burst_beats > MEMORY_BEATS:
        raise ConfigError(
            f"{config.name}: a bus of {config.bus_bytes} bytes and bursts of "
            f"{config.burst_beats}; required {MEMORY_BYTES} bytes and at most {MEMORY_BEATS} beats "
            "on a Zynq-7000"
        )
    if config.core_clock_ratio > 1:
        raise ConfigError(
            f"{config.name}: core_clock_ratio = {config.core_clock_ratio}; required 1 on a "
            "Zynq-7000, whose top level has one clock; tile_cycles = 2 takes as few multipliers"
        )


class ZynqCore(wiring.Component):
    """The accelerator between the two ports; address 0 of its programs is ``MEMORY_BASE``.

    Members
    -------
    control : In(Axi3(4, 12))
        From a general-purpose port; registers at 0, ``MEMORY_BASE`` above them.
    memory : Out(Axi3(8, 6))
        To a high-performance port.
    irq : Out(1)
    """

    def __init__(self, config: HardwareConfig) -> None:
        """Raises ConfigError as ``require_ports`` does."""
        require_ports(config)
        self._config = config
        super().__init__(
            {"control": In(Axi3(4, 12)), "memory": Out(Axi3(MEMORY_BYTES, 6)), "irq": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.accelerator = accelerator = Accelerator(self._config)
        m.submodules.port = port = ControlPort()
        connect(m, flipped(self.control), port.bus)
        connect(m, port.registers, accelerator.host)
        m.d.comb += self.irq.eq(accelerator.irq)
        inner, outer = accelerator.memory, self.memory
        for name, member in outer.signature.members.items():
            if name == "wid":
                continue
            source, target = getattr(inner, name), getattr(outer, name)
            if name.endswith("addr"):
                m.d.comb += target.eq(source + port.memory_base)
            elif member.flow is Out:
                m.d.comb += target.eq(source)
            else:
                m.d.comb += source.eq(target)
        return m


class ZynqTop(Elaboratable):
    """``ZynqCore`` and the processing system, whose clock FCLK0 is the accelerator's.

    The processors' software sets FCLK0, and everything else of the processing system.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        self._core = ZynqCore(config)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self._core
        clock, clocks, resets = Signal(name="fclk0"), Signal(4), Signal(4)
        m.domains.sync = ClockDomain()
        m.submodules.buffer = Instance("BUFG", i_I=clocks[0], o_O=clock)
        m.d.comb += ClockSignal("sync").eq(clock)
        if platform is not None:
            platform.add_clock_constraint(clock, self._config.clock_hz)  # type: ignore[attr-defined]
        m.submodules.reset = ResetSynchronizer(~resets[0], domain="sync")
        ports: dict[str, object] = {
            "o_FCLKCLK": clocks,
            "o_FCLKRESETN": resets,
            "i_IRQF2P": Cat(core.irq, Const(0, 19)),
            "i_SAXIHP0RDISSUECAP1EN": Const(0),
            "i_SAXIHP0WRISSUECAP1EN": Const(0),
        }
        for bus, name in ((core.control, CONTROL), (core.memory, MEMORY)):
            ports[f"i_{name}ACLK"] = ClockSignal("sync")
            for signal, member in bus.signature.members.items():
                # What the core drives goes into the processing system.
                side = "i" if member.flow is Out else "o"
                ports[f"{side}_{name}{signal.upper()}"] = getattr(bus, signal)
        for channel in ("AR", "AW"):
            ports[f"i_SAXIHP0{channel}CACHE"] = Const(CACHE, 4)
            ports[f"i_SAXIHP0{channel}PROT"] = Const(0, 3)
            ports[f"i_SAXIHP0{channel}LOCK"] = Const(0, 2)
            ports[f"i_SAXIHP0{channel}QOS"] = Const(0, 4)
        m.submodules.processing_system = Instance("PS7", **ports)
        return m
