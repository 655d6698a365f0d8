"""Running a board without a board: its gateware under Verilator, behind a pseudo-terminal."""

import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from types import TracebackType

from dovetail.isa.config import HardwareConfig
from dovetail.isa.link import CLOCK_SUFFIX
from dovetail.vta_hw.build import build_executable, core_clock
from dovetail.vta_hw.verilog import HardwareError, to_verilog

from .boards import Board
from .emulation_top import EmulationTop

__all__ = ["Emulator"]

TOP = "emulation_top"


class Emulator:
    """A running emulation; ``port`` is the serial port of the board.

    garbage: whether the SDRAM holds noise at first.  drop, flip: of every million bytes on the
    line, how many are lost or damaged.
    Raises HardwareError when it cannot be built or started.
    """

    def __init__(
        self, board: Board, *, garbage: bool = False, seed: int = 0, drop: int = 0, flip: int = 0
    ) -> None:
        executable = build_emulator(board)
        divisor = round(board.config.clock_hz / board.baud)
        sdram = board.config.dram.sdram
        assert sdram is not None, "the gateware requires it"
        self._folder = tempfile.TemporaryDirectory(prefix="board-")
        self.port = str(Path(self._folder.name) / board.name)
        clock = Path(self.port + CLOCK_SUFFIX)
        clock.write_bytes(bytes(8))
        numbers = (sdram.chip.size, divisor, int(garbage), seed, drop, flip, board.config.clock_hz)
        try:
            self._process = subprocess.Popen(
                [str(executable), *map(str, numbers), str(clock)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except OSError as error:
            raise HardwareError(f"cannot run {executable}: {error.strerror}") from None
        self.faults = 0
        """Bytes that were lost or damaged, once it has ended."""
        assert self._process.stdout is not None
        terminal = self._process.stdout.readline().strip()
        if not terminal:
            raise HardwareError(f"the emulation of {board.name} ended: {self.stop()}")
        Path(self.port).symlink_to(terminal)

    def reset(self) -> None:
        """Reset the board, in the middle of whatever it does."""
        self._process.send_signal(signal.SIGUSR1)

    def cycle_power(self) -> None:
        """Reset it, and leave noise in its memory."""
        self._process.send_signal(signal.SIGUSR2)

    def stop(self) -> str:
        """End it; return what it complained of."""
        count, complaint = self._process.communicate(timeout=10)
        self.faults = int(count or 0)
        self._folder.cleanup()
        return complaint.strip()

    def __enter__(self) -> "Emulator":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        complaint = self.stop()
        if complaint and error is None:
            raise HardwareError(f"the emulation of the board ended: {complaint}")


def build_emulator(board: Board) -> Path:
    """The emulator of ``board``, built unless it exists.

    Raises HardwareError when a tool is missing or fails.
    """
    files = {
        f"{TOP}.v": _verilog(board.config, board.baud),
        "emulator.cpp": (Path(__file__).parent / "emulator.cpp").read_text(),
        "clocks.inc": core_clock(board.config),
    }
    return build_executable(f"board-{board.name}", TOP, files)


@cache
def _verilog(config: HardwareConfig, baud: int) -> str:
    """The same text every time: elaborated once in a process, however many boards run."""
    return to_verilog(EmulationTop(config, baud), TOP)
