"""The ``cuda`` device: PTX on an NVIDIA GPU, by its driver alone.

Source: CUDA Driver API (NVIDIA); the functions are those of libcuda.so.1.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..dlpack import CUDA
from ..errors import DeviceError
from ..parts import Part, target_kind
from .part import GpuPart, KernelEntry
from .run import Prepared
from .sharing import SharingPart

__all__ = ["CudaDevice", "found"]

LIBRARY = "libcuda.so.1"
INSTANTIATE = "cuGraphInstantiateWithFlags"
CAPTURE_THREAD_LOCAL = 1
COMPUTE_CAPABILITY = (75, 76)
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR"""
DYNAMIC_SHARED_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: more than 48 KiB must be asked for."""
DISABLE_TIMING = 2
"""CU_EVENT_DISABLE_TIMING"""
Pointer = ctypes.c_void_p
Address = ctypes.c_uint64


class CudaDevice:
    """Runs parts compiled for ``cuda``."""

    target_kind = "cuda"

    def __init__(self, which: str | None = None) -> None:
        """which: the GPU's number; by default 0.

        Raises DeviceError when there is no driver, or no such GPU.
        """
        self.name = f"cuda:{which}" if which else "cuda"
        if which and not which.isdecimal():
            raise DeviceError(f"no device is called {self.name!r}; required a number: cuda:0")
        self._machine = _CudaMachine(int(which or 0))
        self.hardware = self._machine.name
        """The driver's name of it."""
        self.architecture = self._machine.architecture
        """As PTX has it: ``sm_90``."""

    def prepare(self, part: Part) -> SharingPart:
        """The part with its kernels compiled for the GPU.

        Raises DeviceError for a part of another target, and when the driver refuses the PTX.
        """
        if not isinstance(part, GpuPart) or target_kind(part.target) != "cuda":
            raise DeviceError(f"{self.name!r} cannot run what was compiled for {part.target!r}")
        return SharingPart(self.name, self._machine, part)

    def close(self) -> None:
        """There is nothing that others could not use at the same time."""


def found() -> list[tuple[str, str]]:
    """Each GPU, by its number, and what the driver calls it.

    Raises DeviceError when there is no driver.
    """
    driver = _Driver()
    return [(f"cuda:{number}", driver.name(number)) for number in range(driver.count)]


