"""TAB: the tables of functions, a memory a lane."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .load_writes import table_rows, write_port
from .ports import ADDRESS_BITS
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
    write : In(WritePort(8 * block, rows, rows))
        A word, or several neighbours at once, where LOAD writes these (``table_rows``).
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._registered = config.deep_pipelines
        self._lanes = config.block
        self._depth, self._rows = config.tab_depth, table_rows(config)
        super().__init__(
            {"read": In(TablePort(config.block)), "write": In(write_port(Memory.TAB, config))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows, low, data = self._rows, self._rows.bit_length() - 1, self.write.data
        for lane in range(self._lanes):
            block = block_memory(8 * rows, self._depth // rows)
            m.submodules[f"tab_lane{lane}"] = block
            pieces = 8 if rows > 1 else None
            read, write = block.read_port(), block.write_port(granularity=pieces)
            address, found, place = self.read.address[lane], read.data, self.write.address
            if rows > 1:
                row = Signal(low, name=f"row{lane}", reset_less=True)
                with m.If(read.en):
                    m.d.sync += row.eq(address[:low])
                found = read.data.word_select(row, 8)
                address, place = address[low:], place[low:]
            m.d.comb += [
                read.addr.eq(address),
                read.en.eq(1 if self._registered else self.read.enable),
                self.read.data[lane].eq(found),
                write.addr.eq(place),
                write.en.eq(self.write.enable),
                write.data.eq(
                    Cat(data.word_select(self._lanes * k + lane, 8) for k in range(rows))
                ),
            ]
        return m
