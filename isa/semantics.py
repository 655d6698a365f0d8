"""Executable meaning of every instruction, in NumPy.

The oracle that gateware and simulator are held to.  Nothing here knows time: an instruction happens
whole.
"""

import numpy as np
from numpy.typing import NDArray

from .footprint import (
    block_bytes,
    column_elements,
    dram_word_bytes,
    element_words,
    is_window,
    load_cells,
    nest,
    outer_extent,
    raised_elements,
    results_written,
    window_taps,
    written_memory,
)
from .instructions import (
    Finish,
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Rounding,
    Row,
    Store,
    Vector,
)
from .memories import Memory
from .requantize import WIDE_LIMIT, low_bits, requantize, requantize_fixed
from .rows import largest_lane, over_root, over_sum
from .short_form import from_short
from .state import MachineState

__all__ = [
    "execute",
    "fold",
    "gemm",
    "load",
    "shift_right",
    "store",
    "vector",
    "window_sums",
]


def shift_right(values: NDArray[np.int32], shift: int) -> NDArray[np.int32]:
    """``(values + (1 << shift >> 1)) >> shift``: divide by a power of two, half up; no wrap
    inside.
    """
    return ((values.astype(np.int64) + (1 << shift >> 1)) >> shift).astype(np.int32)


def load(state: MachineState, instruction: Load) -> None:
    """Fill the padding of the block, and copy its data from DRAM."""
    config, memory = state.config, instruction.memory
    size = dram_word_bytes(instruction, config)
    cells, data = load_cells(instruction, config.depth(memory))
    padding = cells[~data]
    if padding.size:
        shape = padding.size, config.word_bytes(memory)
        state.write_words(memory, padding, np.full(shape, instruction.pad_value & 0xFF, np.uint8))
    if instruction.words:
        starts = block_bytes(instruction.dram_address - state.dram_base, instruction, size)
        words = state.dram[(starts[:, None] + np.arange(size)) & 0xFFFFFFFF]
        if instruction.step:
            x = np.arange(len(words)) % instruction.count_x
            place = (x * instruction.step)[:, None] + np.arange(size)
            inside = (place >= instruction.row_first) & (place < instruction.row_end)
            words = np.where(inside, words, np.uint8(instruction.pad_value & 0xFF))
        if instruction.nibbles:
            words = from_short(words, memory, config, same=instruction.same)
        state.write_words(memory, cells[data], words)


def store(state: MachineState, instruction: Store) -> None:
    """Copy words of ACT to DRAM, in the order z, y, x."""
    size = state.config.word_bytes(Memory.ACT)
    rows = nest(
        instruction.sram_address,
        (instruction.count_x, instruction.count_y, instruction.count_z),
        (1, instruction.sram_stride_y, instruction.sram_stride_z),
        state.config.act_depth,
    )
    starts = block_bytes(instruction.dram_address - state.dram_base, instruction, size)
    places = (starts[:, None] + np.arange(size)) & 0xFFFFFFFF
    state.dram[places] = state.words(Memory.ACT)[rows]


def gemm(state: MachineState, instruction: Gemm) -> None:
    """Multiply and accumulate tile after tile; sums wrap at 32 bits."""
    config, extent = state.config, instruction.extent
    act = nest(instruction.act_address, extent, instruction.act_stride, config.act_depth)
    wgt = nest(instruction.wgt_address, extent, instruction.wgt_stride, config.wgt_depth)
    acc = nest(instruction.acc_address, extent, instruction.acc_stride, config.acc_depth)
    first = np.zeros(len(acc), bool)
    if not instruction.accumulate:
        reduced = [bool(instruction.reduction >> level & 1) for level in range(len(extent))]
        steps = [int(level_reduced) for level_reduced in reduced]
        first = _index_sum(extent, steps) == 0
    chunk = 1 << 14
    for start in range(0, len(acc), chunk):
        part = slice(start, start + chunk)
        tiles = state.wgt[wgt[part]].astype(np.int32) + instruction.weight_offset
        inputs = state.act[act[part]].astype(np.int32) - instruction.act_zero_point
        products = np.matmul(tiles, inputs[:, :, None])[:, :, 0]
        _accumulate(state.acc, acc[part], first[part], products)


