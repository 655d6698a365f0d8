"""Blocks of DRAM and scratchpads as strided views, where their addresses do not wrap."""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState

__all__ = ["Bytes", "dram_block", "scratchpad_block"]

Bytes = NDArray[np.uint8]


def _view(
    array: NDArray[np.generic],
    offset: int,
    shape: tuple[int, int, int],
    strides: tuple[int, int, int],
) -> Bytes | None:
    if not array.flags.c_contiguous:
        return None
    across = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
    lowest = offset + sum(min(0, distance) for distance in across)
    highest = offset + sum(max(0, distance) for distance in across)
    if lowest < 0 or highest >= array.nbytes:
        return None
    return np.ndarray(shape, np.uint8, array, offset, strides)


def dram_block(state: MachineState, transfer: Load | Store) -> Bytes | None:
    """uint8[z, y, bytes]: the DRAM that ``transfer`` reads or writes.

    None when it wraps round, and when rows that are written overlap, so that their order counts.
    """
    memory = transfer.memory if isinstance(transfer, Load) else Memory.ACT
    size = state.config.word_bytes(memory) * transfer.count_x
    if isinstance(transfer, Store) and _overlap(transfer, size):
        return None
    return _view(
        state.dram,
        transfer.dram_address - state.dram_base,
        (transfer.count_z, transfer.count_y, size),
        (transfer.dram_stride_z, transfer.dram_stride_y, 1),
    )


def _overlap(store: Store, size: int) -> bool:
    """Whether rows of ``size`` bytes may overlap."""
    levels = [(store.count_y, store.dram_stride_y), (store.count_z, store.dram_stride_z)]
    for count, stride in sorted(levels, key=lambda level: abs(level[1])):
        if count > 1 and abs(stride) < size:
            return True
        size += (count - 1) * abs(stride)
    return False


def scratchpad_block(
    state: MachineState,
    memory: Memory,
    address: int,
    transfer: Load | Store,
    shape: tuple[int, int, int],
) -> Bytes | None:
    """uint8[z, y, bytes]: ``shape`` words (z, y, x) from word ``address``.

    The strides are those of ``transfer``.
    None when they wrap round the memory, and for PAR, whose words are in two arrays.
    """
    if memory is Memory.PAR:
        return None
    size = state.config.word_bytes(memory)
    z, y, x = shape
    return _view(
        getattr(state, memory.value),
        size * (address % state.config.depth(memory)),
        (z, y, x * size),
        (size * transfer.sram_stride_z, size * transfer.sram_stride_y, 1),
    )
