"""A model of an SDRAM chip at its pins that knows its data sheet and reports every violation."""

from enum import IntEnum, unique
from math import ceil

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.sdram import SdramChip

from .sdram import SdramCommand, SdramPins

__all__ = ["SdramModel", "Violation"]

LONG_AGO = (1 << 24) - 1


@unique
class Violation(IntEnum):
    """Violation by a controller."""

    NONE = 0
    POWER_UP = 1
    """A command before the clock had run long enough."""
    NOT_INITIALISED = 2
    """A row command before PRECHARGE all, two refreshes and the mode."""
    MODE = 3
    """A mode other than burst length 1, sequential, and the CAS latency."""
    MODE_TIME = 4
    """A command less than two cycles after the mode."""
    ACTIVE_OPEN = 5
    """ACTIVE for a bank with an open row."""
    ROW_CYCLE = 6
    """ACTIVE sooner than tRC after the bank's last one."""
    ROW_TO_ROW = 7
    """ACTIVE sooner than tRRD after any bank's last one."""
    PRECHARGE_TIME = 8
    """ACTIVE or REFRESH sooner than tRP after PRECHARGE."""
    ROW_TO_COLUMN = 9
    """READ or WRITE sooner than tRCD after ACTIVE."""
    NO_ROW = 10
    """READ or WRITE of a bank without an open row."""
    ROW_TIME = 11
    """PRECHARGE sooner than tRAS after ACTIVE."""
    WRITE_RECOVERY = 12
    """PRECHARGE sooner than tWR after a WRITE."""
    REFRESH_OPEN = 13
    """REFRESH with a row open."""
    REFRESH_TIME = 14
    """A command sooner than tRFC after REFRESH."""
    REFRESH_LATE = 15
    """More than eight refresh intervals without a REFRESH."""
    CONTENTION = 16
    """The controller drives the data pins while the chip does, or in the cycle after."""
    AUTO_PRECHARGE = 17
    """A column command with address bit 10, which this controller never means."""
    UNKNOWN = 18
    """No command of the chip."""


