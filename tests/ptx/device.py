"""A device for modules of ``cuda`` that interprets their PTX."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.runtime.gpu.part import GpuPart, KernelEntry
from dovetail.runtime.gpu.run import Prepared, ReadyPart
from dovetail.runtime.parts import Part

from .machine import run_kernel
from .text import Kernel, read_kernels

__all__ = ["InterpreterDevice"]

Array = NDArray[Any]


class InterpreterDevice:
    """See ``runtime/device.py``."""

    name = "ptx"
    target_kind = "cuda"

    def prepare(self, part: Part) -> ReadyPart:
        assert isinstance(part, GpuPart)
        return ReadyPart(self.name, _Machine(), part)

    def close(self) -> None:
        pass


class _Machine:
    """See ``runtime/gpu/run.py``: memories are arrays."""

    def compile(self, part: GpuPart) -> list[Kernel]:
        found = read_kernels(bytes(part.source).decode())
        return [found[each.name] for each in part.kernels]

    def allocate(self, size: int) -> Array:
        return np.zeros(size, np.uint8)

    def write(self, memory: Array, offset: int, array: Array) -> None:
        memory[offset : offset + array.size] = array

    def read(self, memory: Array, offset: int, array: Array) -> None:
        array[:] = memory[offset : offset + array.size]

    def launch(
        self, kernel: Kernel, entry: KernelEntry, places: Sequence[tuple[Array, int]]
    ) -> None:
        buffers = [memory[offset:] for memory, offset in places]
        run_kernel(kernel, entry.blocks, entry.threads, buffers, entry.shared_bytes)

    def gather(self, launches: Sequence[Prepared]) -> None:
        pass