def _index_sum(extent: tuple[int, ...], steps: list[int]) -> NDArray[np.int64]:
    """Sum of the indices of the levels with step 1, for every iteration."""
    return nest(0, extent, steps, 1 << 62)


def _accumulate(
    acc: NDArray[np.int32],
    addresses: NDArray[np.int64],
    first: NDArray[np.bool_],
    products: NDArray[np.int32],
) -> None:
    """Apply ``products`` in order: an overwrite discards everything before it at its address."""
    order = np.arange(len(addresses))
    last_first = np.full(len(acc), -1, np.int64)
    np.maximum.at(last_first, addresses[first], order[first])
    acc[addresses[first]] = 0
    counted = order >= last_first[addresses]
    np.add.at(acc, addresses[counted], products[counted])


def fold(
    values: NDArray[np.int32], instruction: Vector, taps: NDArray[np.int8] | None, raised: int = 0
) -> NDArray[np.int32]:
    """Fold ``values`` int32[results, elements, block] over axis 1, wrapping at 32 bits.

    taps: int8[results, elements, block], for ``Multiplier.TAP``; raised: what is added to elements
    that are multiplied with them.
    """
    match instruction.fold:
        case Fold.ADD:
            return values.sum(axis=1, dtype=np.int32)
        case Fold.SUB:
            return values[:, 0] - values[:, 1:].sum(axis=1, dtype=np.int32)
        case Fold.MAX:
            return values.max(axis=1)
        case Fold.MIN:
            return values.min(axis=1)
        case Fold.MAC:
            return _products(values, instruction, taps, raised).sum(axis=1).astype(np.int32)


def _products(
    values: NDArray[np.int32], instruction: Vector, taps: NDArray[np.int8] | None, raised: int
) -> NDArray[np.int64]:
    m0, m1 = instruction.m0, instruction.m1
    if instruction.multiplier is Multiplier.TAP:
        assert taps is not None
        return low_bits(values + raised, 16) * (taps + low_bits(np.array(m0), 9))
    index = np.arange(values.shape[1])[:, None] % instruction.extent[0]
    if instruction.multiplier is Multiplier.IMMEDIATE:
        return low_bits(values, 16) * np.where(index == 0, m0, m1)
    second = m1 if instruction.row is Row.NONE else m0
    offsets = low_bits(np.array((m0, second)), 9)[index % 2]
    moved = values + offsets
    before = np.roll(low_bits(moved, 24), 1, axis=1)
    return np.where(index % 2 == 1, low_bits(moved, 16) * before, 0)


