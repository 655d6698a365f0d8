"""SDRAM chips: their geometry and timing, and the controller's cycles at a clock."""

from dataclasses import dataclass
from math import ceil

from dovetail.isa.errors import ConfigError

__all__ = ["MT48LC16M16A2_75", "SdramChip", "SdramCycles", "sdram_cycles"]


@dataclass(frozen=True, slots=True)
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
        return 2 * self.columns

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


@dataclass(frozen=True, slots=True)
class SdramCycles:
    """What the controller waits, in cycles of its clock; see ``sdram.SdramController``.

    rcd, rp, ras, rfc, wr: from ACTIVE to a column, PRECHARGE to ACTIVE, ACTIVE to PRECHARGE, AUTO
    REFRESH to the next command, the last WRITE to PRECHARGE.  cas: CAS latency.  refresh: from one
    AUTO REFRESH falling due to the next.  power_up: before the first command.
    """

    rcd: int
    rp: int
    ras: int
    rfc: int
    wr: int
    cas: int
    refresh: int
    power_up: int


def sdram_cycles(chip: SdramChip, clock_hz: int) -> SdramCycles:
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
    return SdramCycles(
        rcd=cycles(chip.t_rcd),
        rp=rp,
        # ACTIVE to ACTIVE of one bank is ras + rp.
        ras=max(cycles(chip.t_ras), cycles(chip.t_rc) - rp),
        rfc=cycles(chip.t_rfc),
        wr=cycles(chip.t_wr),
        cas=2 if clock_hz <= chip.clock_cl2 else 3,
        # A refresh may have to wait for a burst: 64 columns and a row change are not 3 %.
        refresh=int(chip.refresh * clock_hz / 1e9 * 0.85),
        power_up=cycles(1000 * chip.power_up),
    )
