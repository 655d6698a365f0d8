"""The Zynq's core with its ports as wide as AXI4 testbench tools want them."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from dovetail.bitstreams.axi3 import Axi3
from dovetail.bitstreams.zynq_top import ZynqCore

from .boards import SMALL_BOARD

__all__ = ["ZynqBench", "make_zynq"]

WIDER = {"len": 8, "size": 3}


def _wide(data_bytes: int, id_bits: int) -> wiring.Signature:
    """AXI3 with the widths of AXI4, without the write data's ID."""
    members: dict[str, Member] = {}
    for name, member in Axi3(data_bytes, id_bits).members.items():
        if name != "wid":
            width = WIDER.get(name[2:], member.shape)
            members[name] = Out(width) if member.flow is Out else In(width)
    return wiring.Signature(members)


class ZynqBench(wiring.Component):
    """Members: ``control`` and ``memory`` of the core, wider; ``irq``."""

    def __init__(self) -> None:
        super().__init__({"control": In(_wide(4, 12)), "memory": Out(_wide(8, 6)), "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = ZynqCore(SMALL_BOARD.config)
        m.d.comb += self.irq.eq(core.irq)
        for port in ("control", "memory"):
            inner, outer = getattr(core, port), getattr(self, port)
            for name, member in outer.signature.members.items():
                ours, theirs = getattr(inner, name), getattr(outer, name)
                m.d.comb += theirs.eq(ours) if member.flow is Out else ours.eq(theirs)
        return m


def make_zynq() -> ZynqBench:
    """The core with a small array."""
    return ZynqBench()
