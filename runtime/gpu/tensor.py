"""Outputs that stay on their device."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..dlpack import CPU, VERSION, capsule_of
from ..errors import InputError
from ..native.content import array_type
from ..tensors import TensorSignature
from .run import Machine

__all__ = ["DeviceTensor", "Lent", "Mark", "SharingMachine"]

DEFAULT_STREAMS = (None, 1)
"""DLPack's number of CUDA's default stream, in which all runs are."""
UNORDERED = -1


class Mark(Protocol):
    """A point in the order of what a device was asked for."""

    def passed(self) -> bool:
        """True if all before it is done."""
        ...


class SharingMachine(Machine, Protocol):
    """A machine whose memory other libraries use too.  dlpack_device: DLPack's type and number."""

    dlpack_device: tuple[int, int]

    def address(self, memory: Any) -> int:
        """Where a memory begins."""
        ...

    def adopt(self, address: int) -> Any:
        """The memory of another library, which stays its own."""
        ...

    def copy(self, memory: Any, source: Any, size: int) -> None:
        """Copy on the device."""
        ...

    def order(self, stream: int) -> None:
        """Let a stream wait for all that was asked for so far."""
        ...

    def mark(self) -> Mark:
        """Behind all that was asked for so far."""
        ...

    def wait(self) -> None:
        """Until the device has done everything, of other libraries too."""
        ...


Pool = list[tuple[Any, bool]]
"""Memories that wait for a run, and whether streams had them that are not in order with runs."""


class Lent:
    """Memory of an output; back in its pool when no tensor and no capsule refers to it."""

    def __init__(self, memory: Any, pool: Pool) -> None:
        self.memory, self.elsewhere = memory, False
        self._pool = pool

    def __del__(self) -> None:
        self._pool.append((self.memory, self.elsewhere))


class DeviceTensor:
    """An output in its device's memory, which libraries take by DLPack (``torch.from_dlpack``).

    shape; dtype: NumPy's name.  device: as the user calls it.  No later run writes to it while
    something refers to it.
    """

    def __init__(
        self, device: str, machine: SharingMachine, lent: Lent, signature: TensorSignature
    ) -> None:
        self.device, self.shape, self.dtype = device, signature.shape, signature.dtype
        self._machine, self._lent = machine, lent

    def __repr__(self) -> str:
        return f"<DeviceTensor {self.dtype}{list(self.shape)} on {self.device}>"

    def numpy(self) -> NDArray[Any]:
        """A copy in the CPU's memory."""
        found = np.empty(self.shape, array_type(self.dtype))
        if found.nbytes:
            self._machine.read(self._lent.memory, 0, found.reshape(-1).view(np.uint8))
        return found

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._machine.dlpack_device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule, as the Python Array API standard has it.

        stream: the consumer's, which waits for the run: 1 or None is CUDA's default stream, 2 that
        of a thread, other numbers are addresses; -1 waits for nothing.
        Raises BufferError for another device than its own or the CPU, and for a copy on the device;
        InputError for a stream of 0, which could be either.
        """
        versioned = max_version is not None and max_version >= VERSION
        if dl_device is not None and tuple(dl_device) == (CPU, 0) and copy is not False:
            array = self.numpy()
            place = array.ctypes.data
            return capsule_of(place, self.shape, self.dtype, (CPU, 0), array, versioned)
        own = self._machine.dlpack_device
        if copy or dl_device not in (None, own):
            raise BufferError(f"{self} is given to others where it is, or copied to the CPU")
        if stream == 0:
            raise InputError(
                "a stream of 0 could be either; required 1 for CUDA's default stream, 2 for that "
                "of a thread, or a stream's address"
            )
        if stream not in DEFAULT_STREAMS:
            self._lent.elsewhere = True
            if stream != UNORDERED:
                self._machine.order(int(stream or 0))
        place = self._machine.address(self._lent.memory)
        return capsule_of(place, self.shape, self.dtype, own, self._lent, versioned)
