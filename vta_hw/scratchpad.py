"""The on-chip memories, as banks of block RAM with one read and one write port each.

A bank is the high bits of a word address.  The issue logic lets units work at the same time only in
different banks, so each bank simply serves whichever unit enables it.  Addresses wrap: bits above
the depth are dropped.

What a read gives whose word is written in the same cycle is not defined, and no unit uses it: GEMM
replaces the one word it may read so, and tokens and banks keep all others apart.
"""

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory as BlockMemory
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .ports import ADDRESS_BITS, ReadPort, WritePort

__all__ = ["BankedScratchpad", "SimpleScratchpad", "TablePort", "TableScratchpad", "TapScratchpad"]


NO_COLLISIONS = {"no_rw_check": 1}
"""Tells Yosys not to build what makes a read beside a write of the same word give the old value."""


class BankedScratchpad(wiring.Component):
    """ACT or ACC: several readers and writers, one a bank at a time.

    Parameters
    ----------
    memory : Memory
        ``ACT`` or ``ACC``.
    readers, writers : sequence of str
        Names of the ports.

    Members
    -------
    read_<name> : In(ReadPort(width))
        Data follows in the next cycle.
    write_<name> : In(WritePort(width))
        Visible to reads in the next cycle.
    """

    def __init__(
        self,
        config: HardwareConfig,
        memory: Memory,
        readers: Sequence[str],
        writers: Sequence[str],
    ) -> None:
        self._readers, self._writers = tuple(readers), tuple(writers)
        self._name = memory.value
        self._width = 8 * config.word_bytes(memory)
        self._banks = config.banks(memory)
        self._words = config.bank_words(memory)
        ports = {f"read_{name}": In(ReadPort(self._width)) for name in readers}
        ports |= {f"write_{name}": In(WritePort(self._width)) for name in writers}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        readers = [getattr(self, f"read_{name}") for name in self._readers]
        writers = [getattr(self, f"write_{name}") for name in self._writers]
        bank_bits = (self._banks - 1).bit_length()
        word_bits = (self._words - 1).bit_length()
        outputs = []
        for bank in range(self._banks):
            block = _block_memory(self._width, self._words)
            m.submodules[f"{self._name}_bank{bank}"] = block
            read, write = block.read_port(), block.write_port()
            outputs.append(read.data)

            def here(port: Value, bank: int = bank) -> Value:
                chosen = port.address[word_bits : word_bits + bank_bits] == bank
                return port.enable & chosen if bank_bits else port.enable

            read_address, read_enable = _select([(here(p), p.address) for p in readers])
            m.d.comb += [read.addr.eq(read_address), read.en.eq(read_enable)]
            write_address, write_enable = _select([(here(p), p.address) for p in writers])
            write_data, _ = _select([(here(p), p.data) for p in writers])
            m.d.comb += [
                write.addr.eq(write_address),
                write.data.eq(write_data),
                write.en.eq(write_enable),
            ]
        for port in readers:
            bank_now = Signal(max(bank_bits, 1))
            m.d.sync += bank_now.eq(port.address[word_bits : word_bits + bank_bits])
            m.d.comb += port.data.eq(Array(outputs)[bank_now] if bank_bits else outputs[0])
        return m


def _block_memory(width: int, depth: int) -> BlockMemory:
    return BlockMemory(shape=unsigned(width), depth=depth, init=[], attrs=NO_COLLISIONS)


def _select(choices: list[tuple[Value, Value]]) -> tuple[Value, Value]:
    """The value of the first choice whose condition holds (else the last), and whether one
    holds.
    """
    value, any_holds = choices[-1][1], choices[-1][0]
    for holds, candidate in reversed(choices[:-1]):
        value, any_holds = Mux(holds, candidate, value), holds | any_holds
    return value, any_holds


class SimpleScratchpad(wiring.Component):
    """WGT or PAR: one writer, one reader.

    Members
    -------
    read : In(ReadPort(width))
    write : In(WritePort(width))
    """

    def __init__(self, config: HardwareConfig, memory: Memory) -> None:
        self._name = memory.value
        self._width = 8 * config.word_bytes(memory)
        self._depth = config.depth(memory)
        super().__init__({"read": In(ReadPort(self._width)), "write": In(WritePort(self._width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        block = _block_memory(self._width, self._depth)
        m.submodules[f"{self._name}_bank0"] = block
        read, write = block.read_port(), block.write_port()
        m.d.comb += [
            read.addr.eq(self.read.address),
            read.en.eq(self.read.enable),
            self.read.data.eq(read.data),
            write.addr.eq(self.write.address),
            write.en.eq(self.write.enable),
            write.data.eq(self.write.data),
        ]
        return m


class TapScratchpad(wiring.Component):
    """TAP: written word by word, read ``GROUP`` words at a time.

    Members
    -------
    read : In(ReadPort(GROUP * 8 * block))
        The words whose addresses differ from ``address`` in its lowest two bits only, the first
        lowest.
    write : In(WritePort(8 * block))
    """

    GROUP = 4

    def __init__(self, config: HardwareConfig) -> None:
        self._width = 8 * config.word_bytes(Memory.TAP)
        self._depth = config.tap_depth
        super().__init__(
            {"read": In(ReadPort(self.GROUP * self._width)), "write": In(WritePort(self._width))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parts = []
        for part in range(self.GROUP):
            block = _block_memory(self._width, self._depth // self.GROUP)
            m.submodules[f"tap_part{part}"] = block
            read, write = block.read_port(), block.write_port()
            chosen = self.write.address[:2] == part
            m.d.comb += [
                read.addr.eq(self.read.address[2:]),
                read.en.eq(self.read.enable),
                write.addr.eq(self.write.address[2:]),
                write.en.eq(self.write.enable & chosen),
                write.data.eq(self.write.data),
            ]
            parts.append(read.data)
        m.d.comb += self.read.data.eq(Cat(*parts))
        return m


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
        self._lanes = config.block
        self._depth = config.tab_depth
        super().__init__(
            {"read": In(TablePort(config.block)), "write": In(WritePort(8 * config.block))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for lane in range(self._lanes):
            block = _block_memory(8, self._depth)
            m.submodules[f"tab_lane{lane}"] = block
            read, write = block.read_port(), block.write_port()
            m.d.comb += [
                read.addr.eq(self.read.address[lane]),
                read.en.eq(self.read.enable),
                self.read.data[lane].eq(read.data),
                write.addr.eq(self.write.address),
                write.en.eq(self.write.enable),
                write.data.eq(self.write.data.word_select(lane, 8)),
            ]
        return m
