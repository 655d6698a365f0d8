"""TAB: the tables of functions, a memory a lane."""

from amaranth.hdl import Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig

from .ports import ADDRESS_BITS, WritePort
from .scratchpad import block_memory

__all__ = ["TablePort", "TableScratchpad"]


class TablePort(wiring.Signature):
    """Reader's side of TAB: each lane reads a word of its own.

    Members
    -------
    enable : Out(1)
        Read this cycle.
    address : Out(array of ADDRESS_BITS)
        Word of each lane.
    data : In(array of 8 bits)
        Byte of each lane, in the next cycle.
    """

    def __init__(self, lanes: int) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "address": Out(data.ArrayLayout(unsigned(ADDRESS_BITS), lanes)),
                "data": In(data.ArrayLayout(unsigned(8), lanes)),
            }
        )


class TableScratchpad(wiring.Component):
    """TAB: a memory a lane, written together, read apart.

    Members
    -------
    read : In(TablePort(block))
    write : In(WritePort(8 * block))
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._registered = config.deep_pipelines
        self._lanes = config.block
        self._depth = config.tab_depth
        super().__init__(
            {"read": In(TablePort(config.block)), "write": In(WritePort(8 * config.block))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for lane in range(self._lanes):
            block = block_memory(8, self._depth)
            m.submodules[f"tab_lane{lane}"] = block
            read, write = block.read_port(), block.write_port()
            m.d.comb += [
                read.addr.eq(self.read.address[lane]),
                read.en.eq(1 if self._registered else self.read.enable),
                self.read.data[lane].eq(read.data),
                write.addr.eq(self.write.address),
                write.en.eq(self.write.enable),
                write.data.eq(self.write.data.word_select(lane, 8)),
            ]
        return m