class _Driver:
    """The library, once it is ready; count: of GPUs."""

    def __init__(self) -> None:
        """Raises DeviceError when there is none."""
        try:
            self.library = ctypes.CDLL(LIBRARY)
        except OSError:
            raise DeviceError(
                f"no NVIDIA driver: {LIBRARY} is not there; run on a machine with a GPU, or "
                "compile for opencl or cpu"
            ) from None
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        self.count = count.value

    def call(self, function: str, *arguments: Any) -> None:
        """Call the driver.  Raises DeviceError, with its words, for anything but success."""
        status = getattr(self.library, function)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            said = (text.value or b"unknown error").decode()
            raise DeviceError(f"{function}: {said} (CUDA error {status})")

    def device(self, number: int) -> ctypes.c_int:
        """The GPU of a number.  Raises DeviceError when there is none."""
        if number >= self.count:
            raise DeviceError(f"no GPU has the number {number}; there are {self.count}")
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), number)
        return device

    def architecture(self, number: int) -> str:
        """A GPU's kind, as PTX has it."""
        parts = []
        for attribute in COMPUTE_CAPABILITY:
            found = ctypes.c_int()
            place, device = ctypes.byref(found), self.device(number)
            self.call("cuDeviceGetAttribute", place, attribute, device)
            parts.append(str(found.value))
        return f"sm_{''.join(parts)}"

    def name(self, number: int) -> str:
        """The driver's name of a GPU."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, len(text), self.device(number))
        return text.value.decode()


class _CudaMachine:
    """See ``SharingMachine``: the GPU's primary context, which other libraries use too, and its
    default stream.
    """

    def __init__(self, number: int) -> None:
        driver = _Driver()
        self._library, self._call = driver.library, driver.call
        self.name, self.architecture = driver.name(number), driver.architecture(number)
        self._context = Pointer()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), driver.device(number))
        self._modules: list[Pointer] = []
        self._stream = Pointer()
        self.dlpack_device = CUDA, number

    def _enter(self) -> None:
        """Contexts belong to threads; whichever calls now gets this one."""
        self._call("cuCtxSetCurrent", self._context)

    def compile(self, part: GpuPart) -> list[Pointer]:
        self._enter()
        module = Pointer()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(bytes(part.source)))
        self._modules.append(module)
        found = []
        for each in part.kernels:
            function = Pointer()
            name = ctypes.c_char_p(each.name.encode())
            self._call("cuModuleGetFunction", ctypes.byref(function), module, name)
            if each.shared_bytes:
                self._call("cuFuncSetAttribute", function, DYNAMIC_SHARED_BYTES, each.shared_bytes)
            found.append(function)
        return found

    def allocate(self, size: int) -> "_Memory":
        self._enter()
        address = Address()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return _Memory(self, address.value)

    def free(self, address: int) -> None:
        """Give memory back."""
        self._enter()
        self._call("cuMemFree_v2", Address(address))

    def write(self, memory: "_Memory", offset: int, array: NDArray[Any]) -> None:
        self._enter()
        place, size = Address(memory.address + offset), ctypes.c_size_t(array.nbytes)
        self._call("cuMemcpyHtoD_v2", place, Pointer(array.ctypes.data), size)

    def read(self, memory: "_Memory", offset: int, array: NDArray[Any]) -> None:
        self._enter()
        place, size = Address(memory.address + offset), ctypes.c_size_t(array.nbytes)
        self._call("cuMemcpyDtoH_v2", Pointer(array.ctypes.data), place, size)

    def address(self, memory: "_Memory | _Adopted") -> int:
        return memory.address

    def adopt(self, address: int) -> "_Adopted":
        return _Adopted(address)

    def copy(self, memory: "_Memory", source: "_Memory | _Adopted", size: int) -> None:
        self._enter()
        places = Address(memory.address), Address(source.address)
        self._call("cuMemcpyDtoD_v2", *places, ctypes.c_size_t(size))

    def order(self, stream: int) -> None:
        event = self.mark()
        self._call("cuStreamWaitEvent", Pointer(stream), event.event, 0)

    def mark(self) -> "_Event":
        self._enter()
        event = Pointer()
        self._call("cuEventCreate", ctypes.byref(event), DISABLE_TIMING)
        found = _Event(self, event)
        self._call("cuEventRecord", event, None)
        return found

    def passed(self, event: Pointer) -> bool:
        """True if the GPU has come to an event."""
        self._enter()
        return not self._library.cuEventQuery(event)

    def free_event(self, event: Pointer) -> None:
        """Give it back, once the GPU has come to it."""
        self._enter()
        self._call("cuEventDestroy_v2", event)

    def wait(self) -> None:
        self._enter()
        self._call("cuCtxSynchronize")

    def launch(
        self,
        kernel: Pointer,
        entry: KernelEntry,
        places: Sequence[tuple["_Memory | _Adopted", int]],
    ) -> None:
        self._enter()
        self._launch(kernel, entry, places, None)

    def gather(self, launches: Sequence[Prepared]) -> "_Graph | None":
        """The launches as a graph of CUDA's; None for a driver that has none, before 11.4.

        They are captured from a stream that waits for the default one, and that for it, so copies
        there are in order with a run.
        """
        if not hasattr(self._library, INSTANTIATE):
            return None
        self._enter()
        if not self._stream:
            self._call("cuStreamCreate", ctypes.byref(self._stream), 0)
        graph, ready = Pointer(), Pointer()
        self._call("cuStreamBeginCapture_v2", self._stream, CAPTURE_THREAD_LOCAL)
        try:
            for kernel, entry, places in launches:
                self._launch(kernel, entry, places, self._stream)
        finally:
            self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        self._call(INSTANTIATE, ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        self._call("cuGraphDestroy", graph)
        return _Graph(self, ready)

    def run_graph(self, graph: Pointer) -> None:
        """Launch what was gathered."""
        self._enter()
        self._call("cuGraphLaunch", graph, self._stream)

    def free_graph(self, graph: Pointer) -> None:
        """Give it back."""
        self._enter()
        self._call("cuGraphExecDestroy", graph)

    def _launch(
        self,
        kernel: Pointer,
        entry: KernelEntry,
        places: Sequence[tuple["_Memory | _Adopted", int]],
        stream: Pointer | None,
    ) -> None:
        addresses = [Address(memory.address + offset) for memory, offset in places]
        pointers = [ctypes.cast(ctypes.byref(each), Pointer) for each in addresses]
        given = (Pointer * max(len(pointers), 1))(*pointers)
        shape = (entry.blocks, 1, 1, entry.threads, 1, 1)
        self._call("cuLaunchKernel", kernel, *shape, entry.shared_bytes, stream, given, None)


class _Memory:
    """Memory of the GPU, given back when nothing refers to it."""

    def __init__(self, machine: _CudaMachine, address: int) -> None:
        self._machine, self.address = machine, address

    def __del__(self) -> None:
        self._machine.free(self.address)


class _Adopted(NamedTuple):
    """Memory that another library gives back."""

    address: int


class _Event:
    """See ``Mark``."""

    def __init__(self, machine: _CudaMachine, event: Pointer) -> None:
        self._machine, self.event = machine, event

    def passed(self) -> bool:
        return self._machine.passed(self.event)

    def __del__(self) -> None:
        self._machine.free_event(self.event)


class _Graph:
    """Launches that are one, given back when nothing refers to it."""

    def __init__(self, machine: _CudaMachine, graph: Pointer) -> None:
        self._machine, self._graph = machine, graph

    def __call__(self) -> None:
        self._machine.run_graph(self._graph)

    def __del__(self) -> None:
        self._machine.free_graph(self._graph)
