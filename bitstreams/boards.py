"""The boards there are gateware for."""

from dataclasses import dataclass

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import ECP5_85
from dovetail.isa.errors import ConfigError

from .sdram_timing import MT48LC16M16A2_75, SdramChip

__all__ = ["BOARDS", "Board", "find_board"]


@dataclass(frozen=True, slots=True)
class Board:
    """An FPGA with an SDRAM and a serial line.

    device, package, speed: of the FPGA, as nextpnr names them.
    """

    name: str
    config: HardwareConfig
    chip: SdramChip
    baud: int
    device: str
    package: str
    speed: int


ULX3S_85F = Board(
    name="ulx3s-85f",
    config=ECP5_85,
    chip=MT48LC16M16A2_75,
    baud=2_000_000,
    device="85k",
    package="CABGA381",
    speed=6,
)

BOARDS = {board.name: board for board in (ULX3S_85F,)}


def find_board(name: str) -> Board:
    """The board called ``name``.

    Raises ConfigError when there is none.
    """
    if name not in BOARDS:
        raise ConfigError(f"no board is called {name!r}; there are: {', '.join(BOARDS)}")
    return BOARDS[name]
