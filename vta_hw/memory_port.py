"""The AXI4 manager: address registers, window check, routing of data and responses."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.latency import pipeline_stages
from dovetail.isa.priorities import READING, Source

from .axi import FETCH_ID, LOAD_ID, Axi4
from .bursts import Burst
from .pipeline import delayed

__all__ = ["MemoryPort"]

INCREMENTING = 1
IDS = {Source.FETCH: FETCH_ID, Source.LOAD: LOAD_ID}
READERS = tuple((each.name.lower(), IDS[each]) for each in READING)
"""Who reads, the first one first: its streams' name, and its AXI identity."""
CHECKS = 3
"""Registers that a deep pipeline adds for a burst: itself, its last byte, whether it is inside."""


class MemoryPort(wiring.Component):
    """Announce bursts one at a time on AR and AW, after checking that they stay in the window.

    Members
    -------
    memory : Out(Axi4)
    enable : In(1)
        Bursts may be taken.
    window_base, window_limit : In(32)
        First and last byte an access may touch.
    fetch, load, store : In(stream.Signature(Burst))
        Bursts to take, each after ``Stages.check`` cycles; FETCH goes before LOAD.
    fetch_outside, load_outside, store_outside : Out(1)
        A burst would be taken in this cycle but leaves the window.
    fetch_beat, load_beat : Out(1)
        A beat of ``memory.rdata`` for this unit.
    read_error : Out(1)
        The beat came with an error; of LOAD's if ``load_beat``.
    write_error : Out(1), response : Out(1)
        A write was answered, and with an error.
    quiet : Out(1)
        No burst is announced and unanswered.
    load_announced : Out(1)
        With ``load_ahead``: a burst of LOAD is on offer to the memory.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._bus_bytes = config.bus_bytes
        self._check = pipeline_stages(config).check
        assert self._check in (0, CHECKS)
        self._ahead = config.two_loads
        flags = (
            *("fetch_outside", "load_outside", "store_outside", "fetch_beat", "load_beat"),
            *("read_error", "write_error", "response", "quiet"),
            *(("load_announced",) if self._ahead else ()),
        )
        super().__init__(
            {
                "memory": Out(Axi4(config.bus_bytes)),
                "enable": In(1),
                "window_base": In(32),
                "window_limit": In(32),
                **{name: In(stream.Signature(Burst)) for name in ("fetch", "load", "store")},
                **{name: Out(1) for name in flags},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.memory
        size_log2 = (self._bus_bytes - 1).bit_length()
        for channel in ("ar", "aw"):
            m.d.comb += [
                getattr(bus, f"{channel}size").eq(size_log2),
                getattr(bus, f"{channel}burst").eq(INCREMENTING),
            ]
        reads, writes = Signal(32), Signal(32)
        taken_read = self._address(m, "ar", READERS)
        taken_write = self._address(m, "aw", (("store", 0),))
        beat = Signal()
        m.d.comb += [
            bus.rready.eq(1),
            bus.bready.eq(1),
            beat.eq(bus.rvalid),
            self.fetch_beat.eq(beat & (bus.rid == FETCH_ID)),
            self.load_beat.eq(beat & (bus.rid == LOAD_ID)),
            self.read_error.eq(beat & bus.rresp[1]),
            self.response.eq(bus.bvalid),
            self.write_error.eq(bus.bvalid & bus.bresp[1]),
            self.quiet.eq((reads == 0) & (writes == 0)),
        ]
        if self._ahead:
            m.d.comb += self.load_announced.eq(bus.arvalid & (bus.arid == LOAD_ID))
        m.d.sync += [
            reads.eq(reads + taken_read - (beat & bus.rlast)),
            writes.eq(writes + taken_write - bus.bvalid),
        ]
        return m

    def _address(self, m: Module, channel: str, sources: tuple[tuple[str, int], ...]) -> Signal:
        """The register in front of an address channel; return whether it takes a burst now."""
        bus = self.memory
        signals = {name: getattr(bus, f"{channel}{name}") for name in ("id", "addr", "len")}
        valid, ready = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready")
        taken = Signal(name=f"{channel}_taken")
        with m.If(valid & ready):
            m.d.sync += valid.eq(0)
        free = self.enable & ~valid
        for name, identity in sources:
            burst, offered, inside = self._checked(m, name)
            takes = Signal(name=f"{name}_takes")
            m.d.comb += [
                takes.eq(free & offered & inside),
                getattr(self, f"{name}_outside").eq(free & offered & ~inside),
                getattr(self, name).ready.eq(takes),
            ]
            with m.If(takes):
                m.d.comb += taken.eq(1)
                m.d.sync += [
                    valid.eq(1),
                    signals["id"].eq(identity),
                    signals["addr"].eq(burst.address),
                    signals["len"].eq(burst.beats - 1),
                ]
            free = free & ~offered
        return taken

    def _checked(self, m: Module, name: str) -> tuple[Value, Value, Value]:
        """The burst that a unit offers; whether it is offered here; whether it is inside.

        A burst stays as it is until it is taken: in a deep pipeline it has cycles to be checked in.
        """
        offer = getattr(self, name)
        deep = self._check > 0

        def deeper(value: Value, what: str) -> Value:
            return delayed(m, value, f"{name}_{what}") if deep else value

        burst = Signal(Burst, name=f"{name}_burst")
        m.d.comb += burst.eq(deeper(offer.payload.as_value(), "given"))
        beyond = burst.address + (burst.beats << (self._bus_bytes - 1).bit_length())
        final = deeper((beyond - 1)[:33], "final")
        inside = (burst.address >= self.window_base) & (final <= self.window_limit)
        offered: Value = offer.valid
        if deep:
            since = Signal(self._check, name=f"{name}_since")
            m.d.sync += since.eq(Mux(offer.ready, 0, Cat(offer.valid, since)))
            offered = since[-1]
        return burst, offered, deeper(inside, "inside")
