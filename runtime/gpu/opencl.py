"""The ``opencl`` device: OpenCL C on whatever runtime the system or a package has."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from ..errors import DeviceError
from ..parts import Part, target_kind
from .part import GpuPart, KernelEntry
from .run import Prepared, ReadyPart

__all__ = ["OpenClDevice", "found"]

OPTIONS = ["-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt"]


class OpenClDevice:
    """Runs parts compiled for ``opencl``."""

    target_kind = "opencl"

    def __init__(self, which: str | None = None) -> None:
        """which: part of the name of a platform or device; by default the first GPU, or else the
        first device of any kind.

        Raises DeviceError when there is none.
        """
        self.name = f"opencl:{which}" if which else "opencl"
        device = _choose(which)
        self.hardware = str(device.name)
        """The driver's name of it."""
        self._machine = _OpenClMachine(device)

    def prepare(self, part: Part) -> ReadyPart:
        """The part with its kernels compiled.

        Raises DeviceError for a part of another target, and when the runtime refuses a kernel.
        """
        if not isinstance(part, GpuPart) or target_kind(part.target) != "opencl":
            raise DeviceError(f"{self.name!r} cannot run what was compiled for {part.target!r}")
        return ReadyPart(self.name, self._machine, part)

    def close(self) -> None:
        """There is nothing that others could not use at the same time."""


def found() -> list[tuple[str, str]]:
    """Each device, by a name that chooses it, and what its driver calls it.

    Raises DeviceError when there is no runtime.
    """
    return [(f"opencl:{each.name}", f"{each.name}, {each.platform.name}") for each in _devices()]


def _devices() -> list[cl.Device]:
    try:
        return [each for platform in cl.get_platforms() for each in platform.get_devices()]
    except cl.LogicError as error:
        raise DeviceError(
            f"there is no OpenCL runtime ({error}); install a GPU's driver, or one for CPUs: "
            "pip install pocl-binary-distribution"
        ) from None


def _choose(which: str | None) -> cl.Device:
    found = _devices()
    wanted = (which or "").lower()
    chosen = [each for each in found if wanted in f"{each.platform.name} {each.name}".lower()]
    if not chosen:
        names = ", ".join(repr(each.name) for each in found) or "none"
        raise DeviceError(f"no OpenCL device is called {which!r}; there are: {names}")
    chosen.sort(key=lambda each: not each.type & cl.device_type.GPU)
    if not chosen[0].double_fp_config:
        raise DeviceError(f"{chosen[0].name!r} has no float64, which kernels may need")
    return chosen[0]


def _intermediate_languages(device: cl.Device) -> str:
    """Languages that a device takes besides OpenCL C, with versions; empty before OpenCL 2.1."""
    try:
        return str(device.il_version)
    except cl.Error:
        return ""


class _OpenClMachine:
    """See ``Machine``: one queue, in order."""

    def __init__(self, device: cl.Device) -> None:
        self._device = device
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context)

    def compile(self, part: GpuPart) -> list[cl.Kernel]:
        binary = self._spirv(part)
        program = cl.Program(self._context, binary or bytes(part.source).decode())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)
                program.build([] if binary else OPTIONS)
        except cl.RuntimeError as error:
            raise DeviceError(f"{self._device.name!r} refuses a kernel: {error}") from None
        return [cl.Kernel(program, each.name) for each in part.kernels]

    def _spirv(self, part: GpuPart) -> bytes:
        """The kernels in SPIR-V, where the part has them and the runtime takes them."""
        if part.binary and "SPIR-V" not in _intermediate_languages(self._device):
            warnings.warn(
                f"{self._device.name!r} takes no SPIR-V; it compiles the module's OpenCL C",
                stacklevel=2,
            )
            return b""
        return bytes(part.binary)

    def allocate(self, size: int) -> cl.Buffer:
        try:
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
        except cl.Error as error:
            raise DeviceError(
                f"{self._device.name!r} has no {size:,} bytes of memory: {error}"
            ) from None

    def write(self, memory: cl.Buffer, offset: int, array: NDArray[Any]) -> None:
        cl.enqueue_copy(self._queue, memory, array, dst_offset=offset, is_blocking=True)

    def read(self, memory: cl.Buffer, offset: int, array: NDArray[Any]) -> None:
        cl.enqueue_copy(self._queue, array, memory, src_offset=offset, is_blocking=True)

    def launch(
        self, kernel: cl.Kernel, entry: KernelEntry, places: Sequence[tuple[cl.Buffer, int]]
    ) -> None:
        arguments: list[Any] = []
        for memory, offset in places:
            arguments += (memory, np.uint64(offset))
        kernel.set_args(*arguments)
        cl.enqueue_nd_range_kernel(
            self._queue, kernel, (entry.blocks * entry.threads,), (entry.threads,)
        )

    def gather(self, launches: Sequence[Prepared]) -> None:
        """OpenCL queues launches one by one, and does not wait for them."""
