"""WGT, for a matrix core with or without a clock of its own."""

from amaranth.hdl import Cat, Const, Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory as BlockMemory
from amaranth.lib.wiring import In

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .pipeline import CORE, delayed
from .ports import ReadPort, WritePort
from .scratchpad import SimpleScratchpad, part_name

__all__ = ["HalvedScratchpad", "weight_scratchpad"]

HALVES = 2


def weight_scratchpad(
    config: HardwareConfig, parts: int, pieces: int = 1
) -> "SimpleScratchpad | HalvedScratchpad":
    """WGT of a configuration; parts, pieces: see ``SimpleScratchpad``."""
    apart = 2 if config.nibble_weights and pieces > 1 else 1
    if config.core_clock_ratio == 1:
        return SimpleScratchpad(config, Memory.WGT, parts, pieces, apart=apart)
    return HalvedScratchpad(config, parts, pieces, apart)


class HalvedScratchpad(wiring.Component):
    """WGT, each part of a word read in two halves.

    Every memory has twice as many words of half the width; the two of a part are written together.

    Parameters
    ----------
    parts : int
        Equal parts of a word, each read by a port of its own.
    pieces : int
        Equal pieces of a word, each written or not: 1, or a multiple of ``2 * parts``.
    apart : int
        With several pieces, how many of them get data of their own: ``WritePort``.

    Members
    -------
    read_<part> : In(ReadPort(width / parts / 2))
        The data are in the domain ``CORE``: the lower half of the part in the first half of the
        cycle after the address, the upper in the second.
    write : In(WritePort(width / pieces, pieces, apart))
    """

    def __init__(self, config: HardwareConfig, parts: int, pieces: int, apart: int) -> None:
        self._parts, self._pieces = parts, pieces
        self._width = 8 * config.word_bytes(Memory.WGT) // parts // HALVES
        self._depth = config.wgt_depth
        reads = {f"read_{part}": In(ReadPort(self._width)) for part in range(parts)}
        port = WritePort(8 * config.word_bytes(Memory.WGT) // pieces, pieces, apart)
        super().__init__({**reads, "write": In(port)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pieces = max(1, self._pieces // self._parts // HALVES)
        bits = (self._depth - 1).bit_length()
        odd = Signal(name="odd_cycle0", reset_less=True)
        m.d.sync += odd.eq(~odd)
        for part in range(self._parts):
            name = part_name(f"{Memory.WGT.value}_bank0", part, self._parts)
            block = BlockMemory(shape=unsigned(self._width), depth=HALVES * self._depth, init=[])
            m.submodules[name] = block
            for half in range(HALVES):
                place = HALVES * part + half
                write = block.write_port(granularity=self._width // pieces)
                m.d.comb += write.addr.eq(Cat(Const(half, 1), self.write.address[:bits]))
                if self._pieces == 1:
                    data = self.write.data.word_select(place, self._width)
                    m.d.comb += [write.en.eq(self.write.enable), write.data.eq(data)]
                else:
                    enable = self.write.enable.word_select(place, pieces)
                    m.d.comb += write.en.eq(enable)
                    first = place * pieces
                    data = WritePort.of_pieces(
                        self.write.data, self._width // pieces, first, pieces
                    )
                    m.d.comb += write.data.eq(data)
            if part:
                # Each part has a register of its own, near by, that says which half of a cycle it
                # is: right two cycles after power is there, whatever happens then.
                odd = delayed(m, odd, f"odd_cycle{part}")
            before = delayed(m, odd, f"odd_cycle_before{part}", domain=CORE)
            second = delayed(m, odd ^ before, f"second_half{part}", domain=CORE)
            reader = getattr(self, f"read_{part}")
            address = Cat(second, reader.address[:bits])
            read = block.read_port(domain=CORE)
            m.d.comb += [
                # Read in every cycle, as the output registers of block RAM need it.
                read.addr.eq(delayed(m, address, f"address{part}", domain=CORE)),
                reader.data.eq(read.data),
            ]
        return m
