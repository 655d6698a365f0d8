"""One memory for all that a part needs, for machines whose kernels have one."""

from typing import NamedTuple

import numpy as np

from ..native.content import array_type
from ..tensors import TensorSignature
from .part import GpuPart, Place, Space

__all__ = ["MOST_BLOCKS", "Arena", "grid_of", "size_of"]

ALIGNMENT = 256
MOST_BLOCKS = 65_535
"""Blocks in one dimension of WebGPU's launches; more of them have two."""


class Arena(NamedTuple):
    """Where each memory of a part begins in one of ``bytes``."""

    data: int
    memory: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    bytes: int

    @classmethod
    def of(cls, part: GpuPart) -> "Arena":
        """The memories of ``part``, one after the other."""
        starts = [0]
        sizes = [len(part.data), part.memory_bytes]
        sizes += [size_of(each) for each in (*part.inputs, *part.outputs)]
        for size in sizes:
            starts.append(starts[-1] + -(-max(size, 1) // ALIGNMENT) * ALIGNMENT)
        data, memory, *rest, end = starts
        count = len(part.inputs)
        return cls(data, memory, tuple(rest[:count]), tuple(rest[count:]), end)

    def offset(self, part: GpuPart, place: Place) -> int:
        """Where a place is, before the strides of loops."""
        match place.space:
            case Space.INPUT:
                start = self.inputs[place.number]
            case Space.OUTPUT:
                start = self.outputs[place.number]
            case Space.CONSTANT:
                start = self.data + part.constants[place.number].offset
            case Space.MEMORY:
                start = self.memory
        return start + place.offset


def size_of(signature: TensorSignature) -> int:
    """The bytes of a tensor."""
    return int(np.prod(signature.shape)) * array_type(signature.dtype).itemsize


def grid_of(blocks: int) -> tuple[int, int]:
    """A launch of so many blocks or more: row by row, in rows of ``MOST_BLOCKS``."""
    return min(blocks, MOST_BLOCKS), -(-blocks // MOST_BLOCKS)
