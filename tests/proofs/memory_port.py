"""The AXI4 manager: its window, what it announces, and that it keeps to the protocol."""

from types import ModuleType

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from dovetail.isa.config import HardwareConfig

from .bench import Bench, Opened

UNITS = ("fetch", "load", "store")
READS = ("fetch", "load")


def _steady(bench: Bench, port: Opened) -> None:
    """A burst has 1 to 256 beats and stays as it is until it is taken or the run is stopped; a
    stopped run goes on only after a reset.
    """
    enable = port.component.enable
    bench.assume(~enable | bench.before(enable, "enabled", init=1))
    for name in UNITS:
        offer = getattr(port.component, name)
        payload = offer.payload.as_value()
        waits = bench.before(offer.valid & ~offer.ready, f"{name}_waits")
        before = bench.before(payload, f"{name}_before")
        bench.assume(~waits | ~enable | (offer.valid & (payload == before)))
        bench.assume((offer.payload.beats != 0) & (offer.payload.beats <= 256))


def _bench(
    source: ModuleType, config: HardwareConfig, strengthen: bool
) -> tuple[Bench, Opened, Value, Value]:
    bench = Bench(strengthen)
    port = bench.add(source.MemoryPort(config))
    base, limit = bench.constant(32, "base"), bench.constant(32, "limit")
    bench.module.d.comb += [
        port.component.window_base.eq(base),
        port.component.window_limit.eq(limit),
    ]
    _steady(bench, port)
    return bench, port, base, limit


def window(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """Announced bursts are those a unit asked for, and inside the window."""
    bench, port, base, limit = _bench(source, config, strengthen)
    bus = port.component.memory
    size = (config.bus_bytes - 1).bit_length()
    for channel in ("ar", "aw"):
        valid, address = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}addr")
        end = Signal(34, name=f"{channel}_end")
        bench.module.d.comb += end.eq(address + ((getattr(bus, f"{channel}len") + 1) << size))
        bench.check(~valid | ((address >= base) & (end - 1 <= limit)), "inside the window")
    _checks(bench, port, base, limit, size)
    long = (bus.arlen == 15) & (bus.araddr == base) & (base != 0)
    bench.cover(bus.arvalid & long & bus.awvalid & (bus.awaddr > base))
    outside = port.component
    bench.cover(outside.load_outside & ~outside.fetch_outside)
    return bench


def _checks(bench: Bench, port: Opened, base: Value, limit: Value, size: int) -> None:
    """Registers of a deep pipeline are of the burst that is offered, when they are asked."""
    if "load_final" not in port:
        return
    for name in UNITS:
        offer = getattr(port.component, name)
        since = port[f"{name}_since"]
        beyond = (offer.payload.address + (offer.payload.beats << size) - 1)[:33]
        given, final = port[f"{name}_given"], port[f"{name}_final"]
        fits = (offer.payload.address >= base) & (final <= limit)
        stopped = ~port.component.enable
        taken = given == offer.payload.as_value()
        bench.lemma(stopped | ~since[0] | (offer.valid & taken), "the burst")
        bench.lemma(stopped | ~since[1] | (since[0] & (final == beyond)), "its last byte")
        inside = port[f"{name}_inside"] == fits
        bench.lemma(stopped | ~since[2] | (since[1] & inside), "whether it is inside")


def protocol(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """AXI's rules of the address channels; nothing new is announced once the run is stopped."""
    bench, port, base, limit = _bench(source, config, strengthen)
    bus, unit = port.component.memory, port.component
    size = (config.bus_bytes - 1).bit_length()
    for channel in ("ar", "aw"):
        names = [f"{channel}{each}" for each in ("id", "addr", "len", "size", "burst")]
        payload = Cat(*(getattr(bus, each) for each in names))
        valid, ready = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready")
        waits = bench.before(valid & ~ready, f"{channel}_waits")
        before = bench.before(payload, f"{channel}_before")
        bench.check(~waits | (valid & (payload == before)), "stable until it is accepted")
        bench.check(getattr(bus, f"{channel}size") == size, "whole beats")
        bench.check(getattr(bus, f"{channel}burst") == 1, "INCR")
        was = bench.before(valid, f"{channel}_was")
        enabled = bench.before(unit.enable, f"{channel}_enabled")
        bench.check(~valid | was | enabled, "nothing new after a stop")
    bench.check(bus.rready & bus.bready, "answers are taken at once")
    # Each burst that a unit hands over is announced once, as it is, in the order of the handshakes.
    for channel, names in (("ar", READS), ("aw", ("store",))):
        valid, ready = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready")
        taken = [getattr(unit, name).ready & getattr(unit, name).valid for name in names]
        payload: Value = Const(0, 41)
        for name, takes in zip(names, taken, strict=True):
            payload = Mux(takes, getattr(unit, name).payload.as_value(), payload)
        some = bench.before(Cat(*taken).any(), f"{channel}_some")
        given = bench.before(payload, f"{channel}_given")
        who = bench.before(taken[-1], f"{channel}_who")
        announced = (getattr(bus, f"{channel}addr") == given[:32]) & (
            (getattr(bus, f"{channel}len") + 1) == given[32:]
        )
        identity = getattr(bus, f"{channel}id") == (who if channel == "ar" else 0)
        bench.check(~some | (valid & announced & identity), "what is taken is announced")
        waits = bench.before(valid & ~ready, f"{channel}_stays")
        bench.check(~valid | some | waits, "nothing else is announced")
        for name in names:
            offer = getattr(unit, name)
            bench.check(~offer.ready | offer.valid, "only what is offered is taken")
        if len(taken) > 1:
            bench.check(~(taken[0] & taken[1]), "one at a time")
    _checks(bench, port, base, limit, size)
    _answers(bench, port)
    bench.cover(bus.arvalid & bus.awvalid & ~bus.arready & (bus.arid == 1))
    return bench


def _answers(bench: Bench, port: Opened) -> None:
    """``quiet`` exactly while no burst is taken and unanswered, if memory answers those alone."""
    bus, unit, m = port.component.memory, port.component, bench.module
    quiet: Value = Const(1)
    for name, takes, answers in (
        ("$signal", unit.fetch.ready | unit.load.ready, bus.rvalid & bus.rlast),
        ("writes", unit.store.ready, bus.bvalid),
    ):
        unanswered = Signal(32, name=f"unanswered_{name.strip('$')}")
        m.d.sync += unanswered.eq(unanswered + takes - answers)
        bench.assume((~answers | (unanswered != 0)) & ~unanswered[-1])
        bench.lemma(port[name] == unanswered, "the counter")
        quiet = quiet & (unanswered == 0)
    bench.check(unit.quiet == quiet, "quiet when all is answered")
