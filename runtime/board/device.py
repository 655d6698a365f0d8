"""A board as a device of the runtime."""

import threading
import time

import numpy as np

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.errors import ProgramError
from dovetail.isa.footprint import dram_rows
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Store
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.link import GRAIN
from dovetail.isa.program import program_from_bytes
from dovetail.isa.registers import COUNTERS, IDENTITY, REGISTERS, VERSION, Control, Status

from ..errors import DeviceError
from .contents import Contents
from .link import Link
from .pynq import PynqLink

__all__ = ["BAUD", "BoardDevice", "BoardName"]

BAUD = 2_000_000
OFFSETS = {register.name: register.offset for register in REGISTERS}
POLL_SECONDS = 0.05


@frozen
class BoardName:
    """``board:MODEL@PORT``, or ``board:MODEL@PORT,BAUD``.  The port of ``pynq`` is a file."""

    model: str
    port: str
    baud: int = BAUD

    @staticmethod
    def parse(text: str | None) -> "BoardName":
        """From what follows "board:".

        Raises DeviceError when there is no model or no port.
        """
        model, _, place = (text or "").partition("@")
        port, _, baud = place.partition(",")
        if not model or not port or not (baud or "1").isdecimal():
            raise DeviceError(
                f"device 'board:{text or ''}' names no serial port; required board:MODEL@PORT, for "
                "example board:ulx3s@/dev/ttyUSB0, or board:pynq@FILE.bit"
            )
        return BoardName(model, port, int(baud or BAUD))


