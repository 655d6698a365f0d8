"""AXI3 as the Zynq-7000 processing system has it, and what joins it to AXI4.

Source: AMBA AXI and ACE protocol specification (ARM IHI 0022E); Zynq-7000 technical reference
manual (UG585), chapter 5.
"""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from dovetail.vta_hw.axi import Axi4Lite
from dovetail.vta_hw.registers import ADDRESS_BITS

__all__ = ["MEMORY_BASE", "Axi3", "ControlPort"]

MEMORY_BASE = 1 << ADDRESS_BITS
"""Byte offset of the register that is added to every address the accelerator sends to memory."""

SLAVE_ERROR = 0b10


class Axi3(wiring.Signature):
    """A manager's AXI3 port with 32-bit addresses; bursts of at most 16 beats."""

    def __init__(self, data_bytes: int, id_bits: int) -> None:
        members: dict[str, Member] = {}
        for channel in ("ar", "aw"):
            members |= {
                f"{channel}id": Out(id_bits),
                f"{channel}addr": Out(32),
                f"{channel}len": Out(4),
                f"{channel}size": Out(2),
                f"{channel}burst": Out(2),
                f"{channel}valid": Out(1),
                f"{channel}ready": In(1),
            }
        members |= {
            "rid": In(id_bits),
            "rdata": In(8 * data_bytes),
            "rresp": In(2),
            "rlast": In(1),
            "rvalid": In(1),
            "rready": Out(1),
            "wid": Out(id_bits),
            "wdata": Out(8 * data_bytes),
            "wstrb": Out(data_bytes),
            "wlast": Out(1),
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(id_bits),
            "bresp": In(2),
            "bvalid": In(1),
            "bready": Out(1),
        }
        super().__init__(members)


class ControlPort(wiring.Component):
    """The processor's port to the registers: those of the accelerator, and ``MEMORY_BASE``.

    One access at a time.  A burst of several beats is answered with errors, and does nothing.

    Members
    -------
    bus : In(Axi3(4, 12))
    registers : Out(Axi4Lite)
    memory_base : Out(32)
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "bus": In(Axi3(4, 12)),
                "registers": Out(Axi4Lite(ADDRESS_BITS)),
                "memory_base": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, registers = self.bus, self.registers
        identity, address, left = Signal(12), Signal(32), Signal(4)
        single, here = Signal(), Signal()
        taken = Signal(32)
        m.d.comb += [
            here.eq(address[ADDRESS_BITS]),
            registers.araddr.eq(address[:ADDRESS_BITS]),
            registers.awaddr.eq(address[:ADDRESS_BITS]),
            registers.wdata.eq(bus.wdata),
            registers.wstrb.eq(bus.wstrb),
            bus.rid.eq(identity),
            bus.bid.eq(identity),
            bus.rdata.eq(taken),
            bus.rlast.eq(left == 0),
        ]
        for response in (bus.rresp, bus.bresp):
            with m.If(~single):
                m.d.comb += response.eq(SLAVE_ERROR)
        with m.FSM():
            with m.State("IDLE"):
                for channel, following in (("ar", "READ"), ("aw", "WRITE")):
                    with (m.If if channel == "ar" else m.Elif)(getattr(bus, f"{channel}valid")):
                        m.d.comb += getattr(bus, f"{channel}ready").eq(1)
                        m.d.sync += [
                            identity.eq(getattr(bus, f"{channel}id")),
                            address.eq(getattr(bus, f"{channel}addr")),
                            left.eq(getattr(bus, f"{channel}len")),
                            single.eq(getattr(bus, f"{channel}len") == 0),
                        ]
                        m.next = following
            with m.State("READ"):
                with m.If(~single):
                    m.next = "ANSWER"
                with m.Elif(here):
                    m.d.sync += taken.eq(self.memory_base)
                    m.next = "ANSWER"
                with m.Else():
                    m.d.comb += registers.arvalid.eq(1)
                    with m.If(registers.arready):
                        m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += registers.rready.eq(1)
                with m.If(registers.rvalid):
                    m.d.sync += taken.eq(registers.rdata)
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += bus.rvalid.eq(1)
                with m.If(bus.rready):
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 0):
                        m.next = "IDLE"
            with m.State("WRITE"):
                with m.If(~single | here):
                    m.d.comb += bus.wready.eq(1)
                    with m.If(bus.wvalid):
                        with m.If(single & (bus.wstrb == 0b1111)):
                            m.d.sync += self.memory_base.eq(bus.wdata)
                        with m.If(bus.wlast):
                            m.next = "RESPOND"
                with m.Else():
                    m.d.comb += [
                        registers.awvalid.eq(bus.wvalid),
                        registers.wvalid.eq(bus.wvalid),
                        bus.wready.eq(registers.wready),
                    ]
                    with m.If(bus.wvalid & registers.wready):
                        m.next = "WRITTEN"
            with m.State("WRITTEN"):
                m.d.comb += registers.bready.eq(1)
                with m.If(registers.bvalid):
                    m.next = "RESPOND"
            with m.State("RESPOND"):
                m.d.comb += bus.bvalid.eq(1)
                with m.If(bus.bready):
                    m.next = "IDLE"
        return m
