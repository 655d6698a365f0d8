"""The units on the memory port under test: FETCH, LOAD and STORE, wired as in the accelerator."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.memories import Memory
from dovetail.vta_hw import layouts
from dovetail.vta_hw.axi import Axi4
from dovetail.vta_hw.fetch import Fetch
from dovetail.vta_hw.load import Load
from dovetail.vta_hw.load_writes import write_port
from dovetail.vta_hw.memory_port import MemoryPort
from dovetail.vta_hw.ports import UnitControl, WritePort
from dovetail.vta_hw.scratchpad import SimpleScratchpad
from dovetail.vta_hw.store import Store

__all__ = ["APART", "CONFIG", "PIECES", "MemoryTop", "make_memory_top"]

CONFIG = find_config("tiny")
PIECES = {
    memory: CONFIG.word_bytes(memory) // CONFIG.bus_bytes if memory in CONFIG.by_beats else 1
    for memory in Memory
}
"""Pieces of a word that LOAD writes one by one."""
APART = {
    memory: 1 + (memory in (Memory.WGT, Memory.PAR) and memory in CONFIG.short_memories)
    for memory in Memory
}
"""How many of them get data of their own."""
FETCH = {"full": In(4), "push": Out(4), "illegal": Out(1), "word": Out(8 * INSTRUCTION_BYTES)}
PROGRESS = ("requested", "received", "dispatched")
FLAGS = (
    *("fetch_outside", "load_outside", "store_outside"),
    *("read_error", "write_error", "quiet"),
)


class MemoryTop(wiring.Component):
    """FETCH, LOAD and STORE behind one AXI4 port, and a memory for STORE to read.

    Members
    -------
    memory : Out(Axi4)
    enable, window_base, window_limit, program_address, program_count : In
    full, push, illegal, word, requested, received, dispatched
        As of ``Fetch``.
    load, store : In(UnitControl)
    write_<memory> : Out(WritePort)
        What LOAD writes.
    act : In(WritePort)
        Writes what STORE reads.
    fetch_outside, load_outside, store_outside, read_error, write_error, quiet : Out(1)
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        widths = {memory: 8 * config.word_bytes(memory) for memory in Memory}
        super().__init__(
            {
                "memory": Out(Axi4(config.bus_bytes)),
                "enable": In(1),
                **{
                    name: In(32)
                    for name in ("window_base", "window_limit", "program_address", "program_count")
                },
                **FETCH,
                **{name: Out(32) for name in PROGRESS},
                "load": In(UnitControl(layouts.LOAD)),
                "store": In(UnitControl(layouts.STORE)),
                **{f"write_{m.value}": Out(write_port(m, config)) for m in Memory},
                "act": In(WritePort(widths[Memory.ACT])),
                **{name: Out(1) for name in FLAGS},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.port = port = MemoryPort(config)
        m.submodules.fetch = fetch = Fetch(config)
        m.submodules.load = load = Load(config)
        m.submodules.store = store = Store(config)
        m.submodules.scratchpad = scratchpad = SimpleScratchpad(config, Memory.ACT)
        bus = port.memory
        connect(m, bus, flipped(self.memory))
        connect(m, fetch.bursts, port.fetch)
        connect(m, load.bursts, port.load)
        connect(m, store.bursts, port.store)
        connect(m, store.act, scratchpad.read_0)
        connect(m, flipped(self.act), scratchpad.write)
        connect(m, flipped(self.load), load.control)
        connect(m, flipped(self.store), store.control)
        for memory in Memory:
            name = f"write_{memory.value}"
            connect(m, getattr(load, name), flipped(getattr(self, name)))
        m.d.comb += [
            fetch.enable.eq(self.enable),
            port.enable.eq(self.enable),
            store.enable.eq(self.enable),
            port.window_base.eq(self.window_base),
            port.window_limit.eq(self.window_limit),
            fetch.address.eq(self.program_address),
            fetch.count.eq(self.program_count),
            fetch.full.eq(self.full),
            fetch.beat.eq(port.fetch_beat),
            fetch.beat_last.eq(bus.rlast),
            fetch.beat_data.eq(bus.rdata),
            load.beat.eq(port.load_beat),
            load.announced.eq(port.load_announced),
            load.beat_data.eq(bus.rdata),
            bus.wvalid.eq(store.beat_valid),
            bus.wdata.eq(store.beat),
            bus.wstrb.eq(store.writes.replicate(config.bus_bytes)),
            bus.wlast.eq(store.last),
            store.beat_ready.eq(bus.wready),
            store.response.eq(port.response),
            *(getattr(self, name).eq(getattr(fetch, name)) for name in ("push", "illegal", "word")),
            *(getattr(self, name).eq(getattr(fetch, name)) for name in PROGRESS),
            *(getattr(self, name).eq(getattr(port, name)) for name in FLAGS),
        ]
        return m


def make_memory_top() -> MemoryTop:
    """``MemoryTop`` of ``CONFIG``."""
    return MemoryTop(CONFIG)