class BoardDevice:
    """Runs programs on a board.

    Memory is sent once, and after that only what differs; when the board was reset, or the link
    was lost and found, all of it.  Threads take turns.
    """

    def __init__(self, name: str | None, *, patience: float = 1.0, chunk: int = 1024) -> None:
        """``name``: MODEL@PORT.  patience, chunk: as of ``Link``."""
        self._name = BoardName.parse(name)
        self._patience, self._chunk = patience, chunk
        self._link: Link | PynqLink | None = None
        self._contents = Contents()
        self._settings: dict[str, int] = {}
        self._turn = threading.RLock()

    @property
    def repeated(self) -> int:
        """Requests that were sent again on the link that is open."""
        return self._link.repeated if self._link else 0

    def close(self) -> None:
        """Give the serial port back."""
        with self._turn:
            if self._link is not None:
                self._link.close()
            self._link = None
            self._contents.forget()
            self._settings = {}

    def run(self, launch: Launch) -> LaunchResult:
        """Run to the end, or to an error.

        Of the result's DRAM only what the launch says it reads is the board's.
        Raises DeviceError when the board does not answer, is not of the launch's configuration, or
        is reset while it runs.
        """
        with self._turn:
            try:
                return self._run(self._connected(launch.config), launch)
            except DeviceError:
                self.close()
                raise

    def _connected(self, config: HardwareConfig) -> Link | PynqLink:
        if self._link is None and self._name.model == "pynq":
            self._link = PynqLink(self._name.port, config.clock_hz)
        elif self._link is None:
            self._link = Link(
                self._name.port, self._name.baud, patience=self._patience, chunk=self._chunk
            )
        return self._link

    def _run(self, link: Link | PynqLink, launch: Launch) -> LaunchResult:
        self._identify(link, launch.config)
        self._stop(link)
        self._settle(link, launch)
        self._load(link, launch)
        link.write_register(OFFSETS["CONTROL"], 1 << Control.START)
        begin = time.perf_counter()
        status = self._wait(link, launch)
        seconds = time.perf_counter() - begin
        self._forget_stores(launch)
        first = REGISTERS[-2 * len(COUNTERS)].offset
        values = link.read_registers(first, 2 * len(COUNTERS))
        counters = {
            name: values[2 * place] | values[2 * place + 1] << 32
            for place, (name, _) in enumerate(COUNTERS)
        }
        code, index = link.read_registers(OFFSETS["ERROR_CODE"], 2)
        dram = launch.dram.copy()
        for start, size in launch.reads or ((0, dram.size),):
            dram[start : start + size] = np.frombuffer(link.read_memory(start, size), np.uint8)
        self._require_settings(link)
        return LaunchResult(
            finished=bool(status >> Status.DONE & 1),
            error_code=code,
            error_index=index,
            dram=dram,
            counters=counters,
            dispatched=None,
            accepted=None,
            ended=None,
            seconds=counters["cycles"] / launch.config.clock_hz or seconds,
        )

    def _identify(self, link: Link | PynqLink, config: HardwareConfig) -> None:
        identity, version, fingerprint = link.read_registers(OFFSETS["ID"], 3)
        if identity != IDENTITY or version != VERSION:
            raise DeviceError(
                f"{link.name}: identity {identity:#010x}, version {version}; required "
                f"{IDENTITY:#010x}, version {VERSION}: the board has another bitstream; load one "
                "with: dovetail bitstream --program"
            )
        if fingerprint != config.fingerprint:
            raise DeviceError(
                f"{link.name}: the board's bitstream is of configuration {fingerprint:#010x}; the "
                f"module is for {config.name!r}, {config.fingerprint:#010x}; compile for the "
                "board's configuration, or load another bitstream"
            )

    def _stop(self, link: Link | PynqLink) -> None:
        """Stop what another host may have left running."""
        for _ in range(100):
            if not link.read_registers(OFFSETS["STATUS"])[0] >> Status.BUSY & 1:
                return
            link.write_register(OFFSETS["CONTROL"], 1 << Control.STOP)
        raise DeviceError(f"{link.name}: the board stays busy; reset it")

    def _settle(self, link: Link | PynqLink, launch: Launch) -> None:
        """Write the settings; when they are not as they were left, the board was reset."""
        if self._settings and not self._settings_hold(link):
            self._contents.forget()
            self._settings = {}
        settings = {
            "PROGRAM_ADDRESS": launch.program_address,
            "PROGRAM_COUNT": launch.program_count,
            "WINDOW_BASE": 0,
            "WINDOW_LIMIT": launch.dram.size - 1,
            "WATCHDOG": launch.watchdog,
        }
        for name, value in settings.items():
            if self._settings.get(name) != value:
                link.write_register(OFFSETS[name], value)
        self._settings = settings
        self._require_settings(link)

    def _settings_hold(self, link: Link | PynqLink) -> bool:
        found = link.read_registers(OFFSETS["PROGRAM_ADDRESS"], len(self._settings))
        return found == list(self._settings.values())

    def _require_settings(self, link: Link | PynqLink) -> None:
        """Raises DeviceError when the board was reset since they were written."""
        if not self._settings_hold(link):
            raise DeviceError(
                f"{link.name}: the board was reset, or another program uses it; run again"
            )

    def _load(self, link: Link | PynqLink, launch: Launch) -> None:
        wanted = launch.dram
        if wanted.size % GRAIN:
            wanted = np.concatenate([wanted, np.zeros(-wanted.size % GRAIN, np.uint8)])
        for start, end in self._contents.missing(wanted):
            link.write_memory(start, wanted[start:end].tobytes())
            self._contents.sent(start, wanted[start:end])

    def _wait(self, link: Link | PynqLink, launch: Launch) -> int:
        """STATUS after the run."""
        while True:
            link.wait_event(POLL_SECONDS)
            status = link.read_registers(OFFSETS["STATUS"])[0]
            if status & (1 << Status.DONE | 1 << Status.ERROR):
                return status
            if not status >> Status.BUSY & 1:
                raise DeviceError(f"{link.name}: the board was reset while it ran; run again")

    def _forget_stores(self, launch: Launch) -> None:
        """Forget what was sent to places that the program writes."""
        first = launch.program_address
        content = launch.dram[first : first + launch.program_count * INSTRUCTION_BYTES]
        try:
            program = program_from_bytes(content.tobytes())
        except ProgramError:
            self._contents.forget()
            return
        for instruction in program:
            if isinstance(instruction, Store):
                for start, size in dram_rows(instruction, launch.config):
                    self._contents.forget_range(start, start + size)
