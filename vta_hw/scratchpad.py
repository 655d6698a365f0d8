"""WGT and PAR, of one writer and one reader, and what all on-chip memories share.

A bank is the high bits of a word address.  The issue logic lets units work at the same time only in
different banks, so each bank simply serves whichever unit enables it.  Addresses wrap: bits above
the depth are dropped.

A read of a word that is written in the same cycle has no defined value, and no unit relies on it:
GEMM replaces the one word that it may read so, and tokens and banks keep all others apart.
"""

from amaranth.hdl import Array, Cat, Module, Mux, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory as BlockMemory
from amaranth.lib.wiring import In

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .pipeline import delayed, delays
from .ports import ReadPort, RowPort, WritePort
from .turns import turn_elements

__all__ = ["SimpleScratchpad", "block_memory", "of_turn", "part_name"]


PARAMETER_BITS = 32
"""Bits of a bias or a scale in PAR."""
NO_COLLISIONS = {"no_rw_check": 1}
"""Tells Yosys not to build logic that gives the old value to a read beside a write of its word."""


def of_turn(word: Value, bits: int, turns: list[list[int]], turn: Value) -> Value:
    """The elements of ``word``, of ``bits`` each, that belong to ``turn`` (one-hot)."""
    choices = [Cat(word.word_select(element, bits) for element in places) for places in turns]
    number = Cat(
        Cat(turn[k] for k in range(len(turns)) if k >> bit & 1).any()
        for bit in range((len(turns) - 1).bit_length())
    )
    return Array(choices)[number]


def part_name(name: str, part: int, parts: int) -> str:
    """Name of the memory that holds a part of what is called ``name``."""
    return f"{name}_part{part}" if parts > 1 else name


def block_memory(width: int, depth: int) -> BlockMemory:
    """A memory of words of ``width`` bits."""
    return BlockMemory(shape=unsigned(width), depth=depth, init=[], attrs=NO_COLLISIONS)


class SimpleScratchpad(wiring.Component):
    """WGT or PAR: one writer, one reader.

    Parameters
    ----------
    parts : int
        Equal parts of a word, each read by a port of its own.
    pieces : int
        Equal pieces of a word, each written or not: 1, or a multiple of ``parts``.
    in_turns : bool
        Whether the reader takes the parameters of one turn (``turn_elements``) at a time; with deep
        pipelines, two cycles after the address.
    rows : bool
        Whether PAR has a second writer, never at work in the same cycle.
    apart : int
        With several pieces, how many of them get data of their own: ``WritePort``.
    halves : bool
        Whether these are the first half of the pieces, and the second.

    Members
    -------
    read_<part> : In(ReadPort(width / parts))
    write : In(WritePort(width / pieces, pieces, apart))
    row : In(RowPort())
        With ``rows``.
    """

    def __init__(
        self,
        config: HardwareConfig,
        memory: Memory,
        parts: int = 1,
        pieces: int = 1,
        *,
        in_turns: bool = False,
        rows: bool = False,
        apart: int = 1,
        halves: bool = False,
    ) -> None:
        self._run = pieces // apart if halves else 1
        self._name, self._rows, self._lanes = memory.value, rows, config.block
        self._parts, self._pieces = parts, pieces
        self._width = 8 * config.word_bytes(memory) // parts
        self._depth = config.depth(memory)
        # Biases of all lanes, then scales.
        self._turns = [
            [*lanes, *(config.block + lane for lane in lanes)] for lanes in turn_elements(config)
        ]
        self._registered = in_turns and config.deep_pipelines
        turns = len(self._turns) if in_turns else 1
        reads = {f"read_{part}": In(ReadPort(self._width // turns, turns)) for part in range(parts)}
        port = WritePort(self._width * parts // pieces, pieces, apart)
        more = {"row": In(RowPort())} if rows else {}
        super().__init__({**reads, "write": In(port), **more})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for part in range(self._parts):
            block = block_memory(self._width, self._depth)
            m.submodules[part_name(f"{self._name}_bank0", part, self._parts)] = block
            reader = getattr(self, f"read_{part}")
            enable, data = self.write.enable, self.write.data.word_select(part, self._width)
            pieces = self._pieces // self._parts
            if self._pieces > 1:
                enable = enable.word_select(part, pieces)
                size = self._width // pieces
                first = part * pieces
                data = WritePort.of_pieces(self.write.data, size, first, pieces, self._run)
            address = self.write.address
            if self._rows:
                both = self.row.bias, self.row.scale
                of_row = Cat(*(value.replicate(self._lanes) for value in both))
                data = Mux(self.row.enable, of_row, data)
                address = Mux(self.row.enable, self.row.address, address)
                enable = enable | self.row.enable.replicate(len(enable))
            read = block.read_port()
            write = block.write_port(granularity=self._width // max(1, pieces))
            found = delayed(m, read.data, f"kept{part}") if self._registered else read.data
            if len(reader.data) < self._width:
                turn = delays(m, reader.turn, f"turn{part}", 1 + self._registered)[-1]
                found = of_turn(found, PARAMETER_BITS, self._turns, turn)
            m.d.comb += [
                read.addr.eq(reader.address),
                read.en.eq(1 if self._registered else reader.enable),
                reader.data.eq(found),
                write.addr.eq(address),
                write.en.eq(enable),
                write.data.eq(data),
            ]
        return m
