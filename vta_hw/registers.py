"""The host's registers on AXI4-Lite."""

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.registers import (
    COUNTERS,
    IDENTITY,
    REGISTERS,
    VERSION,
    Access,
    Control,
    Status,
)

from .axi import Axi4Lite
from .pipeline import delayed

__all__ = ["ADDRESS_BITS", "HostRegisters"]

ADDRESS_BITS = 10
COLUMN_BITS = 3
"""Bits of a register's address within its row."""
SETTINGS = tuple(r.name.lower() for r in REGISTERS if r.access is Access.READ_WRITE)


class HostRegisters(wiring.Component):
    """The register map of ``dovetail.isa.registers``.

    A read of an unmapped address gives 0; a write to one changes nothing.  Writes need all four
    bytes: WSTRB is honoured byte by byte.

    Members
    -------
    host : In(Axi4Lite)
    start, stop : Out(1)
        The host asks for it in this cycle.
    program_address, program_count, window_base, window_limit, watchdog : Out(32)
    busy, finished, failed : In(1)
        For STATUS.
    error_code : In(8), error_index : In(32)
    counters : In(array of 64 bits)
        In the order of ``COUNTERS``.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._fingerprint = config.fingerprint
        super().__init__(
            {
                "host": In(Axi4Lite(ADDRESS_BITS)),
                "start": Out(1),
                "stop": Out(1),
                **{name: Out(32) for name in SETTINGS},
                "busy": In(1),
                "finished": In(1),
                "failed": In(1),
                "error_code": In(8),
                "error_index": In(32),
                "counters": In(data.ArrayLayout(unsigned(64), len(COUNTERS))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        host = self.host
        offsets = {register.name: register.offset for register in REGISTERS}

        # Writes: address and data are taken together, the answer follows.
        write = Signal()
        m.d.comb += [
            write.eq(host.awvalid & host.wvalid & ~host.bvalid),
            host.awready.eq(write),
            host.wready.eq(write),
        ]
        with m.If(write):
            m.d.sync += host.bvalid.eq(1)
        with m.Elif(host.bready):
            m.d.sync += host.bvalid.eq(0)
        mask = Cat(*(bit.replicate(8) for bit in host.wstrb))
        commands = write & (host.awaddr[2:] == offsets["CONTROL"] >> 2) & host.wstrb[0]
        # A register: the start clears every unit, and the wires to them all are long.
        m.d.sync += self.start.eq(commands & host.wdata[Control.START] & ~self.busy)
        m.d.comb += self.stop.eq(commands & host.wdata[Control.STOP] & self.busy)
        for name in SETTINGS:
            target = getattr(self, name)
            with m.If(write & (host.awaddr[2:] == offsets[name.upper()] >> 2)):
                m.d.sync += target.eq((target & ~mask) | (host.wdata & mask))

        # Reads: the address, then of each row of registers one, then of these one.
        values = {
            "ID": IDENTITY,
            "VERSION": VERSION,
            "FINGERPRINT": self._fingerprint,
            "STATUS": (self.busy << Status.BUSY)
            | (self.finished << Status.DONE)
            | (self.failed << Status.ERROR),
            "ERROR_CODE": self.error_code,
            "ERROR_INDEX": self.error_index,
            **{name.upper(): getattr(self, name) for name in SETTINGS},
        }
        for place, (name, _) in enumerate(COUNTERS):
            values[f"{name.upper()}_LOW"] = self.counters[place][:32]
            values[f"{name.upper()}_HIGH"] = self.counters[place][32:]
        asked, found = Signal(), Signal()
        read = host.arvalid & ~host.rvalid & ~asked & ~found
        m.d.comb += host.arready.eq(read)
        m.d.sync += [asked.eq(read), found.eq(asked)]
        address = delayed(m, host.araddr[2:], "address")
        column, row = address[:COLUMN_BITS], address[COLUMN_BITS:]
        rows: dict[int, dict[int, Value | int]] = {}
        for name, value in values.items():
            place = offsets[name] >> 2
            rows.setdefault(place >> COLUMN_BITS, {})[place % (1 << COLUMN_BITS)] = value
        chosen_row = delayed(m, row, "row")
        with m.If(found):
            m.d.sync += [host.rvalid.eq(1), host.rdata.eq(0)]
        with m.Elif(host.rready):
            m.d.sync += host.rvalid.eq(0)
        for number, members in rows.items():
            of_row = Signal(32, name=f"row{number}")
            with m.Switch(column):
                for place, value in members.items():
                    with m.Case(place):
                        m.d.comb += of_row.eq(value)
                if len(members) < 1 << COLUMN_BITS:
                    with m.Default():
                        m.d.comb += of_row.eq(0)
            kept = delayed(m, of_row, f"of_row{number}")
            with m.If(found & (chosen_row == number)):
                m.d.sync += host.rdata.eq(kept)
        return m
