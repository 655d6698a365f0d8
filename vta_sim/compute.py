"""What instructions do to the data: as ``dovetail.isa.semantics``, faster where addresses allow.

Not STORE, whose bytes reach DRAM burst by burst: see ``store``.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa import semantics
from dovetail.isa.instructions import Gemm, Load, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState

from .strides import dram_block, scratchpad_block

__all__ = ["apply"]

ONE_THREAD = 1 << 18
"""Multiplications in one BLAS call, at most: OpenBLAS runs such a product on the calling thread.

Waking more threads for products of this size costs more than they save, above all on a busy
machine.
"""
LEAST_ROWS = 8

EXACT_FLOAT32 = 1 << 24
"""Integers up to this are exact in float32."""


def apply(state: MachineState, instruction: Load | Gemm | Vector) -> None:
    """Change ``state`` exactly as ``semantics.execute`` does."""
    match instruction:
        case Load():
            if not _copy_block(state, instruction):
                semantics.load(state, instruction)
        case Gemm():
            if not _matrix_product(state, instruction):
                semantics.gemm(state, instruction)
        case Vector():
            semantics.vector(state, instruction)


def _copy_block(state: MachineState, load: Load) -> bool:
    """Run ``load`` by copying strided blocks; False, with nothing done, when addresses wrap."""
    config, memory = state.config, load.memory
    size = config.word_bytes(memory)
    shape = (load.count_z, load.rows, load.columns)
    cells = scratchpad_block(state, memory, load.sram_address, load, shape)
    if cells is None:
        return False
    source = dram_block(state, load) if load.words else None
    if load.words and source is None:
        return False
    if load.padded:
        # Data cells too, which are written after.
        cells[...] = load.pad_value & 0xFF
    if source is not None:
        left, top = load.pad_x_before * size, load.pad_y_before
        bottom, right = top + load.count_y, left + load.count_x * size
        cells[:, top:bottom, left:right] = source
    return True


def _addresses(
    base: int, extent: Sequence[int], stride: Sequence[int], depth: int
) -> NDArray[np.int64]:
    """As ``footprint.nest``, faster; ``depth`` is a power of two."""
    addresses = np.array([base], np.int64)
    for count, step in zip(extent, stride, strict=True):
        offsets = np.arange(0, count * step, step) if step else np.zeros(count, np.int64)
        addresses = (offsets[:, None] + addresses).reshape(-1)
    return addresses & (depth - 1)


def _matrix_product(state: MachineState, gemm: Gemm) -> bool:
    """Run ``gemm`` as one matrix product; False, with nothing done, when it is none.

    It is one when each result is complete in itself (the reduced levels do not move ACC, the others
    reach every ACC word at most once) and each other level moves either weights or inputs.
    """
    config, extent = state.config, gemm.extent
    reduced, rows, columns = [], [], []
    for level, count in enumerate(extent):
        if count == 1:
            continue
        if gemm.reduction >> level & 1:
            if gemm.acc_stride[level]:
                return False
            reduced.append(level)
        elif gemm.wgt_stride[level] == 0:
            rows.append(level)
        elif gemm.act_stride[level] == 0:
            columns.append(level)
        else:
            return False

    def addresses(memory: Memory, levels: list[int]) -> NDArray[np.int64]:
        base = getattr(gemm, f"{memory.value}_address")
        stride = getattr(gemm, f"{memory.value}_stride")
        counts, steps = [extent[i] for i in levels], [stride[i] for i in levels]
        return _addresses(base, counts, steps, config.depth(memory))

    acc = addresses(Memory.ACC, rows + columns)
    if len(acc) > config.acc_depth or np.bincount(acc).max() > 1:
        return False
    act = addresses(Memory.ACT, reduced + rows)
    wgt = addresses(Memory.WGT, reduced + columns)
    lanes = config.block
    terms = prod(extent[i] for i in reduced) * lanes
    # A product of int8 has 14 bits, with a weight offset 16.
    bits = 16 if gemm.weight_offset else 14
    kind = np.float32 if terms << bits <= EXACT_FLOAT32 else np.float64
    left = state.act.take(act, axis=0).astype(kind).reshape(-1, terms)
    # Weights [column, reduced, out, in] become [(reduced, in), (column, out)].
    tiles = state.wgt.take(wgt, axis=0).reshape(-1, terms // lanes, lanes, lanes)
    weights: NDArray[Any] = tiles.astype(kind)
    if gemm.weight_offset:
        weights += gemm.weight_offset
    right = weights.transpose(1, 3, 0, 2).reshape(terms, -1)
    product = _multiply(left, right)
    # A float32 product fits int32; a float64 one wraps to it by way of int64.
    whole = product.astype(np.int32 if kind is np.float32 else np.int64)
    # acc runs over rows fastest; the product is [row, (column, out)].
    by_row = whole.astype(np.int32, copy=False).reshape(len(left), -1, lanes)
    result = by_row.transpose(1, 0, 2).reshape(-1, lanes)
    if gemm.accumulate:
        state.acc[acc] += result
    else:
        state.acc[acc] = result
    return True


def _multiply(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """``left @ right``, some rows at a time."""
    step = max(LEAST_ROWS, ONE_THREAD // right.size)
    if step >= len(left):
        return left @ right
    product = np.empty((len(left), right.shape[1]), left.dtype)
    for start in range(0, len(left), step):
        np.matmul(left[start : start + step], right, out=product[start : start + step])
    return product
