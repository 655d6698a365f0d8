"""The SDRAM controller keeps the times of the chip's data sheet, seen at the chip's pins."""

from dataclasses import replace
from functools import partial
from math import ceil
from types import ModuleType

from amaranth.hdl import Cat, Mux, Signal, Value

from dovetail.isa.config import HardwareConfig
from dovetail.isa.sdram import MT48LC16M16A2_75 as CHIP
from dovetail.isa.sdram import SdramTiming, sdram_timing

from .bench import Bench, Opened

__all__ = ["at_50_mhz", "at_133_mhz"]

NOP, ACTIVE, READ, WRITE = 0b000, 0b001, 0b010, 0b110
PRECHARGE, REFRESH, MODE = 0b101, 0b011, 0b111
POWER_UP, DECIDE, COLUMNS = range(3)
LONG = 15
"""A time after which nothing has to be waited for."""
EARLY = {"power_up": 1, "refresh": 50}
"""Shorter than in use, so that all there is comes within few cycles of the start."""


def rules(clock_hz: int, source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """Every command at its time: see the checks."""
    bench = Bench(strengthen)
    timing = replace(sdram_timing(CHIP, clock_hz), **EARLY)
    sdram = bench.add(source.SdramController(timing, config.bus_bytes))
    pins, m = sdram.component.pins, bench.module

    def cycles(nanoseconds: float) -> int:
        return ceil(nanoseconds * clock_hz / 1e9 - 1e-9)

    command, all_banks = pins.command, pins.address[10]

    def since(event: Value, name: str) -> Signal:
        """Cycles since the last one, that of this cycle not counted; ``LONG`` for more."""
        count = Signal(4, name=f"since_{name}", init=LONG)
        m.d.sync += count.eq(Mux(event, 1, Mux(count == LONG, LONG, count + 1)))
        return count

    refreshed, read = since(command == REFRESH, "refresh"), since(command == READ, "read")
    opened, times = Signal(CHIP.banks), []
    for bank in range(CHIP.banks):
        here = pins.bank == bank
        active = (command == ACTIVE) & here
        closes = (command == PRECHARGE) & (here | all_banks)
        column = ((command == READ) | (command == WRITE)) & here
        m.d.sync += opened[bank].eq((opened[bank] | active) & ~closes)
        a = since(active, f"active{bank}")
        p = since(closes, f"precharge{bank}")
        w = since((command == WRITE) & here, f"write{bank}")
        times.append((a, p, w, active, closes))
        bench.check(~active | ~opened[bank], "a row is opened in a closed bank")
        bench.check(~active | (p >= cycles(CHIP.t_rp)), "tRP")
        bench.check(~active | (a >= cycles(CHIP.t_rc)), "tRC")
        bench.check(~active | (refreshed >= cycles(CHIP.t_rfc)), "tRFC")
        bench.check(~column | opened[bank], "columns are of an open row")
        bench.check(~column | (a >= cycles(CHIP.t_rcd)), "tRCD")
        closed = closes & opened[bank]
        bench.check(~closed | (a >= cycles(CHIP.t_ras)), "tRAS")
        bench.check(~closed | (w >= cycles(CHIP.t_wr)), "tWR")
        refresh = command == REFRESH
        bench.check(~refresh | (~opened[bank] & (p >= cycles(CHIP.t_rp))), "rows are closed")
    bench.check((command != REFRESH) | (refreshed >= cycles(CHIP.t_rfc)), "tRFC")
    cas = 2 if clock_hz <= CHIP.clock_cl2 else 3
    bench.check(~pins.drive | (read >= cas + 1), "the data of a READ and of a WRITE do not meet")
    bench.check((command == WRITE) == pins.drive, "data are driven with a WRITE")
    known = (NOP, ACTIVE, READ, WRITE, PRECHARGE, REFRESH, MODE)
    bench.check(Cat(*(command == each for each in known)).any(), "a command that there is")
    ready = _initialisation(bench, sdram, command)
    _lemmas(bench, sdram, timing, opened, times, refreshed, read)
    bench.cover(ready & (command == WRITE) & (read == cas + 1))
    return bench


def _initialisation(bench: Bench, sdram: Opened, command: Value) -> Value:
    """Before the first row: PRECHARGE, eight refreshes, the mode; return whether that is done."""
    m = bench.module
    refreshes, mode, precharged = Signal(4), Signal(), Signal()
    counts = (command == REFRESH) & (refreshes != 8) & precharged
    m.d.sync += [
        precharged.eq(precharged | (command == PRECHARGE)),
        refreshes.eq(refreshes + counts),
        mode.eq(mode | ((command == MODE) & (refreshes == 8))),
    ]
    bench.check((command != ACTIVE) | mode, "no row before the chip is initialised")
    step, starting = sdram["initialise"], sdram["fsm_state"] == POWER_UP
    now = refreshes + counts
    made = Mux(step < 2, 0, Mux(step > 9, 8, step - 1))
    bench.lemma(~starting | (now == made), "refreshes so far")
    bench.lemma((step == 0) | precharged | (command == PRECHARGE), "precharged first")
    known = mode | ((command == MODE) & (refreshes == 8))
    bench.lemma((starting & (step < 10)) | known, "the mode is set")
    bench.lemma(~starting | (step <= 10), "steps")
    idle = ~sdram["ready"] & (sdram["level"] == 0) & ~sdram["commands.valid"]
    bench.lemma(~starting | (idle & (sdram["opened"] == 0)), "nothing before it")
    return mode


def _lemmas(
    bench: Bench,
    sdram: Opened,
    timing: SdramTiming,
    opened: Value,
    times: list[tuple[Value, ...]],
    refreshed: Value,
    read: Value,
) -> None:
    """Counters of the controller against times at the pins, which are a cycle behind it."""
    pins, state = sdram.component.pins, sdram["fsm_state"]
    wait, turn, columns = sdram["wait"], sdram["turn"], state == COLUMNS

    def so_far(count: Value, event: Value) -> Value:
        """Cycles since the event, that on the pins now too: 0 then."""
        return Mux(event, 0, count)

    fresh = so_far(refreshed, pins.command == REFRESH)
    bench.lemma(state <= COLUMNS, "states")
    bench.lemma(columns | (fresh == LONG) | (wait + fresh >= timing.rfc - 1), "refresh")
    bench.lemma(~columns | (fresh >= timing.rfc - 1), "no column beside a refresh")
    last = so_far(read, pins.command == READ)
    bench.lemma((last == LONG) | (turn + last >= timing.cas - 1), "turn")
    writes = sdram["$signal#4"]
    bench.lemma(~(columns & writes) | (last >= timing.cas), "a write after a read")
    for bank, (a, p, w, active, closes) in enumerate(times):
        open_now = (opened[bank] | active) & ~closes
        bench.lemma(sdram["opened"][bank] == open_now, "what is open")
        hold = sdram[f"hold{bank}"]
        begun, closed = so_far(a, active), so_far(p, closes)
        wrote = so_far(w, (pins.command == WRITE) & (pins.bank == bank))
        is_open = sdram["opened"][bank]
        bench.lemma(~is_open | (hold + begun >= timing.ras - 1), "tRAS")
        bench.lemma(~is_open | (hold + wrote >= timing.wr - 1), "tWR")
        bench.lemma(is_open | (wait + closed >= timing.rp - 1), "tRP")
        bench.lemma(is_open | (begun >= timing.ras) | (begun == LONG), "closed after tRAS")
        bench.lemma(is_open | (begun == LONG) | (begun >= closed + timing.ras), "tRC")
        bench.lemma(~is_open | columns | (wait + begun >= timing.rcd - 2), "tRCD")
        bench.lemma(~(is_open & columns) | (begun >= timing.rcd - 1), "tRCD, columns")
        mine = sdram["bank"] == bank
        bench.lemma(~(columns & mine) | is_open, "the row of a burst is open")
        bench.lemma(is_open | (wrote >= timing.wr), "closed after tWR")


at_50_mhz = partial(rules, 50_000_000)
at_133_mhz = partial(rules, 133_000_000)
