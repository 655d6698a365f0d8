"""SDRAM behind an AXI4 port."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.errors import ConfigError
from dovetail.isa.sdram import SdramTiming

from .axi import Axi4
from .head_queue import HeadQueue

__all__ = ["SdramCommand", "SdramController", "SdramPins"]


class SdramCommand:
    """Levels of (we, cas, ras), each active high; CS is always selected."""

    NOP = 0b000
    ACTIVE = 0b001
    READ = 0b010
    WRITE = 0b110
    PRECHARGE = 0b101
    REFRESH = 0b011
    MODE = 0b111


class SdramPins(wiring.Signature):
    """The chip's pins but clock, CKE and CS; active high.

    command: (we, cas, ras).  address: row, column (bit 10: all banks, of PRECHARGE), or mode.
    drive: the controller drives ``dq_out``.  mask: bytes of a write that are not written.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "command": Out(3),
                "bank": Out(2),
                "address": Out(13),
                "mask": Out(2),
                "dq_out": Out(16),
                "drive": Out(1),
                "dq_in": In(16),
            }
        )


class SdramController(wiring.Component):
    """One command queue, in order, over a chip whose banks keep their last row open.

    Each word of a burst is a READ or WRITE command of its own (burst length 1), so a burst may
    pause.  Bursts stay within one row.  The rules of its time are in
    docs/timing.md.

    Members
    -------
    bus : In(Axi4)
        Bursts of whole beats, aligned to beats.  Read data and responses must be accepted at once.
    restart : In(1)
        Make a refresh due now, and the others at the interval from it: so that the time of a run
        that starts then does not depend on the past.
    ready : Out(1)
        The chip is initialised.
    settled : Out(1)
        Nothing goes on, all rows are closed, and no refresh begins within ``QUIET`` cycles: a run
        that starts now finds what every other one finds.
    pins : Out(SdramPins)
        Registered.  The chip's clock is to rise within the cycle, so that it acts on a command in
        the cycle in which it is on the pins, and its data are captured ``CAS latency`` edges later.
    """

    QUEUE_BURSTS = 8
    """Commands accepted and not over, at most."""

    QUIET = 16
    """Cycles without a refresh that ``settled`` promises, unless it is asked for."""

    def __init__(self, timing: SdramTiming, bus_bytes: int) -> None:
        """Raises ConfigError for a bus of less than 4 bytes."""
        if bus_bytes < 4 or bus_bytes & (bus_bytes - 1):
            raise ConfigError(f"bus of {bus_bytes} bytes; required a power of two from 4")
        self._chip, self._cycles, self._bytes = timing.chip, timing, bus_bytes
        super().__init__(
            {
                "bus": In(Axi4(bus_bytes)),
                "restart": In(1),
                "ready": Out(1),
                "settled": Out(1),
                "pins": Out(SdramPins()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chip, cycles, bus = self._chip, self._cycles, self.bus
        words = self._bytes // 2
        word_bits = (words - 1).bit_length()
        column_bits = (chip.columns - 1).bit_length()
        command = data.StructLayout(
            {
                "column": column_bits,
                "bank": 2,
                "row": 13,
                "words": 8 + word_bits + 1,
                "write": 1,
                "id": 1,
            }
        )

        # Accept a command.
        m.submodules.commands = commands = HeadQueue(command.size, self.QUEUE_BURSTS)
        new, address = Signal(command), Signal(32)
        level = Signal(range(self.QUEUE_BURSTS + 1))
        accept, over = Signal(), Signal()
        room = Signal()
        m.d.comb += [
            room.eq((level < self.QUEUE_BURSTS) & self.ready),
            bus.arready.eq(room),
            bus.awready.eq(room & ~bus.arvalid),
            accept.eq(room & (bus.arvalid | bus.awvalid)),
            address.eq(Mux(bus.arvalid, bus.araddr, bus.awaddr)),
            Cat(new.column, new.bank, new.row).eq(address[1:]),
            new.words.eq((Mux(bus.arvalid, bus.arlen, bus.awlen) + 1) << word_bits),
            new.write.eq(~bus.arvalid),
            new.id.eq(Mux(bus.arvalid, bus.arid, bus.awid)),
            commands.push.eq(accept),
            commands.push_data.eq(new),
        ]
        m.d.sync += level.eq(level + accept - over)
        head = Signal(command)
        m.d.comb += head.eq(commands.head)

        # What the chip is doing.
        opened = Signal(chip.banks)
        rows = Array(Signal(13, name=f"row{bank}") for bank in range(chip.banks))
        # Until a bank may be precharged; until the data bus is free for a write; until anything.
        longest = max(cycles.ras, cycles.wr, cycles.rfc, cycles.rp, cycles.rcd, cycles.cas)
        holds = [Signal(range(longest + 1), name=f"hold{bank}") for bank in range(chip.banks)]
        turn = Signal(range(longest + 1))
        wait = Signal(range(max(cycles.power_up, longest) + 1), init=cycles.power_up)
        for counter in (*holds, turn, wait):
            with m.If(counter != 0):
                m.d.sync += counter.eq(counter - 1)
        held = Signal(chip.banks)
        m.d.comb += held.eq(Cat(*(hold != 0 for hold in holds)))

        # Refreshes due.
        timer = Signal(range(cycles.refresh))
        due = Signal()
        refreshed = Signal()
        with m.If(self.restart | (timer == cycles.refresh - 1)):
            m.d.sync += [timer.eq(0), due.eq(1)]
        with m.Else():
            m.d.sync += timer.eq(timer + 1)
            with m.If(refreshed):
                m.d.sync += due.eq(0)

        # Pins.
        pins = self.pins
        m.d.sync += [pins.command.eq(SdramCommand.NOP), pins.drive.eq(0), pins.mask.eq(0)]

        def issue(code: int, bank: object = 0, address: object = 0) -> None:
            m.d.sync += [
                pins.command.eq(code),
                pins.bank.eq(bank),
                pins.address.eq(address),
            ]

        # The burst under way.
        column = Signal(column_bits)
        left = Signal(8 + word_bits + 1)
        bank = Signal(2)
        writes, identity = Signal(), Signal()
        place = Signal(word_bits)
        rest = Signal(16 * (words - 1))
        rest_strobe = Signal(2 * (words - 1))
        read_issued, step = Signal(), Signal()

        def begin() -> None:
            m.d.comb += commands.pop.eq(1)
            m.d.sync += [
                column.eq(head.column),
                left.eq(head.words),
                bank.eq(head.bank),
                writes.eq(head.write),
                identity.eq(head.id),
                place.eq(0),
            ]

        hit = Signal()
        # All banks at once: the command decides late which one it is.
        hits = Cat(
            opened[bank] & (rows[bank] == head.row) & (head.bank == bank)
            for bank in range(chip.banks)
        )
        m.d.comb += hit.eq(hits.any())

        # The words of a beat to write; in other cycles they do not matter, and so no enable has to
        # reach them.
        first = place == 0
        m.d.sync += [
            pins.dq_out.eq(Mux(first, bus.wdata[:16], rest[:16])),
            rest.eq(Mux(first, bus.wdata[16:], rest >> 16)),
            rest_strobe.eq(Mux(first, bus.wstrb[2:], rest_strobe >> 2)),
        ]

        initialise = Signal(range(12))
        with m.FSM():
            with m.State("POWER_UP"), m.If(wait == 0):
                # PRECHARGE all, eight refreshes, the mode.
                m.d.sync += [initialise.eq(initialise + 1), wait.eq(cycles.rfc)]
                with m.If(initialise == 0):
                    issue(SdramCommand.PRECHARGE, address=1 << 10)
                with m.Elif(initialise < 9):
                    issue(SdramCommand.REFRESH)
                with m.Elif(initialise == 9):
                    issue(SdramCommand.MODE, address=cycles.cas << 4)
                with m.Else():
                    m.d.sync += [self.ready.eq(1), due.eq(0), timer.eq(0)]
                    m.next = "DECIDE"
            with m.State("DECIDE"), m.If(wait == 0):
                m.d.comb += self.settled.eq(
                    ~due & (level == 0) & ~opened.any() & (timer < cycles.refresh - self.QUIET)
                )
                with m.If(due):
                    with m.If(opened.any()), m.If(~(held & opened).any()):
                        issue(SdramCommand.PRECHARGE, address=1 << 10)
                        m.d.sync += [opened.eq(0), wait.eq(cycles.rp - 1)]
                    with m.Else():
                        issue(SdramCommand.REFRESH)
                        m.d.comb += refreshed.eq(1)
                        m.d.sync += wait.eq(cycles.rfc - 1)
                with m.Elif(commands.valid):
                    with m.If(hit), m.If(~head.write | (turn == 0)):
                        begin()
                        m.next = "COLUMNS"
                    with m.Elif(opened.bit_select(head.bank, 1) & held.bit_select(head.bank, 1)):
                        pass
                    with m.Elif(opened.bit_select(head.bank, 1)):
                        issue(SdramCommand.PRECHARGE, head.bank)
                        m.d.sync += wait.eq(cycles.rp - 1)
                        m.d.sync += opened.bit_select(head.bank, 1).eq(0)
                    with m.Else():
                        issue(SdramCommand.ACTIVE, head.bank, head.row)
                        m.d.sync += [
                            opened.bit_select(head.bank, 1).eq(1),
                            rows[head.bank].eq(head.row),
                            wait.eq(max(cycles.rcd - 2, 0)),
                        ]
                        for number, hold in enumerate(holds):
                            with m.If(head.bank == number):
                                m.d.sync += hold.eq(cycles.ras - 1)
            with m.State("COLUMNS"):
                m.d.comb += step.eq(~writes | (place != 0) | bus.wvalid)
                with m.If(step):
                    m.d.sync += [
                        column.eq(column + 1),
                        left.eq(left - 1),
                        place.eq(place + 1),
                    ]
                    with m.If(writes):
                        issue(SdramCommand.WRITE, bank, column)
                        strobe = Mux(place == 0, bus.wstrb[:2], rest_strobe[:2])
                        m.d.comb += bus.wready.eq(place == 0)
                        m.d.sync += [pins.drive.eq(1), pins.mask.eq(~strobe)]
                        for number, hold in enumerate(holds):
                            with m.If((bank == number) & (hold < cycles.wr)):
                                m.d.sync += hold.eq(cycles.wr - 1)
                    with m.Else():
                        issue(SdramCommand.READ, bank, column)
                        m.d.comb += read_issued.eq(1)
                        m.d.sync += turn.eq(cycles.cas - 1)
                    with m.If(left == 1):
                        m.d.comb += over.eq(1)
                        with m.If(commands.valid & hit & (head.write == writes) & ~due):
                            begin()
                        with m.Else():
                            m.next = "DECIDE"

        self._reads(m, read_issued, place == words - 1, left == 1, identity)
        # Answer writes in the cycle after their last column.
        m.d.sync += [bus.bvalid.eq(over & writes), bus.bid.eq(identity)]
        return m

    def _reads(
        self, m: Module, issued: Signal, beat_ends: object, burst_ends: object, identity: Signal
    ) -> None:
        """Collect the words that READ commands ask for into beats."""
        flags = data.StructLayout({"word": 1, "beat": 1, "last": 1, "id": 1})
        now = Signal(flags)
        m.d.comb += now.eq(Cat(issued, issued & beat_ends, issued & burst_ends, identity))
        # On the pins one cycle after the issue, captured at the end of CAS - 1 cycles later.
        stages = [now]
        for number in range(self._cycles.read_latency - 1):
            stage = Signal(flags, name=f"flags{number + 1}")
            m.d.sync += stage.eq(stages[-1])
            stages.append(stage)
        captured = Signal(16)
        m.d.sync += captured.eq(self.pins.dq_in)
        arrived = stages[-1]
        beat = Signal(unsigned(8 * self._bytes))
        bus = self.bus
        with m.If(arrived.word):
            m.d.sync += beat.eq(Cat(beat[16:], captured))
        m.d.sync += [
            bus.rvalid.eq(arrived.beat),
            bus.rlast.eq(arrived.last),
            bus.rid.eq(arrived.id),
        ]
        m.d.comb += bus.rdata.eq(beat)
