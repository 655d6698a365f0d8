"""The boards there are gateware for, those of other packages included."""

from dataclasses import replace

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import ECP5_25, ECP5_85, ECP5_85_8X8, ECP5_85_FAST, ZYNQ7020
from dovetail.isa.entry_points import ExtensionError, find_outside, names_outside
from dovetail.isa.errors import ConfigError
from dovetail.isa.frozen import frozen
from dovetail.isa.link import GRAIN

__all__ = [
    "BOARDS",
    "GROUP",
    "ZYNQ_BOARDS",
    "Board",
    "ZynqBoard",
    "any_board",
    "board_names",
    "cycles_of_a_bit",
    "find_board",
]

GROUP = "dovetail.boards"
"""Entry points of packages that bring boards: the name is the board's, the object is the board."""


@frozen
class Board:
    """An FPGA with an SDRAM and a serial line.

    platform: module and class of its pins.  oscillator_hz: of the clock on the board.  part: of
    the FPGA, for reports.  nextpnr: the options that say which FPGA it is, and the router that
    finds ways for all its wires.  seed: of the first placement to try.  floorplan: whether
    multipliers and memories are placed by hand.  router: settings of nextpnr for which it has no
    options.
    """

    name: str
    config: HardwareConfig
    baud: int
    platform: tuple[str, str]
    oscillator_hz: int
    part: str
    nextpnr: tuple[str, ...]
    seed: int = 1
    floorplan: bool = False
    router: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        cycles_of_a_bit(self.config, self.baud)


def cycles_of_a_bit(config: HardwareConfig, baud: int) -> int:
    """Cycles for which a bit stays on the serial line of a board with an SDRAM.

    Raises ConfigError for a configuration whose memory is no SDRAM, a bus of more than 8 bytes, or
    a clock that does not fit.
    """
    if config.dram.sdram is None:
        raise ConfigError(
            f"{config.name}: its memory is not an SDRAM, which the board has; required dram.sdram, "
            "as in ecp5_85 and ecp5_25"
        )
    if config.bus_bytes > GRAIN:
        raise ConfigError(
            f"{config.name}: a bus of {config.bus_bytes} bytes; required at most {GRAIN} on a board"
        )
    cycles = round(config.clock_hz / baud)
    if cycles < 8 or abs(config.clock_hz / cycles / baud - 1) > 0.02:
        raise ConfigError(
            f"{config.name}: {baud} baud from {config.clock_hz} Hz; required at least 8 cycles a "
            "bit, and an error of at most 2 %"
        )
    return cycles


DETOURS = (
    ("router2/bbMargin/x", 14),
    ("router2/bbMargin/y", 14),
    ("router2/initCurrCongWeight", 3.0),
    ("router2/currCongWeightMult", 0.5),
    ("router2/histCongWeight", 0.8),
    ("router2/estimateWeight", 1.0),
)
"""For a crowded die: nets may leave their rectangles, and the past of a wire counts for more beside
its present.  With nextpnr's own values, its second router goes round in circles.

Source: ``Router2Cfg`` in nextpnr's common/route/router2.cc.
"""

ULX3S_85F = Board(
    name="ulx3s-85f",
    config=ECP5_85_FAST,
    baud=2_000_000,
    platform=("amaranth_boards.ulx3s", "ULX3S_85F_Platform"),
    oscillator_hz=25_000_000,
    part="LFE5U-85F-6BG381C",
    nextpnr=("--85k", "--package", "CABGA381", "--speed", "6", "--router", "router2"),
    floorplan=True,
    router=DETOURS,
)

ULX3S_85F_16X16 = replace(ULX3S_85F, name="ulx3s-85f-16x16", config=ECP5_85)
"""One clock for all; the same multipliers take two cycles for a tile."""

ULX3S_85F_8X8 = replace(
    ULX3S_85F, name="ulx3s-85f-8x8", config=ECP5_85_8X8, seed=2, floorplan=False
)

ULX3S_25F = replace(
    ULX3S_85F,
    name="ulx3s-25f",
    config=ECP5_25,
    platform=("amaranth_boards.ulx3s", "ULX3S_25F_Platform"),
    part="LFE5U-25F-6BG381C",
    nextpnr=("--25k", "--package", "CABGA381", "--speed", "6", "--router", "router1"),
    floorplan=False,
    router=(),
)

BOARDS = {board.name: board for board in (ULX3S_85F, ULX3S_85F_16X16, ULX3S_85F_8X8, ULX3S_25F)}


@frozen
class ZynqBoard:
    """A Zynq-7000 board: its configuration, and the module and class of its pins."""

    name: str
    config: HardwareConfig
    platform: tuple[str, str]


ZYNQ_BOARDS = {
    board.name: board
    for board in (
        ZynqBoard("arty-z7-20", ZYNQ7020, ("amaranth_boards.arty_z7", "ArtyZ720Platform")),
        # The same part and package; the design uses no pin of the fabric.
        ZynqBoard("pynq-z1", ZYNQ7020, ("amaranth_boards.arty_z7", "ArtyZ720Platform")),
        ZynqBoard("pynq-z2", ZYNQ7020, ("amaranth_boards.arty_z7", "ArtyZ720Platform")),
    )
}


def board_names() -> tuple[str, ...]:
    """Names of all boards: of this package, then of others."""
    return tuple(dict.fromkeys((*BOARDS, *ZYNQ_BOARDS, *names_outside(GROUP))))


def any_board(name: str) -> Board | ZynqBoard:
    """The board called ``name``.

    Raises ConfigError when there is none, ExtensionError when another package's is none or is
    called otherwise.
    """
    known = BOARDS.get(name) or ZYNQ_BOARDS.get(name)
    if known is not None:
        return known
    found = find_outside(GROUP, name)
    if found is None:
        raise ConfigError(f"no board is called {name!r}; there are: {', '.join(board_names())}")
    board, brought = found
    if not isinstance(board, Board | ZynqBoard):
        raise ExtensionError(
            f"{GROUP} {name!r}: {brought} is a {type(board).__name__}; required a Board "
            "or a ZynqBoard"
        )
    if board.name != name:
        raise ExtensionError(
            f"{GROUP} {name!r}: {brought} is called {board.name!r}; required the same name in both"
        )
    return board


def find_board(name: str) -> Board:
    """The board with an SDRAM called ``name``.

    Raises as ``any_board``, and ConfigError for a Zynq board.
    """
    board = any_board(name)
    if not isinstance(board, Board):
        raise ConfigError(f"{name} is a Zynq board; required one with an SDRAM of its own")
    return board
