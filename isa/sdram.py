"""SDRAM chips, and the time that the memory controller takes with one (docs/timing.md)."""

from math import ceil

from .errors import ConfigError
from .frozen import frozen

__all__ = [
    *("COLUMN_BYTES", "MT48LC16M16A2_75", "SDRAM_CHIPS"),
    *("SdramChip", "SdramTiming", "sdram_timing"),
]

COLUMN_BYTES = 2
"""Bytes of a column: there are 16 data pins."""

REFRESH_MARGIN = 0.85
"""A refresh waits for the burst under way, and for rows to close: well within what this leaves."""


@frozen
class SdramChip:
    """A single-data-rate SDRAM with 16 data pins.

    rows, columns: of each bank; powers of two.  Times in nanoseconds, by their names in data
    sheets.  refresh: tREF / rows, between two AUTO REFRESH commands on average.  power_up: clock
    running before the first command, microseconds.  clock_cl2: highest clock for CAS latency 2,
    above it 3.
    """

    name: str
    banks: int
    rows: int
    columns: int
    t_rcd: float
    t_rp: float
    t_ras: float
    t_rc: float
    t_rfc: float
    t_wr: float
    refresh: float
    power_up: float
    clock_cl2: int
    clock_max: int

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of one bank."""
        return COLUMN_BYTES * self.columns

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self.banks * self.rows * self.row_bytes


MT48LC16M16A2_75 = SdramChip(
    name="MT48LC16M16A2-75",
    banks=4,
    rows=8192,
    columns=512,
    t_rcd=20,
    t_rp=20,
    t_ras=44,
    t_rc=66,
    t_rfc=66,
    t_wr=15,
    refresh=64e6 / 8192,
    power_up=100,
    clock_cl2=100_000_000,
    clock_max=133_000_000,
)
"""32 MB, 4 banks of 8192 rows of 512 columns.  Source: Micron's data sheet of the 256 Mb SDR
SDRAM, speed grade -75.
"""

SDRAM_CHIPS = {chip.name: chip for chip in (MT48LC16M16A2_75,)}
"""The chips that files of configurations may name."""


@frozen
class SdramTiming:
    """Waits of the memory controller for ``chip``, in cycles of its clock.

    rcd, rp, ras, rfc, wr: from ACTIVE to a column, PRECHARGE to ACTIVE, ACTIVE to PRECHARGE, AUTO
    REFRESH to the next command, the last WRITE to PRECHARGE.  cas: CAS latency.  refresh: from one
    AUTO REFRESH falling due to the next.  power_up: before the first command.  io_delay: registers
    between the controller and the chip, out and back in.
    """

    chip: SdramChip
    rcd: int
    rp: int
    ras: int
    rfc: int
    wr: int
    cas: int
    refresh: int
    power_up: int
    io_delay: int = 0

    def __post_init__(self) -> None:
        chip = self.chip
        times = (self.rcd, self.rp, self.ras, self.rfc, self.wr, self.cas, self.refresh)
        sizes = (chip.banks, chip.rows, chip.columns)
        if min(*times, *sizes, self.power_up, self.io_delay + 1) < 1:
            raise ConfigError(f"{chip.name}: sizes {sizes}, times {times}; required at least 1")
        if any(size & (size - 1) for size in sizes):
            raise ConfigError(f"{chip.name}: sizes {sizes}; required powers of two")

    @property
    def read_latency(self) -> int:
        """From a READ that is decided to the cycle of its beat on the bus, if it is the last."""
        return self.cas + 2 + self.io_delay


def sdram_timing(chip: SdramChip, clock_hz: int, io_delay: int = 0) -> SdramTiming:
    """The fewest cycles that keep every time of ``chip`` at ``clock_hz``.

    Raises ConfigError above the chip's highest clock.
    """
    if clock_hz > chip.clock_max:
        raise ConfigError(
            f"{chip.name}: clock {clock_hz / 1e6:g} MHz; required at most {chip.clock_max / 1e6:g}"
        )

    def cycles(nanoseconds: float) -> int:
        return max(1, ceil(nanoseconds * clock_hz / 1e9 - 1e-9))

    rp = cycles(chip.t_rp)
    return SdramTiming(
        chip=chip,
        rcd=cycles(chip.t_rcd),
        rp=rp,
        # ACTIVE to ACTIVE of one bank is ras + rp.
        ras=max(cycles(chip.t_ras), cycles(chip.t_rc) - rp),
        rfc=cycles(chip.t_rfc),
        wr=cycles(chip.t_wr),
        cas=2 if clock_hz <= chip.clock_cl2 else 3,
        refresh=int(chip.refresh * clock_hz / 1e9 * REFRESH_MARGIN),
        power_up=cycles(1000 * chip.power_up),
        io_delay=io_delay,
    )
