"""The host's side: the register port, and how runs start, stop and end."""

from types import ModuleType

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Unit
from dovetail.isa.registers import REGISTERS, Access, ErrorCode

from .bench import Bench

ERRORS = (
    ("illegal", ErrorCode.ILLEGAL_INSTRUCTION, "dispatched"),
    ("fetch_outside", ErrorCode.WINDOW, "requested"),
    ("fetch_error", ErrorCode.AXI_READ, "received"),
    ("load_outside", ErrorCode.WINDOW, Unit.LOAD),
    ("load_error", ErrorCode.AXI_READ, Unit.LOAD),
    ("store_outside", ErrorCode.WINDOW, Unit.STORE),
    ("store_error", ErrorCode.AXI_WRITE, Unit.STORE),
    ("watchdog", ErrorCode.WATCHDOG, None),
    ("stop", ErrorCode.STOPPED, None),
)
"""Errors of a cycle, the first one first, and whose index is given; None: the oldest's."""


def registers(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """AXI4-Lite: one steady, OKAY answer for each request; only named registers are written."""
    bench = Bench(strengthen)
    unit = bench.add(source.HostRegisters(config))
    port, m = unit.component, bench.module
    host = port.host
    for name, request, valid, ready, beside in (
        ("r", host.arvalid & host.arready, host.rvalid, host.rready, Cat(host.rdata, host.rresp)),
        ("b", host.awvalid & host.awready, host.bvalid, host.bready, host.bresp),
    ):
        unanswered = Signal(2, name=f"unanswered_{name}")
        m.d.sync += unanswered.eq(unanswered + request - (valid & ready))
        bench.check(~valid | (unanswered == 1), "no answer without a request")
        bench.check(~request | (unanswered == 0), "one request at a time")
        waits = bench.before(valid & ~ready, f"waits_{name}")
        steady = valid & (beside == bench.before(beside, f"beside_{name}"))
        bench.check(~waits | steady, "an answer stays until it is taken")
        under_way = host.bvalid
        if name == "r":
            asked, found = unit["$signal"], unit["found"]
            under_way = host.rvalid + asked + found
        bench.lemma(unanswered == under_way, "requests under way")
    bench.check((host.rresp == 0) & (host.bresp == 0), "OKAY")
    taken = host.awvalid & host.awready
    bench.check((host.wvalid & host.wready) == taken, "address and data are taken together")
    mask = Cat(*(bit.replicate(8) for bit in host.wstrb))
    for register in REGISTERS:
        if register.access is not Access.READ_WRITE:
            continue
        value = getattr(port, register.name.lower())
        here = taken & (host.awaddr[2:] == register.offset >> 2)
        merged = Mux(here, (value & ~mask) | (host.wdata & mask), value)
        name = register.name.lower()
        began = bench.before(1, f"began_{name}")
        bench.check(~began | (value == bench.before(merged, f"was_{name}")), "what is written")
    control = next(each.offset for each in REGISTERS if each.name == "CONTROL")
    command = taken & (host.awaddr[2:] == control >> 2) & host.wstrb[0]
    started = bench.before(command & host.wdata[0] & ~port.busy, "start_asked")
    bench.check(port.start == started, "a start is asked for while nothing runs")
    bench.check(port.stop == (command & host.wdata[1] & port.busy), "a stop")
    bench.cover(host.rvalid & (host.rdata == 0x4456544C) & host.bvalid & port.start)
    return bench


def control(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """The first error stops the run and is kept, with its index, until the next start."""
    bench = Bench(strengthen)
    deep = config.deep_pipelines
    unit = bench.add(source.RunControl(deep=deep))
    port, m = unit.component, bench.module
    running, stopped, ended, patience = Signal(), Signal(), Signal(2), Signal(32)
    bench.assume(~port.start | ~running)
    oldest: Value = port.dispatched
    for number in reversed(range(len(Unit))):
        oldest = Mux(port.present[number], port.index[number], oldest)
    expired = (port.watchdog != 0) & (patience == port.watchdog)
    found, code, index = Signal(), Signal(8), Signal(32)
    for name, error, whose in reversed(ERRORS):
        where = oldest
        if isinstance(whose, Unit):
            where = port.index[whose]
        elif whose is not None:
            where = getattr(port, whose)
        with m.If(expired if name == "watchdog" else getattr(port, name)):
            m.d.comb += [found.eq(1), code.eq(error), index.eq(where)]
    kept_code, kept_index = Signal(8), Signal(32)
    goes_on = running & ~stopped
    m.d.sync += patience.eq(Mux(running & ~port.done.any() & ~port.start, patience + 1, 0))
    with m.If(port.start):
        m.d.sync += [running.eq(1), stopped.eq(0), ended.eq(0), kept_code.eq(0), kept_index.eq(0)]
    with m.Elif(goes_on & found):
        m.d.sync += [stopped.eq(1), kept_code.eq(code), kept_index.eq(index)]
    with m.Elif(goes_on & port.idle):
        m.d.sync += [running.eq(0), ended.eq(1)]
    with m.Elif(stopped & running & port.quiet):
        m.d.sync += [running.eq(0), ended.eq(2)]
    bench.check(port.running == running, "a run is under way")
    bench.check(port.enable == goes_on, "it has not been stopped")
    bench.check(Cat(port.finished, port.failed) == ended, "how it ended")
    first = bench.before(goes_on & found & ~port.start, "first")
    settled = ~first if deep else Const(1)
    kept = (port.error_code == kept_code) & (port.error_index == kept_index)
    bench.check(~settled | kept, "the first error")
    bench.lemma((unit["stopped"] & running) == (stopped & running), "stopped")
    bench.lemma(unit["patience"] == patience, "patience")
    bench.lemma(~running | (ended == 0), "it has not ended")
    if deep:
        before = [bench.before(each, name) for each, name in ((code, "code"), (index, "index"))]
        late = (unit["code_before"] == before[0]) & (unit["index_before"] == before[1])
        bench.lemma(unit["found_before"] == first, "found")
        bench.lemma(~first | (late & (kept_code == before[0]) & (kept_index == before[1])), "late")
        bench.lemma(~first | (stopped & running & ~goes_on), "it has just been stopped")
    bench.cover((ended == 2) & (kept_code == ErrorCode.WATCHDOG) & bench.before(running, "ran"))
    return bench
