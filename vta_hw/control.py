"""Starting, ending and stopping a run."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.memories import Unit
from dovetail.isa.priorities import Source
from dovetail.isa.registers import ErrorCode

from .pipeline import delayed

__all__ = ["RunControl"]


class RunControl(wiring.Component):
    """Hold the state of a run; keep the first error, and end the run when nothing is left to do.

    Parameters
    ----------
    deep : bool
        As ``HardwareConfig.deep_pipelines``: the error is in its registers a cycle later.
    ahead : bool
        As ``HardwareConfig.load_ahead``: which LOAD an error is of is an input.

    Members
    -------
    start, stop : In(1)
        From the host.
    idle : In(1)
        All is dispatched, the queues are empty, nothing is in flight.
    quiet : In(1)
        No burst is in flight.
    illegal, <unit>_outside, <unit>_error : In(1)
        Errors of this cycle.
    requested, received, dispatched : In(32)
        Of FETCH.
    index : In(array of 32 bits), present : In(4)
        Oldest instruction of each unit, and whether there is one.
    done : In(4)
        Instructions that end in this cycle.
    burst_index, beat_index : In(32)
        With ``ahead``: of the LOADs that offer bursts, and whose data arrives.
    watchdog : In(32)
        Cycles without an end before a stop; 0: never.
    running : Out(1)
        A run is under way.
    enable : Out(1)
        It has not been stopped.
    finished, failed : Out(1)
        How the last run ended.
    error_code : Out(8), error_index : Out(32)
    """

    start: In(1)
    stop: In(1)
    idle: In(1)
    quiet: In(1)
    illegal: In(1)
    fetch_outside: In(1)
    load_outside: In(1)
    store_outside: In(1)
    fetch_error: In(1)
    load_error: In(1)
    store_error: In(1)
    requested: In(32)
    received: In(32)
    dispatched: In(32)
    index: In(data.ArrayLayout(unsigned(32), len(Unit)))
    present: In(len(Unit))
    done: In(len(Unit))
    burst_index: In(32)
    beat_index: In(32)
    watchdog: In(32)
    running: Out(1)
    enable: Out(1)
    finished: Out(1)
    failed: Out(1)
    error_code: Out(8)
    error_index: Out(32)

    def __init__(self, *, deep: bool = False, ahead: bool = False) -> None:
        self._deep, self._ahead = deep, ahead
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stopped = Signal()
        patience = Signal(32)
        expired = Signal()
        oldest = Signal(32)
        m.d.comb += [
            expired.eq((self.watchdog != 0) & (patience == self.watchdog)),
            oldest.eq(self.dispatched),
        ]
        for unit in reversed(Unit):
            with m.If(self.present[unit]):
                m.d.comb += oldest.eq(self.index[unit])
        m.d.sync += patience.eq(Mux(self.running & ~self.done.any(), patience + 1, 0))

        load, store = self.index[Unit.LOAD], self.index[Unit.STORE]
        asks, receives = (self.burst_index, self.beat_index) if self._ahead else (load, load)
        errors = {
            Source.DISPATCH: ((self.illegal, ErrorCode.ILLEGAL_INSTRUCTION, self.dispatched),),
            Source.FETCH: (
                (self.fetch_outside, ErrorCode.WINDOW, self.requested),
                (self.fetch_error, ErrorCode.AXI_READ, self.received),
            ),
            Source.LOAD: (
                (self.load_outside, ErrorCode.WINDOW, asks),
                (self.load_error, ErrorCode.AXI_READ, receives),
            ),
            Source.STORE: (
                (self.store_outside, ErrorCode.WINDOW, store),
                (self.store_error, ErrorCode.AXI_WRITE, store),
            ),
            Source.WATCHDOG: ((expired, ErrorCode.WATCHDOG, oldest),),
            Source.HOST: ((self.stop, ErrorCode.STOPPED, oldest),),
        }
        found, code, index = Signal(), Signal(8), Signal(32)
        for source in reversed(Source):
            for condition, error, where in reversed(errors[source]):
                with m.If(condition):
                    m.d.comb += [found.eq(1), code.eq(error), index.eq(where)]
        with m.If(self.start):
            m.d.sync += [
                self.running.eq(1),
                # A register of its own for ``running & ~stopped``: it goes to every unit.
                self.enable.eq(1),
                stopped.eq(0),
                patience.eq(0),
                self.finished.eq(0),
                self.failed.eq(0),
                self.error_code.eq(ErrorCode.NONE),
                self.error_index.eq(0),
            ]
        with m.Elif(self.enable & found):
            m.d.sync += [self.enable.eq(0), stopped.eq(1)]
            if not self._deep:
                m.d.sync += [self.error_code.eq(code), self.error_index.eq(index)]
        with m.Elif(self.enable & self.idle):
            m.d.sync += [self.enable.eq(0), self.running.eq(0), self.finished.eq(1)]
        with m.Elif(self.running & stopped & self.quiet):
            m.d.sync += [self.running.eq(0), self.failed.eq(1)]
        if self._deep:
            # ``failed`` comes later still.
            first = self.enable & found & ~self.start
            code, index = delayed(m, code, "code_before"), delayed(m, index, "index_before")
            with m.If(delayed(m, first, "found_before", reset=True)):
                m.d.sync += [self.error_code.eq(code), self.error_index.eq(index)]
        return m
