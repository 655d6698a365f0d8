"""The design that Verilator runs: the accelerator and its DRAM, without the bytes."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Unit

from .accelerator import Accelerator
from .axi import Axi4Lite
from .dram import DramModel
from .registers import ADDRESS_BITS

__all__ = ["SimulationTop"]

TIMING = {"latency": 10, "interval": 4, "queue_bursts": 7, "turnaround": 6, "response": 6}


class SimulationTop(wiring.Component):
    """Accelerator and DRAM model.

    Members
    -------
    host : In(Axi4Lite)
    latency, interval, queue_bursts, turnaround, response : In
        Of the DRAM model.
    address, read_data, write, write_data, write_strobe
        The DRAM model's bytes.
    trace_* : Out
        As of the accelerator.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        bits = 8 * config.bus_bytes
        super().__init__(
            {
                "host": In(Axi4Lite(ADDRESS_BITS)),
                **{name: In(width) for name, width in TIMING.items()},
                "address": Out(32),
                "read_data": In(bits),
                "write": Out(1),
                "write_data": Out(bits),
                "write_strobe": Out(config.bus_bytes),
                "trace_dispatch": Out(len(Unit)),
                "trace_accept": Out(len(Unit)),
                "trace_done": Out(len(Unit)),
                "trace_cycle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.accelerator = accelerator = Accelerator(self._config)
        m.submodules.dram = dram = DramModel(self._config)
        connect(m, accelerator.memory, dram.bus)
        connect(m, flipped(self.host), accelerator.host)
        for name in (*TIMING, "read_data"):
            m.d.comb += getattr(dram, name).eq(getattr(self, name))
        for name in ("address", "write", "write_data", "write_strobe"):
            m.d.comb += getattr(self, name).eq(getattr(dram, name))
        for name in ("dispatch", "accept", "done", "cycle"):
            m.d.comb += getattr(self, f"trace_{name}").eq(getattr(accelerator, f"trace_{name}"))
        return m
