"""FETCH asks for one burst an instruction, in order, and keeps to what the port assumes."""

from types import ModuleType

from amaranth.hdl import Signal

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig

from .bench import Bench


def requests(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """A burst on offer stays; the n-th is all of instruction n; few enough are under way."""
    bench = Bench(strengthen)
    fetch = bench.add(source.Fetch(config))
    port, m = fetch.component, bench.module
    address, count = bench.constant(32, "program"), bench.constant(32, "count")
    m.d.comb += [port.address.eq(address), port.count.eq(count)]
    enable = bench.before(port.enable, "enabled", init=1)
    bench.assume(~port.enable | enable)
    bench.assume(~port.bursts.ready | port.bursts.valid)
    payload = port.bursts.payload
    waits = bench.before(port.bursts.valid & ~port.bursts.ready, "waits")
    was = bench.before(payload.as_value(), "was")
    stays = port.bursts.valid & (payload.as_value() == was)
    bench.check(~(waits & port.enable) | stays, "a burst on offer stays")
    taken = Signal(32)
    m.d.sync += taken.eq(taken + port.bursts.ready)
    place = ((address >> 6 << 6) + (taken << 6))[:32]
    exact = (payload.address == place) & (payload.beats * config.bus_bytes == INSTRUCTION_BYTES)
    bench.check(~port.bursts.valid | exact, "the n-th burst is all of instruction n")
    bench.check(~port.bursts.ready | (taken != count), "no more than the program has")
    under_way = Signal(32)
    dispatched = fetch["dispatch"]
    m.d.sync += under_way.eq(under_way + port.bursts.ready - dispatched)
    bench.assume(~dispatched | (under_way != 0))
    bench.check(under_way <= config.fetch_ahead, "no more than fetch_ahead are under way")
    bench.lemma(fetch["ahead"] == under_way, "those under way")
    bench.lemma(port.requested == taken, "those asked for")
    bench.cover((under_way == config.fetch_ahead) & (taken == 3 + config.fetch_ahead))
    return bench
