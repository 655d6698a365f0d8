"""The accelerator and the processors of a Zynq-7000, on a board that runs PYNQ.

Source: the Python interface of PYNQ 3 (pynq.Bitstream, pynq.Clocks, pynq.MMIO, pynq.allocate).
"""

import time
from typing import Any

import numpy as np

from dovetail.isa.registers import REGISTERS, Status

from ..errors import DeviceError

__all__ = ["PynqLink"]

CONTROL_ADDRESS = 0x4000_0000
"""Address of general-purpose port 0, where the registers are."""
MEMORY_BASE = 0x400
"""Register that is added to every address that the accelerator sends to memory."""
CONTROL_SIZE = 0x1000
MEMORY_BYTES = 64 << 20
"""Bytes of contiguous memory for programs and tensors."""
POLL_SECONDS = 0.0005
STATUS = next(register.offset for register in REGISTERS if register.name == "STATUS")


class PynqLink:
    """Registers and memory of a board that this Python runs on; the same calls as ``Link``.

    name: the ``.bit`` file, which is loaded first.  clock_hz: of FCLK0.
    Raises DeviceError where there is no PYNQ, or no such file, or too little contiguous memory.
    """

    def __init__(self, name: str, clock_hz: int) -> None:
        self.name = name
        try:
            import pynq
        except ImportError:
            raise DeviceError(
                "device 'board:pynq' runs on the board itself: the package pynq is not installed "
                "here; copy the module to the board and run it there"
            ) from None
        try:
            pynq.Bitstream(name).download()
            pynq.Clocks.fclk0_mhz = clock_hz / 1e6
            self._registers = pynq.MMIO(CONTROL_ADDRESS, CONTROL_SIZE)
            self._memory: Any = pynq.allocate(shape=(MEMORY_BYTES,), dtype=np.uint8)
        except (OSError, RuntimeError, MemoryError) as error:
            raise DeviceError(f"{name}: {error}") from None
        self._registers.write(MEMORY_BASE, int(self._memory.physical_address))
        self.repeated = 0
        """No request is ever sent again."""

    def close(self) -> None:
        """Give the memory back."""
        self._memory.freebuffer()

    def read_memory(self, address: int, size: int) -> bytes:
        """``size`` bytes from ``address``."""
        self._memory.invalidate()
        content: bytes = np.asarray(self._memory[address : address + size]).tobytes()
        return content

    def write_memory(self, address: int, content: bytes) -> None:
        """Write ``content`` at ``address``.

        Raises DeviceError when it does not fit.
        """
        end = address + len(content)
        if end > MEMORY_BYTES:
            raise DeviceError(
                f"{self.name}: {end:,} bytes of memory required; {MEMORY_BYTES:,} available"
            )
        self._memory[address:end] = np.frombuffer(content, np.uint8)
        self._memory.flush()

    def read_registers(self, offset: int, count: int = 1) -> list[int]:
        """``count`` registers from byte ``offset`` of the register map."""
        return [int(self._registers.read(offset + 4 * place)) for place in range(count)]

    def write_register(self, offset: int, value: int) -> None:
        """Write one register."""
        self._registers.write(offset, value)

    def wait_event(self, seconds: float) -> bool:
        """True if the run ends within ``seconds``."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.read_registers(STATUS)[0] >> Status.BUSY & 1:
                return True
            time.sleep(POLL_SECONDS)
        return False
