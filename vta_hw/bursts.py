"""Cutting the rows of a DRAM block into bursts."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.latency import pipeline_stages

__all__ = ["BEATS_BITS", "Burst", "BurstCutter"]

BEATS_BITS = 9
"""Bits of a number of beats in a burst (1 to 256)."""

Burst = data.StructLayout({"address": 32, "beats": BEATS_BITS})
"""First byte and number of beats of a burst."""


class BurstCutter(wiring.Component):
    """Offer the bursts of a block, rows in the order z, y, cut at multiples of a burst's length.

    Members
    -------
    start : In(1)
        Take the block on the other inputs; the first burst is offered in the next cycle.
    address, stride_y, stride_z, count_y, count_z : In
        The block, as in the instruction.
    row_beats : In(24)
        Beats in a row; 0 for an empty block.
    valid : Out(1)
        ``burst`` is offered.
    more : Out(1)
        There is a burst left.
    burst : Out(Burst)
    take : In(1)
        Go on to the next burst, which is offered in the next cycle, or ``Stages.cut`` later.
    """

    start: In(1)
    address: In(32)
    stride_y: In(signed(32))
    stride_z: In(signed(32))
    count_y: In(12)
    count_z: In(12)
    row_beats: In(24)
    valid: Out(1)
    more: Out(1)
    burst: Out(Burst)
    take: In(1)

    def __init__(self, config: HardwareConfig) -> None:
        self._bus_bytes = config.bus_bytes
        self._burst_beats = config.burst_beats
        self._cut = pipeline_stages(config).cut
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shift = (self._bus_bytes - 1).bit_length()
        bits = (self._burst_beats - 1).bit_length()
        row, plane, now = Signal(32), Signal(32), Signal(32)
        stride_y, stride_z = Signal(32), Signal(32)
        beats, left = Signal(24), Signal(24)
        y, z, rows = Signal(12), Signal(12), Signal(12)

        to_boundary = Signal(BEATS_BITS)
        final = Signal()
        cut_here = Signal(BEATS_BITS)
        ends_here = left <= to_boundary
        m.d.comb += [
            to_boundary.eq(self._burst_beats - now[shift : shift + bits]),
            cut_here.eq(Mux(ends_here, left, to_boundary)),
            self.burst.address.eq(now),
        ]
        if self._cut:
            since = Signal(self._cut)
            m.d.sync += [
                since.eq(Mux(self.start | self.take, 0, Cat(1, since))),
                final.eq(ends_here),
                self.burst.beats.eq(cut_here),
            ]
            m.d.comb += self.valid.eq(self.more & since[-1])
        else:
            m.d.comb += [
                final.eq(ends_here),
                self.burst.beats.eq(cut_here),
                self.valid.eq(self.more),
            ]
        next_row, next_plane = Signal(32), Signal(32)
        m.d.comb += [next_row.eq(row + stride_y), next_plane.eq(plane + stride_z)]
        with m.If(self.start):
            m.d.sync += [
                self.more.eq((self.row_beats != 0) & (self.count_y != 0)),
                *(register.eq(self.address) for register in (row, plane, now)),
                stride_y.eq(self.stride_y),
                stride_z.eq(self.stride_z),
                beats.eq(self.row_beats),
                left.eq(self.row_beats),
                rows.eq(self.count_y),
                y.eq(self.count_y),
                z.eq(self.count_z),
            ]
        with m.Elif(self.take & ~final):
            m.d.sync += [
                now.eq(now + (self.burst.beats << shift)),
                left.eq(left - self.burst.beats),
            ]
        with m.Elif(self.take):
            m.d.sync += left.eq(beats)
            with m.If(y != 1):
                m.d.sync += [y.eq(y - 1), row.eq(next_row), now.eq(next_row)]
            with m.Elif(z != 1):
                m.d.sync += [y.eq(rows), z.eq(z - 1)]
                m.d.sync += [register.eq(next_plane) for register in (plane, row, now)]
            with m.Else():
                m.d.sync += self.more.eq(0)
        return m