def window_sums(
    values: NDArray[np.int32], instruction: Vector, taps: NDArray[np.int8]
) -> NDArray[np.int32]:
    """The results of a vector with windows of columns, before its finish, in their order.

    values: int32[elements, block]; taps: int8[elements, 3, block], those of every element.
    """
    extent, levels = instruction.extent, instruction.reduction_levels
    groups, run = (*extent, 1)[levels], int(np.prod(extent[: levels + 1]))
    lanes = values.shape[-1]
    factors = taps + low_bits(np.array(instruction.m0), 9)
    products = low_bits(values, 8)[:, None] * factors
    # Runs, columns, elements of a column, taps, lanes.
    column = column_elements(instruction)
    columns = products.reshape(-1, run // column, column, 3, lanes).sum(axis=2)
    total = columns[:, :, 2].copy()
    total[:, 1:] += columns[:, :-1, 1]
    total[:, 2:] += columns[:, :-2, 0]
    last = total.reshape(len(total), groups, -1, lanes)[:, :, -1]
    return last.reshape(-1, lanes).astype(np.int32)


def vector(state: MachineState, instruction: Vector) -> None:
    """Read and fold every result, post-process all of them, write all of them in order."""
    config, outer = state.config, outer_extent(instruction)
    results = int(np.prod(outer))
    extent = instruction.extent
    words = state.act if instruction.source is Memory.ACT else state.acc
    values = words[element_words(instruction, config)].astype(np.int32)
    if is_window(instruction):
        total = window_sums(values, instruction, state.tap[window_taps(instruction, config)])
    else:
        taps = None
        if instruction.fold is Fold.MAC and instruction.multiplier is Multiplier.TAP:
            places = nest(instruction.tap_address, extent, instruction.tap_stride, config.tap_depth)
            taps = state.tap[places].reshape(results, -1, config.block)
        elements = values.reshape(results, -1, config.block)
        total = fold(elements, instruction, taps, raised_elements(instruction, config))
    written = results_written(instruction)
    places = nest(
        instruction.destination_address,
        outer,
        instruction.destination_stride,
        config.depth(written_memory(instruction)),
    )[written]
    if instruction.row is not Row.NONE:
        bias, scale = _row(state, instruction, total, outer)
        state.par.bias[places], state.par.scale[places] = bias[written], scale[written]
        return
    folded = _finish(state, instruction, total, outer)[written]
    if instruction.destination is Memory.ACC:
        state.acc[places] = folded
        return
    small = np.clip(folded, instruction.low, instruction.high).astype(np.int8)
    if instruction.lookup:
        small = state.tab[
            instruction.tab_address % config.tab_depth + 128 + small.astype(np.int64),
            np.arange(config.block),
        ]
    state.act[places] = small


def _finish(
    state: MachineState, instruction: Vector, values: NDArray[np.int32], outer: tuple[int, ...]
) -> NDArray[np.int32]:
    match instruction.finish:
        case Finish.NONE:
            return values
        case Finish.SHIFT:
            return shift_right(values, instruction.shift)
        case Finish.CUSTOM:
            own = state.config.own_finish
            assert own is not None, "legality refuses it"
            return own.meaning(values, instruction.shift)
        case Finish.REQUANTIZE:
            depth = state.config.par_depth
            places = nest(instruction.par_address, outer, instruction.par_stride, depth)
            zero, low, high = instruction.zero_point, instruction.low, instruction.high
            if instruction.rounding is Rounding.WIDE:
                low, high = zero - WIDE_LIMIT, zero + WIDE_LIMIT
            bias, scale = state.par.bias[places], state.par.scale[places]
            fixed = instruction.rounding is Rounding.FIXED
            meaning = requantize_fixed if fixed else requantize
            return meaning(values, bias, scale, zero, low, high)


def _row(
    state: MachineState, instruction: Vector, values: NDArray[np.int32], outer: tuple[int, ...]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Bias and scale of each row, [rows, 1]."""
    places = nest(instruction.par_address, outer, instruction.par_stride, state.config.par_depth)
    bias, scale = state.par.bias[places, 0], np.abs(state.par.scale[places, 0])
    start = np.full(len(values), instruction.m1, np.int32)
    match instruction.row:
        case Row.LESS if instruction.fold is Fold.MAX:
            bias, scale = start - largest_lane(values), np.ones(len(values), np.float32)
        case Row.LESS:
            bias = start - values.sum(axis=1, dtype=np.int32)
        case Row.OVER:
            bias, scale = start, over_sum(values, bias, scale)
        case Row.ROOT:
            scale = over_root(values, start, scale, instruction.shift)
    return bias[:, None], scale[:, None]


def execute(state: MachineState, instruction: Instruction) -> None:
    """Apply one instruction to ``state``; tokens and bank masks play no part."""
    match instruction:
        case Load():
            load(state, instruction)
        case Gemm():
            gemm(state, instruction)
        case Vector():
            vector(state, instruction)
        case Store():
            store(state, instruction)
