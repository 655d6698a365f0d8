"""The performance counters."""

from amaranth.hdl import Module, Signal, ValueLike, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.memories import Unit
from dovetail.isa.registers import COUNTERS

from .pipeline import delayed

__all__ = ["Counters"]


class Counters(wiring.Component):
    """Count, in every cycle of a run, what ``dovetail.isa.registers.COUNTERS`` names.

    Parameters
    ----------
    deep : bool
        As ``HardwareConfig.deep_pipelines``: what happens is counted a cycle later.

    Members
    -------
    running : In(1)
        Count.
    busy, stall_token, stall_port, done : In(4)
        Of each unit.
    fetch_beat, load_beat, store_beat : In(1)
    values : Out(array of 64 bits)
        In the order of ``COUNTERS``.
    """

    running: In(1)
    busy: In(len(Unit))
    stall_token: In(len(Unit))
    stall_port: In(len(Unit))
    done: In(len(Unit))
    fetch_beat: In(1)
    load_beat: In(1)
    store_beat: In(1)
    values: Out(data.ArrayLayout(unsigned(64), len(COUNTERS)))

    def __init__(self, *, deep: bool = False) -> None:
        self._deep = deep
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        events: dict[str, ValueLike] = {"cycles": 1, "instructions": sum(self.done)}
        for unit in Unit:
            for kind in ("busy", "stall_token", "stall_port"):
                events[f"{unit.name.lower()}_{kind}"] = getattr(self, kind)[unit]
        for kind in ("fetch", "load", "store"):
            events[f"{kind}_beats"] = getattr(self, f"{kind}_beat")
        running = (
            delayed(m, self.running, "running_before", reset=True) if self._deep else self.running
        )
        for place, (name, _) in enumerate(COUNTERS):
            counter = Signal(64, name=name)
            event = delayed(m, events[name], f"{name}_before") if self._deep else events[name]
            m.d.comb += self.values[place].eq(counter)
            with m.If(running):
                m.d.sync += counter.eq(counter + event)
        return m
