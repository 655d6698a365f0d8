"""TAP: the taps of depthwise convolutions, read some words at a time."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .pipeline import delayed, delays
from .ports import ReadPort, WritePort
from .scratchpad import block_memory, of_turn
from .turns import turn_elements

__all__ = ["TapScratchpad"]


class TapScratchpad(wiring.Component):
    """TAP: written word by word, read ``GROUP`` words at a time.

    Members
    -------
    read : In(ReadPort(GROUP * 8 * block, vector_cycles))
        The words whose addresses differ from ``address`` in its lowest two bits only, the first
        lowest; of each, the elements of the turn.  With deep pipelines, two cycles after the
        address.
    write : In(WritePort(8 * block))
    """

    GROUP = 4

    def __init__(self, config: HardwareConfig) -> None:
        self._width = 8 * config.word_bytes(Memory.TAP)
        self._depth = config.tap_depth
        self._registered = config.deep_pipelines
        self._turns = turn_elements(config)
        turns = len(self._turns)
        read = ReadPort(self.GROUP * self._width // turns, turns)
        super().__init__({"read": In(read), "write": In(WritePort(self._width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parts = []
        for part in range(self.GROUP):
            block = block_memory(self._width, self._depth // self.GROUP)
            m.submodules[f"tap_part{part}"] = block
            read, write = block.read_port(), block.write_port()
            chosen = self.write.address[:2] == part
            m.d.comb += [
                read.addr.eq(self.read.address[2:]),
                read.en.eq(1 if self._registered else self.read.enable),
                write.addr.eq(self.write.address[2:]),
                write.en.eq(self.write.enable & chosen),
                write.data.eq(self.write.data),
            ]
            parts.append(delayed(m, read.data, f"kept{part}") if self._registered else read.data)
        if len(self._turns) > 1:
            turn = delays(m, self.read.turn, "turn", 1 + self._registered)[-1]
            parts = [of_turn(part, 8, self._turns, turn) for part in parts]
        m.d.comb += self.read.data.eq(Cat(*parts))
        return m
