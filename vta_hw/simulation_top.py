"""The design that Verilator runs: the accelerator and its memory, without the bytes."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Unit
from dovetail.isa.sdram import COLUMN_BYTES

from .accelerator import Accelerator
from .axi import Axi4Lite
from .dram import DramModel
from .registers import ADDRESS_BITS
from .sdram_memory import SdramMemory

__all__ = ["SimulationTop", "memory_bytes"]

TIMING = {"latency": 10, "interval": 4, "queue_bursts": 7, "turnaround": 6, "response": 6}


def memory_bytes(config: HardwareConfig) -> int:
    """Bytes that the memory of ``SimulationTop`` moves at a time."""
    return config.bus_bytes if config.dram.sdram is None else COLUMN_BYTES


class SimulationTop(wiring.Component):
    """Accelerator and DRAM model, or the SDRAM and its controller when the configuration has one.

    Members
    -------
    host : In(Axi4Lite)
    latency, interval, queue_bursts, turnaround, response : In
        Of the DRAM model; an SDRAM has its own.
    address, read_data, write, write_data, write_strobe
        The memory's bytes, ``memory_bytes`` at a time.
    ready : Out(1)
        Memory is initialised.
    violation : Out(8)
        Of the SDRAM's data sheet.
    trace_* : Out
        As of the accelerator.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        size = memory_bytes(config)
        super().__init__(
            {
                "host": In(Axi4Lite(ADDRESS_BITS)),
                **{name: In(width) for name, width in TIMING.items()},
                "address": Out(32),
                "read_data": In(8 * size),
                "write": Out(1),
                "write_data": Out(8 * size),
                "write_strobe": Out(size),
                "ready": Out(1),
                "violation": Out(8),
                "trace_dispatch": Out(len(Unit)),
                "trace_accept": Out(len(Unit)),
                "trace_done": Out(len(Unit)),
                "trace_cycle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.accelerator = accelerator = Accelerator(self._config)
        memory: SdramMemory | DramModel
        if self._config.dram.sdram is None:
            m.submodules.dram = memory = DramModel(self._config)
            for name in TIMING:
                m.d.comb += getattr(memory, name).eq(getattr(self, name))
            m.d.comb += self.ready.eq(1)
        else:
            m.submodules.sdram = memory = SdramMemory(self._config)
            m.d.comb += [
                memory.running.eq(accelerator.trace_cycle),
                self.ready.eq(memory.ready),
                self.violation.eq(memory.violation),
            ]
        connect(m, accelerator.memory, memory.bus)
        connect(m, flipped(self.host), accelerator.host)
        m.d.comb += memory.read_data.eq(self.read_data)
        for name in ("address", "write", "write_data", "write_strobe"):
            m.d.comb += getattr(self, name).eq(getattr(memory, name))
        for name in ("dispatch", "accept", "done", "cycle"):
            m.d.comb += getattr(self, f"trace_{name}").eq(getattr(accelerator, f"trace_{name}"))
        return m
