"""Fetching instructions and handing each to the queue of its unit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.latency import pipeline_stages

from .bursts import Burst
from .legality import Legality
from .pipeline import delayed

__all__ = ["Fetch"]

LOOKS = 3
"""Registers of a deep pipeline behind the waiting instructions: the word, what it would be of each
unit, what it is.
"""


class Fetch(wiring.Component):
    """Keep up to ``fetch_ahead`` instructions requested or waiting; dispatch one a cycle, in order.

    Members
    -------
    enable : In(1)
        A program runs and has not been stopped.
    address, count : In(32)
        Of the program; the address is rounded down to a multiple of ``INSTRUCTION_BYTES``.
    bursts : Out(stream.Signature(Burst))
        One burst an instruction.
    beat : In(1), beat_last : In(1), beat_data : In(8 * bus_bytes)
        A beat of this unit's read data.
    word : Out(512)
        The instruction being dispatched.
    push : Out(4)
        Bit per unit: ``word`` enters that unit's queue in this cycle.
    full : In(4)
        Bit per unit: the queue has no room.
    illegal : Out(1)
        ``word`` is not legal; the machine must stop.
    requested, received, dispatched : Out(32)
        Instructions asked for, arrived and handed on; the index of the next of each.
    finished : Out(1)
        Every instruction is dispatched.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        self._dispatch = pipeline_stages(config).dispatch
        self._receive = pipeline_stages(config).receive
        assert self._dispatch in (0, LOOKS)
        assert self._receive in (0, 1)
        super().__init__(
            {
                "enable": In(1),
                "address": In(32),
                "count": In(32),
                "bursts": Out(stream.Signature(Burst)),
                "beat": In(1),
                "beat_last": In(1),
                "beat_data": In(8 * config.bus_bytes),
                "word": Out(8 * INSTRUCTION_BYTES),
                "push": Out(4),
                "full": In(4),
                "illegal": Out(1),
                "requested": Out(32),
                "received": Out(32),
                "dispatched": Out(32),
                "finished": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        bits = 8 * INSTRUCTION_BYTES
        low = (INSTRUCTION_BYTES - 1).bit_length()
        ahead = Signal(range(config.fetch_ahead + 1))
        dispatch = Signal()
        asked = Signal()
        m.d.comb += [
            self.bursts.valid.eq(
                self.enable & (self.requested != self.count) & (ahead != config.fetch_ahead)
            ),
            self.bursts.payload.address.eq(Cat(Const(0, low), self.address[low:] + self.requested)),
            self.bursts.payload.beats.eq(INSTRUCTION_BYTES // config.bus_bytes),
            asked.eq(self.bursts.ready),
        ]
        m.d.sync += [
            ahead.eq(ahead + asked - dispatch),
            self.requested.eq(self.requested + asked),
            self.dispatched.eq(self.dispatched + dispatch),
        ]

        beat, beat_last, beat_data = self.beat, self.beat_last, self.beat_data
        if self._receive:
            beat = delayed(m, beat, "beat_in", reset=True)
            beat_last = delayed(m, beat_last, "last_in")
            beat_data = delayed(m, beat_data, "data_in")
        m.submodules.waiting = waiting = SyncFIFO(width=bits, depth=config.fetch_ahead)
        earlier = Signal(bits - 8 * config.bus_bytes, reset_less=True)
        whole = Signal(bits)
        m.d.comb += [
            whole.eq((beat_data << earlier.shape().width) | earlier),
            waiting.w_data.eq(whole),
            waiting.w_en.eq(beat & beat_last),
        ]
        m.d.sync += self.received.eq(self.received + (self.beat & self.beat_last))
        with m.If(beat):
            m.d.sync += earlier.eq(whole >> (8 * config.bus_bytes))

        m.submodules.legality = legality = Legality(config)
        word, legal, unit = waiting.r_data, legality.legal, legality.unit
        there: Value = waiting.r_rdy
        if self._dispatch:
            # The instruction stays until it is dispatched: it has cycles to be looked at in.
            word = delayed(m, word, "word_now")
            rules = delayed(m, legality.rules, "rules_now")
            legal = delayed(m, (rules & legality.opcodes).any(), "legal_now")
            since = Signal(LOOKS)
            m.d.sync += since.eq(Mux(dispatch, 0, Cat(there, since)))
            there = since[-1]
        ready = self.enable & there
        room = ~self.full.bit_select(unit, 1)
        finished = self.dispatched == self.count
        m.d.comb += [
            legality.word.eq(word),
            self.word.eq(word),
            self.illegal.eq(ready & ~legal),
            dispatch.eq(ready & legal & room),
            self.push.eq(dispatch << unit),
            waiting.r_en.eq(dispatch),
            self.finished.eq(finished),
        ]
        return m
