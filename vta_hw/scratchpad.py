"""The on-chip memories, as banks of block RAM with one read and one write port each.

A bank is the high bits of a word address.  The issue logic lets units work at the same time only in
different banks, so each bank simply serves whichever unit enables it.  Addresses wrap: bits above
the depth are dropped.

What a read gives whose word is written in the same cycle is not defined, and no unit uses it: GEMM
replaces the one word it may read so, and tokens and banks keep all others apart.
"""

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Mux, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory as BlockMemory
from amaranth.lib.wiring import In, Member, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .pipeline import delayed, delays
from .ports import ADDRESS_BITS, ReadPort, WritePort

__all__ = [
    "BankedScratchpad",
    "SimpleScratchpad",
    "TablePort",
    "TableScratchpad",
    "TapScratchpad",
    "part_name",
]


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
    registered : sequence of str
        Readers whose data come two cycles after the address: each bank's word is kept first.
    parted : sequence of str
        Readers and writers that have a port for each of ``parts`` parts of a word.
    parts : int
        Equal parts of a word, in memories of their own.

    Members
    -------
    read_<name> : In(ReadPort(width))
        Data follows in the next cycle, or the one after.
    write_<name> : In(WritePort(width))
        Visible to reads in the next cycle; with deep pipelines, in the one after.
    read_<name>_<part>, write_<name>_<part> : In(ReadPort), In(WritePort)
        Of a part of each word, for those ``parted``.
    """

    def __init__(
        self,
        config: HardwareConfig,
        memory: Memory,
        readers: Sequence[str],
        writers: Sequence[str],
        *,
        registered: Sequence[str] = (),
        parted: Sequence[str] = (),
        parts: int = 1,
    ) -> None:
        self._readers, self._writers = tuple(readers), tuple(writers)
        self._registered, self._parted = frozenset(registered), frozenset(parted)
        self._late = config.deep_pipelines
        self._name = memory.value
        self._parts = parts
        self._width = 8 * config.word_bytes(memory) // parts
        self._banks = config.banks(memory)
        self._words = config.bank_words(memory)
        ports: dict[str, Member] = {}
        for kind, names, signature in (
            ("read", self._readers, ReadPort),
            ("write", self._writers, WritePort),
        ):
            for name in names:
                if name in self._parted:
                    for part in range(parts):
                        ports[f"{kind}_{name}_{part}"] = In(signature(self._width))
                else:
                    ports[f"{kind}_{name}"] = In(signature(self._width * parts))
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        whole: dict[str, list[Value]] = {}
        for part in range(self._parts):
            for name, found in self._part(m, part).items():
                if name in self._parted:
                    m.d.comb += self._port("read", name, part).data.eq(found)
                else:
                    whole.setdefault(name, []).append(found)
        for name, parts in whole.items():
            m.d.comb += self._port("read", name).data.eq(Cat(*parts))
        return m

    def _port(self, kind: str, name: str, part: int = 0) -> Value:
        return getattr(self, f"{kind}_{name}_{part}" if name in self._parted else f"{kind}_{name}")

    def _part(self, m: Module, part: int) -> dict[str, Value]:
        """The memories of one part; return what each reader reads of it."""
        readers = [self._port("read", name, part) for name in self._readers]
        writers = [self._port("write", name, part) for name in self._writers]
        written = [
            port.data if name in self._parted else port.data.word_select(part, self._width)
            for name, port in zip(self._writers, writers, strict=True)
        ]
        bank_bits = (self._banks - 1).bit_length()
        word_bits = (self._words - 1).bit_length()
        outputs = []
        for bank in range(self._banks):
            block = _block_memory(self._width, self._words)
            m.submodules[part_name(f"{self._name}_bank{bank}", part, self._parts)] = block
            read, write = block.read_port(), block.write_port()
            outputs.append(read.data)

            def here(port: Value, bank: int = bank) -> Value:
                chosen = port.address[word_bits : word_bits + bank_bits] == bank
                return port.enable & chosen if bank_bits else port.enable

            read_address, read_enable = _select([(here(p), p.address) for p in readers])
            m.d.comb += [read.addr.eq(read_address), read.en.eq(read_enable)]
            write_address, write_enable = _select([(here(p), p.address) for p in writers])
            write_data, _ = _select([(here(p), d) for p, d in zip(writers, written, strict=True)])
            if self._late:
                name = f"bank{bank}_part{part}"
                write_address = delayed(m, write_address, f"address_{name}")
                write_enable = delayed(m, write_enable, f"enable_{name}", reset=True)
                write_data = delayed(m, write_data, f"data_{name}")
            m.d.comb += [
                write.addr.eq(write_address),
                write.data.eq(write_data),
                write.en.eq(write_enable),
            ]
        kept: list[Value] = []
        if self._registered:
            kept = [delayed(m, word, f"kept{part}_{k}") for k, word in enumerate(outputs)]
        found: dict[str, Value] = {}
        for name, port in zip(self._readers, readers, strict=True):
            late = name in self._registered
            words = kept if late else outputs
            if not bank_bits:
                found[name] = words[0]
                continue
            bank_of = port.address[word_bits : word_bits + bank_bits]
            found[name] = Array(words)[delays(m, bank_of, f"{name}{part}_bank", 1 + late)[-1]]
        return found


def part_name(name: str, part: int, parts: int) -> str:
    """Name of the memory that holds a part of what is called ``name``."""
    return f"{name}_part{part}" if parts > 1 else name


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

    Parameters
    ----------
    parts : int
        Equal parts of a word, each read by a port of its own.
    pieces : int
        Equal pieces of a word, each written or not: 1, or a multiple of ``parts``.

    Members
    -------
    read_<part> : In(ReadPort(width / parts))
    write : In(WritePort(width / pieces, pieces))
    """

    def __init__(
        self, config: HardwareConfig, memory: Memory, parts: int = 1, pieces: int = 1
    ) -> None:
        self._name = memory.value
        self._parts, self._pieces = parts, pieces
        self._width = 8 * config.word_bytes(memory) // parts
        self._depth = config.depth(memory)
        reads = {f"read_{part}": In(ReadPort(self._width)) for part in range(parts)}
        port = WritePort(self._width * parts // pieces, pieces)
        super().__init__({**reads, "write": In(port)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for part in range(self._parts):
            block = _block_memory(self._width, self._depth)
            m.submodules[part_name(f"{self._name}_bank0", part, self._parts)] = block
            reader = getattr(self, f"read_{part}")
            enable, data = self.write.enable, self.write.data.word_select(part, self._width)
            pieces = self._pieces // self._parts
            if self._pieces > 1:
                enable = enable.word_select(part, pieces)
                data = self.write.data.replicate(pieces)
            read = block.read_port()
            write = block.write_port(granularity=self._width // max(1, pieces))
            m.d.comb += [
                read.addr.eq(reader.address),
                read.en.eq(reader.enable),
                reader.data.eq(read.data),
                write.addr.eq(self.write.address),
                write.en.eq(enable),
                write.data.eq(data),
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
