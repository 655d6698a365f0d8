"""The ``webgpu`` device: WGSL through wgpu-native, on Vulkan, Metal or Direct3D."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import wgpu
from numpy.typing import NDArray

from ..errors import DeviceError
from ..parts import Part
from .arena import Arena, grid_of
from .part import GpuPart, KernelEntry
from .run import Prepared, ReadyPart

__all__ = ["WebGpuDevice", "found"]

SLOT = 256
"""Bytes for the places of one launch; offsets of uniforms are multiples of it."""
SLOTS = 256
"""Launches between two submissions."""
LIMITS = (
    "max-storage-buffer-binding-size",
    "max-buffer-size",
    "max-compute-workgroup-storage-size",
)


class WebGpuDevice:
    """Runs parts compiled for ``webgpu``."""

    target_kind = "webgpu"

    def __init__(self, which: str | None = None) -> None:
        """which: part of the name of an adapter; by default the fastest.

        Raises DeviceError when there is none.
        """
        self.name = f"webgpu:{which}" if which else "webgpu"
        adapter = _choose(which)
        self.hardware = str(adapter.info["device"])
        """The driver's name of it."""
        limits = {name: adapter.limits[name] for name in LIMITS}
        self._most_bytes = min(limits[name] for name in LIMITS[:2])
        self._gpu = adapter.request_device_sync(required_limits=limits)

    def prepare(self, part: Part) -> ReadyPart:
        """The part with its kernels compiled.

        Raises DeviceError for a part of another target, one that needs more memory than a buffer
        may have, and when a kernel is refused.
        """
        if not isinstance(part, GpuPart) or part.target != "webgpu":
            raise DeviceError(f"{self.name!r} cannot run what was compiled for {part.target!r}")
        size = Arena.of(part).bytes
        if size > self._most_bytes:
            raise DeviceError(
                f"{self.name!r}: the model needs {size:,} bytes in one buffer; "
                f"{self._most_bytes:,} are allowed"
            )
        return ReadyPart(self.name, _WebGpuMachine(self._gpu, size), part)

    def close(self) -> None:
        """There is nothing that others could not use at the same time."""


def found() -> list[tuple[str, str]]:
    """Each adapter, by a name that chooses it, and what its driver calls it."""
    names = [(each.info["device"], each.info["backend_type"]) for each in _adapters()]
    return [(f"webgpu:{name}", f"{name}, {backend}") for name, backend in names]


def _adapters() -> list[wgpu.GPUAdapter]:
    every = wgpu.gpu.enumerate_adapters_sync()
    return [each for each in every if each.info["backend_type"] != "OpenGL"]


def _choose(which: str | None) -> wgpu.GPUAdapter:
    usable = _adapters()
    wanted = (which or "").lower()
    chosen = [each for each in usable if wanted in each.info["device"].lower()]
    if not chosen:
        names = ", ".join(repr(each.info["device"]) for each in usable) or "none"
        raise DeviceError(
            f"no adapter of WebGPU{f' is called {which!r}' if which else ''}; there are: {names}; "
            "install a GPU's driver for Vulkan, or one for CPUs: apt install mesa-vulkan-drivers"
        )
    order = ("DiscreteGPU", "IntegratedGPU")
    kinds = [each.info["adapter_type"] for each in chosen]
    best = min(range(len(kinds)), key=lambda n: order.index(kinds[n]) if kinds[n] in order else 9)
    return chosen[best]


class _WebGpuMachine:
    """See ``Machine``: memories are parts of one buffer; launches are submitted together."""

    def __init__(self, gpu: wgpu.GPUDevice, size: int) -> None:
        self._gpu = gpu
        usage = wgpu.BufferUsage
        self._arena = gpu.create_buffer(
            size=size, usage=usage.STORAGE | usage.COPY_DST | usage.COPY_SRC
        )
        self._places = gpu.create_buffer(size=SLOT * SLOTS, usage=usage.UNIFORM | usage.COPY_DST)
        self._used = 0
        self._waiting: list[tuple[Any, int]] = []
        self._given = np.zeros((SLOTS, SLOT // 4), np.uint32)
        visibility = wgpu.ShaderStage.COMPUTE
        entries = [
            {"binding": 0, "visibility": visibility, "buffer": {"type": "storage"}},
            {
                "binding": 1,
                "visibility": visibility,
                "buffer": {"type": "uniform", "has_dynamic_offset": True},
            },
        ]
        layout = gpu.create_bind_group_layout(entries=entries)
        self._layout = gpu.create_pipeline_layout(bind_group_layouts=[layout])
        words = {"buffer": self._arena, "offset": 0, "size": size}
        places = {"buffer": self._places, "offset": 0, "size": SLOT}
        bound = [{"binding": 0, "resource": words}, {"binding": 1, "resource": places}]
        self._group = gpu.create_bind_group(layout=layout, entries=bound)

    def compile(self, part: GpuPart) -> list[Any]:
        try:
            module = self._gpu.create_shader_module(code=bytes(part.source).decode())
            return [
                self._gpu.create_compute_pipeline(
                    layout=self._layout, compute={"module": module, "entry_point": each.name}
                )
                for each in part.kernels
            ]
        except wgpu.GPUError as error:
            raise DeviceError(f"WebGPU refuses a kernel: {error}") from None

    def gather(self, launches: Sequence[Prepared]) -> None:
        """Launches are submitted together anyway."""

    def allocate(self, size: int) -> int:
        start = self._used
        self._used += -(-size // SLOT) * SLOT
        return start

    def write(self, memory: int, offset: int, array: NDArray[Any]) -> None:
        self._submit()
        data = np.zeros(-(-array.nbytes // 4) * 4, np.uint8)
        data[: array.nbytes] = array.reshape(-1).view(np.uint8)
        self._gpu.queue.write_buffer(self._arena, memory + offset, data)

    def read(self, memory: int, offset: int, array: NDArray[Any]) -> None:
        self._submit()
        at = memory + offset
        first = at - at % 4
        size = -(-(at + array.nbytes - first) // 4) * 4
        data = self._gpu.queue.read_buffer(self._arena, first, size)
        found = np.frombuffer(data, np.uint8)[at - first :][: array.nbytes]
        array.reshape(-1).view(np.uint8)[:] = found

    def launch(self, kernel: Any, entry: KernelEntry, places: Sequence[tuple[int, int]]) -> None:
        if len(self._waiting) == SLOTS:
            self._submit()
        row = self._given[len(self._waiting)]
        row[: len(places)] = [memory + offset for memory, offset in places]
        self._waiting.append((kernel, entry.blocks))

    def _submit(self) -> None:
        """Hand all launches so far to the GPU, in order."""
        if not self._waiting:
            return
        queue = self._gpu.queue
        queue.write_buffer(self._places, 0, self._given[: len(self._waiting)])
        encoder = self._gpu.create_command_encoder()
        work = encoder.begin_compute_pass()
        for number, (kernel, blocks) in enumerate(self._waiting):
            work.set_pipeline(kernel)
            work.set_bind_group(0, self._group, [number * SLOT])
            work.dispatch_workgroups(*grid_of(blocks))
        work.end()
        queue.submit([encoder.finish()])
        self._waiting.clear()
