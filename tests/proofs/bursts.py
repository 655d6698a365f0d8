"""Bursts: a block is cut into bursts that cover it exactly and cross no boundary."""

from types import ModuleType

from amaranth.hdl import Mux, Signal

from dovetail.isa.config import HardwareConfig

from .bench import Bench

INNER = {
    "row": "$signal#3",
    "plane": "$signal#4",
    "stride_y": "$signal#5",
    "beats": "$signal#6",
    "y": "$signal#7",
    "z": "$signal#8",
}
"""Registers that Amaranth gives no names: see ``Opened``."""


def cutter(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """The bursts of a block, one after the other, are its rows in the order z, y, from their first
    beat to their last, each byte once.

    The block is followed with counters of rows, planes and beats; addresses of rows are those of
    the manual, ``address + z * stride_z + y * stride_y``, by repeated addition.
    """
    bench = Bench(strengthen)
    cut = bench.add(source.BurstCutter(config))
    port, m = cut.component, bench.module
    size = (config.bus_bytes - 1).bit_length()
    span = config.bus_bytes * config.burst_beats
    started = Signal()
    m.d.sync += started.eq(started | port.start)
    aligned = (port.address | port.stride_y | port.stride_z)[:size] == 0
    bench.assume(~port.start | (~port.more & aligned & (port.count_z != 0)))
    bench.assume(~port.take | port.valid)
    given = {
        name: Signal(getattr(port, name).shape(), name=f"given_{name}")
        for name in ("stride_y", "stride_z", "count_y", "count_z", "row_beats")
    }
    with m.If(port.start):
        m.d.sync += [register.eq(getattr(port, name)) for name, register in given.items()]

    # Where the next beat must be, and how many there are left.
    y, z = Signal(12), Signal(12)
    plane, row, done = Signal(32), Signal(32), Signal(24)
    ends_row = done + port.burst.beats == given["row_beats"]
    last_y, last_z = y + 1 == given["count_y"], z + 1 == given["count_z"]
    over = Signal()
    with m.If(port.start):
        m.d.sync += [plane.eq(port.address), row.eq(port.address), done.eq(0), y.eq(0), z.eq(0)]
        m.d.sync += over.eq((port.row_beats == 0) | (port.count_y == 0))
    with m.Elif(port.take):
        next_row, next_plane = Signal(32), Signal(32)
        m.d.comb += next_row.eq(row + given["stride_y"])
        m.d.comb += next_plane.eq(plane + given["stride_z"])
        m.d.sync += done.eq(Mux(ends_row, 0, done + port.burst.beats))
        with m.If(ends_row):
            m.d.sync += y.eq(Mux(last_y, 0, y + 1))
            m.d.sync += row.eq(Mux(last_y, next_plane, next_row))
            with m.If(last_y):
                m.d.sync += [plane.eq(next_plane), z.eq(z + 1), over.eq(last_z)]
    address, offset, end = Signal(32), Signal(32), Signal(33)
    m.d.comb += [
        address.eq(row + (done << size)),
        offset.eq(address % span),
        end.eq(offset + (port.burst.beats << size)),
    ]
    offered = port.valid & started
    bench.check(~offered | (port.burst.address == address), "it begins where the last one ended")
    left = given["row_beats"] - done
    bench.check(~offered | (port.burst.beats != 0), "it has a beat")
    bench.check(~offered | (port.burst.beats <= left), "it ends with its row")
    bench.check(~offered | (end <= span), "it crosses no boundary")
    whole = (port.burst.beats == left) | (end == span)
    bench.check(~offered | whole, "it is as long as it may be")
    bench.check(~started | (port.more == ~over), "there are more until the block is over")
    if config.deep_pipelines:
        since, now = cut["since"], cut["to_boundary"]
        known = (cut["final"] == (cut["left"] <= now)) & (port.burst.beats == cut["cut_here"])
        bench.lemma(~since[0] | known, "the burst is of these registers")
        bench.lemma(~since[1] | since[0], "1 follows 0")
    running = started & port.more
    for name, value in {
        "now": address,
        "plane": plane,
        "row": row,
        "stride_y": given["stride_y"].as_unsigned(),
        "stride_z": given["stride_z"].as_unsigned(),
        "y": (given["count_y"] - y)[:12],
        "z": (given["count_z"] - z)[:12],
        "rows": given["count_y"],
        "beats": given["row_beats"],
        "left": left[:24],
    }.items():
        bench.lemma(~running | (cut[INNER.get(name, name)] == value), name)
    bench.lemma(~running | (done < given["row_beats"]), "beats are left")
    bench.lemma(~running | ((y < given["count_y"]) & (z < given["count_z"])), "rows are left")
    every = address | given["stride_y"].as_unsigned() | given["stride_z"].as_unsigned()
    every = every | row | plane
    bench.lemma(~running | (every[:size] == 0), "beats are aligned")
    bench.lemma(started | ~port.more, "nothing before the start")
    seen = Signal()
    m.d.sync += seen.eq(seen | (offered & (z == 1) & (y == 1) & (done != 0)))
    bench.cover(seen & over)
    return bench