class SdramModel(wiring.Component):
    """The chip as its pins show it; it keeps no bytes.

    Its clock rises in the middle of the controller's cycles.  A column command in cycle ``k`` reads
    or writes what the testbench answers in ``k``; read data is on the pins at the end of
    ``k + CAS latency - 1``.

    Members
    -------
    pins : In(SdramPins)
    address : Out(32)
        Byte address of the column command of this cycle.
    read : Out(1), read_data : In(16)
        The command reads; what is stored at ``address``.
    write : Out(1), write_data : Out(16), write_strobe : Out(2)
    violation : Out(8)
        The first one.
    refreshes : Out(32)
        REFRESH commands so far.
    """

    def __init__(self, chip: SdramChip, clock_hz: int) -> None:
        self._chip = chip
        self._cas = 2 if clock_hz <= chip.clock_cl2 else 3
        self._clock = clock_hz
        super().__init__(
            {
                "pins": In(SdramPins()),
                "address": Out(32),
                "read": Out(1),
                "read_data": In(16),
                "write": Out(1),
                "write_data": Out(16),
                "write_strobe": Out(2),
                "violation": Out(8),
                "refreshes": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chip, pins = self._chip, self.pins

        def cycles(nanoseconds: float) -> int:
            return ceil(nanoseconds * self._clock / 1e9 - 1e-9)

        now = Signal(48)
        m.d.sync += now.eq(now + 1)
        banks = range(chip.banks)

        def since(name: str) -> Signal:
            """Cycles since something, counted up to a limit."""
            counter = Signal(24, init=LONG_AGO, name=name)
            with m.If(counter != LONG_AGO):
                m.d.sync += counter.eq(counter + 1)
            return counter

        opened = Signal(chip.banks)
        rows = Array(Signal(13, name=f"row{bank}") for bank in banks)
        activated = Array(since(f"activated{bank}") for bank in banks)
        precharged = Array(since(f"precharged{bank}") for bank in banks)
        written = Array(since(f"written{bank}") for bank in banks)
        any_activated, refreshed, moded = since("any"), since("refreshed"), since("moded")
        setup, modes = Signal(4), Signal()
        quiet = Signal(24)
        found = Signal(8)

        problems: list[tuple[object, Violation]] = []
        command, bank = pins.command, pins.bank
        is_nop = command == SdramCommand.NOP
        all_banks = pins.address[10]
        chosen = Signal(chip.banks)
        m.d.comb += chosen.eq(Mux(all_banks, (1 << chip.banks) - 1, 1 << bank))
        is_active = command == SdramCommand.ACTIVE
        is_column = (command == SdramCommand.READ) | (command == SdramCommand.WRITE)
        is_precharge = command == SdramCommand.PRECHARGE
        is_refresh = command == SdramCommand.REFRESH
        is_mode = command == SdramCommand.MODE
        open_here = opened.bit_select(bank, 1)

        def must(condition: object, holds: object, violation: Violation) -> None:
            problems.append((condition & ~holds, violation))  # type: ignore[operator]

        must(~is_nop, now >= cycles(1000 * chip.power_up), Violation.POWER_UP)
        must(is_active | is_column, (setup >= 3) & modes, Violation.NOT_INITIALISED)
        must(is_mode, pins.address == self._cas << 4, Violation.MODE)
        must(~is_nop, moded >= 1, Violation.MODE_TIME)
        must(is_active, ~open_here, Violation.ACTIVE_OPEN)
        must(is_active, activated[bank] >= cycles(chip.t_rc) - 1, Violation.ROW_CYCLE)
        must(is_active, any_activated >= cycles(15) - 1, Violation.ROW_TO_ROW)
        rp = cycles(chip.t_rp) - 1
        must(is_active, precharged[bank] >= rp, Violation.PRECHARGE_TIME)
        for number in banks:
            must(is_refresh, precharged[number] >= rp, Violation.PRECHARGE_TIME)
            closing = is_precharge & chosen[number] & opened[number]
            ras, recovery = cycles(chip.t_ras) - 1, cycles(chip.t_wr) - 1
            must(closing, activated[number] >= ras, Violation.ROW_TIME)
            must(closing, written[number] >= recovery, Violation.WRITE_RECOVERY)
        must(is_column, activated[bank] >= cycles(chip.t_rcd) - 1, Violation.ROW_TO_COLUMN)
        must(is_column, open_here, Violation.NO_ROW)
        must(is_column, ~pins.address[10], Violation.AUTO_PRECHARGE)
        must(is_refresh | is_mode, opened == 0, Violation.REFRESH_OPEN)
        must(~is_nop, refreshed >= cycles(chip.t_rfc) - 1, Violation.REFRESH_TIME)
        must(modes, quiet <= 8 * int(chip.refresh * self._clock / 1e9), Violation.REFRESH_LATE)
        must(command == 0b100, Const(0), Violation.UNKNOWN)

        # Read data: on the pins from the middle of cycle CAS - 1 to that of cycle CAS.
        reads = [Signal(name="reads0"), *(Signal(name=f"reads{n}") for n in range(1, 5))]
        values = [Signal(16, name="value0"), *(Signal(16, name=f"value{n}") for n in range(1, 4))]
        m.d.comb += [reads[0].eq(command == SdramCommand.READ), values[0].eq(self.read_data)]
        for number in range(1, 5):
            m.d.sync += reads[number].eq(reads[number - 1])
        for number in range(1, 4):
            m.d.sync += values[number].eq(values[number - 1])
        driven = reads[self._cas - 1] | reads[self._cas]
        must(pins.drive, ~driven, Violation.CONTENTION)
        m.d.comb += [
            # What floats is not 0, so that a word captured in a wrong cycle shows.
            pins.dq_in.eq(Mux(reads[self._cas - 1], values[self._cas - 1], 0xDEAD)),
            self.address.eq(
                Cat(0, pins.address[: (chip.columns - 1).bit_length()], bank, rows[bank])
            ),
            self.read.eq(reads[0]),
            self.write.eq((command == SdramCommand.WRITE) & pins.drive),
            self.write_data.eq(pins.dq_out),
            self.write_strobe.eq(~pins.mask),
        ]

        for condition, violation in reversed(problems):
            with m.If(condition):
                m.d.comb += found.eq(violation)
        with m.If((self.violation == 0) & (found != 0)):
            m.d.sync += self.violation.eq(found)

        # What the command does.
        m.d.sync += quiet.eq(Mux(is_refresh, 0, quiet + 1))
        with m.If(is_active):
            m.d.sync += [
                opened.bit_select(bank, 1).eq(1),
                rows[bank].eq(pins.address),
                activated[bank].eq(0),
                any_activated.eq(0),
            ]
        with m.Elif(is_precharge):
            m.d.sync += opened.eq(opened & ~chosen)
            for number in banks:
                with m.If(chosen[number]):
                    m.d.sync += precharged[number].eq(0)
            with m.If(all_banks & (setup == 0)):
                m.d.sync += setup.eq(1)
        with m.Elif(is_refresh):
            m.d.sync += [refreshed.eq(0), self.refreshes.eq(self.refreshes + 1)]
            with m.If((setup != 0) & (setup < 3)):
                m.d.sync += setup.eq(setup + 1)
        with m.Elif(is_mode):
            m.d.sync += [modes.eq(1), moded.eq(0)]
        with m.Elif(command == SdramCommand.WRITE):
            m.d.sync += written[bank].eq(0)
        return m
