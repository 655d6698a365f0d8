"""Words and bytes that an instruction touches.

The one source of every address: semantics, bank masks, the dependence analysis and the race checker
use it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .config import HardwareConfig
from .frozen import frozen, replace
from .instructions import Finish, Fold, Gemm, Instruction, Load, Multiplier, Row, Store, Vector
from .memories import Memory

__all__ = [
    "Touch",
    "bank_masks",
    "block_bytes",
    "column_elements",
    "distinct",
    "dram_rows",
    "dram_word_bytes",
    "element_words",
    "is_pair",
    "is_window",
    "nest",
    "outer_extent",
    "raised_elements",
    "reads_parameters",
    "results_written",
    "row_span",
    "scratchpad_reads",
    "scratchpad_writes",
    "window_taps",
    "with_bank_masks",
    "written_memory",
]

Addresses = NDArray[np.int64]

KEPT = 1024
"""Patterns of addresses that are remembered: instructions of a layer differ in where they begin."""

KEPT_MASKS = 1 << 16
"""Instructions whose masks are remembered: programs of one network are made again and again."""


@frozen
class Touch:
    """Words of one scratchpad, as an instruction visits them (repeats included)."""

    memory: Memory
    addresses: Addresses


def nest(base: int, extent: Sequence[int], stride: Sequence[int], depth: int) -> Addresses:
    """Addresses ``(base + sum(index * stride)) mod depth``, level 0 varying fastest;
    int64[prod(extent)].
    """
    addresses = np.array([base], np.int64)
    for count, step in zip(extent, stride, strict=True):
        addresses = (np.arange(count, dtype=np.int64)[:, None] * step + addresses).reshape(-1)
    return addresses % depth


def distinct(base: int, extent: Sequence[int], stride: Sequence[int], depth: int) -> Addresses:
    """The addresses of ``nest``, each once, ascending."""
    low, steps = base, []
    for count, step in zip(extent, stride, strict=True):
        if step and count != 1:
            low += min(step * (count - 1), 0)
            steps.append((abs(step), count))
    found = low + _combs(tuple(sorted(steps)))
    if low >= 0 and found[-1] < depth:
        return found
    return np.unique(found % depth)


@lru_cache(maxsize=KEPT)
def _combs(steps: tuple[tuple[int, int], ...]) -> Addresses:
    """All sums of one multiple of each step below its count, each once, ascending."""
    found = np.zeros(1, np.int64)
    for step, count in steps:
        apart = step > found[-1]
        found = (np.arange(count, dtype=np.int64)[:, None] * step + found).reshape(-1)
        if not apart:
            found = np.unique(found)
    return found


def outer_extent(vector: Vector) -> tuple[int, ...]:
    """Extents of levels 1 and up with those that are folded set to 1."""
    return tuple(
        1 if level < vector.reduction_levels else count
        for level, count in enumerate(vector.extent)
        if level
    )


def is_pair(vector: Vector) -> bool:
    """True if results are sums of products of two elements (``Multiplier.PAIR``)."""
    return vector.fold is Fold.MAC and vector.multiplier is Multiplier.PAIR


def element_words(vector: Vector, config: HardwareConfig) -> Addresses:
    """Source word of every element, in order: int64[prod(extent)]."""
    depth = config.depth(vector.source)
    words = nest(vector.source_address, vector.extent, vector.source_stride, depth)
    if not is_pair(vector):
        return words
    odd = np.arange(len(words)) % vector.extent[0] % 2 == 1
    return np.where(odd, nest(_second(vector), vector.extent, vector.tap_stride, depth), words)


def _second(vector: Vector) -> int:
    """Where the second elements of pairs begin, were the level-0 index not counted."""
    return vector.source_address + vector.source_stride[0]


def _source_nests(vector: Vector) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Base, extents and strides of the elements; those of the second of each pair separately."""
    (inner, *outer), base, stride = vector.extent, vector.source_address, vector.source_stride
    if not is_pair(vector):
        return [(base, vector.extent, stride)]
    found = [(base, (-(-inner // 2), *outer), (2 * stride[0], *stride[1:]))]
    if inner > 1:
        step = vector.tap_stride
        odd = (inner // 2, *outer), (2 * step[0], *step[1:])
        found.append((_second(vector) + step[0], *odd))
    return found


def raised_elements(vector: Vector, config: HardwareConfig) -> int:
    """Offset that is added to elements before they are multiplied by taps (``Multiplier.TAP``)."""
    if not config.short_constants or vector.row is not Row.NONE:
        return 0
    return (vector.m1 + 256) % 512 - 256


def is_window(vector: Vector) -> bool:
    """True if results are sums over windows of columns (``Multiplier.WINDOW``)."""
    return vector.fold is Fold.MAC and vector.multiplier is Multiplier.WINDOW


def column_elements(vector: Vector) -> int:
    """Elements of a column of a vector with windows."""
    wide = vector.wide_window and vector.reduction_levels > 1
    return vector.extent[0] * (vector.extent[1] if wide else 1)


def window_taps(vector: Vector, config: HardwareConfig) -> Addresses:
    """TAP words of every element of a vector with windows: int64[elements, 3]."""
    first = nest(vector.tap_address, vector.extent, vector.tap_stride, config.tap_depth) & ~3
    return first[:, None] + np.arange(3)


@lru_cache(maxsize=KEPT)
def _tap_words(
    base: int, extent: tuple[int, ...], stride: tuple[int, ...], depth: int
) -> Addresses:
    """The words of ``window_taps``, each once, ascending."""
    first = np.unique(nest(base, extent, stride, depth) & ~3)
    return (first[:, None] + np.arange(3)).reshape(-1)


def reads_parameters(vector: Vector) -> bool:
    """True if it reads PAR."""
    if vector.row is Row.NONE:
        return vector.finish is Finish.REQUANTIZE
    return vector.row is not Row.LESS or vector.fold is not Fold.MAX


def written_memory(vector: Vector) -> Memory:
    """Where its results go."""
    return vector.destination if vector.row is Row.NONE else Memory.PAR


def _written(vector: Vector) -> tuple[int, tuple[int, ...]]:
    """First destination word, and extents of levels 1 and up, without results that are skipped."""
    base, extent, level = vector.destination_address, outer_extent(vector), vector.reduction_levels
    if not is_window(vector) or not vector.window_skip:
        return base, extent
    if level == len(vector.extent):
        return base, (0,) * len(extent)
    kept = max(0, vector.extent[level] - vector.window_skip)
    base += vector.window_skip * vector.destination_stride[level - 1]
    return base, (*extent[: level - 1], kept, *extent[level:])


def results_written(vector: Vector) -> NDArray[np.bool_]:
    """True for results, in their order, that are written: all but those that windows skip."""
    kept = np.ones(int(np.prod(outer_extent(vector))), bool)
    if is_window(vector):
        run = (*vector.extent, 1)[vector.reduction_levels]
        kept.reshape(-1, run)[:, : vector.window_skip] = False
    return kept


def block_bytes(address: int, load_or_store: Load | Store, word_bytes: int) -> Addresses:
    """First byte address of every DRAM word, in the order z, y, x (x fastest), from byte
    ``address``.  Words are ``word_bytes`` apart, those of a LOAD with a step as it says.
    """
    if isinstance(load_or_store, Load) and load_or_store.step:
        word_bytes = load_or_store.step
    return _block(
        address,
        (load_or_store.count_z, load_or_store.count_y, load_or_store.count_x),
        (load_or_store.dram_stride_z, load_or_store.dram_stride_y, word_bytes),
    ).reshape(-1)


def row_span(instruction: Load | Store, config: HardwareConfig) -> tuple[int, int]:
    """Bytes of a row's first beat before its first byte, and bytes of all its beats; 0 for none."""
    if isinstance(instruction, Load) and instruction.step and instruction.count_x:
        before = instruction.dram_address % config.bus_bytes
        size = before + (instruction.count_x - 1) * instruction.step + config.block
        return before, -(-size // config.bus_bytes) * config.bus_bytes
    return 0, dram_word_bytes(instruction, config) * instruction.count_x


def dram_word_bytes(instruction: Load | Store, config: HardwareConfig) -> int:
    """Bytes in DRAM of each word that is moved."""
    if isinstance(instruction, Store):
        return config.word_bytes(Memory.ACT)
    memory = instruction.memory
    if not instruction.nibbles:
        return config.word_bytes(memory)
    return config.short_bytes(memory, same=instruction.same)


def dram_rows(instruction: Load | Store, config: HardwareConfig) -> list[tuple[int, int]]:
    """Each contiguous row the instruction moves: (first byte address modulo 2**32, bytes).

    Whole beats: with a step, what is read is more than what is written.
    """
    before, size = row_span(instruction, config)
    if not size:
        return []
    starts = _block(
        instruction.dram_address - before,
        (instruction.count_z, instruction.count_y, 1),
        (instruction.dram_stride_z, instruction.dram_stride_y, 0),
    )
    return [(int(start) & 0xFFFFFFFF, size) for start in starts.reshape(-1)]


def _block(base: int, counts: tuple[int, int, int], strides: tuple[int, int, int]) -> Addresses:
    z, y, x = (np.arange(n, dtype=np.int64) * s for n, s in zip(counts, strides, strict=True))
    return base + z[:, None, None] + y[:, None] + x


def load_cells(load: Load, depth: int) -> tuple[Addresses, NDArray[np.bool_]]:
    """Word address of every cell of the padded block, int64[z, rows, columns], and which hold
    data.
    """
    cells = _block(
        load.sram_address,
        (load.count_z, load.rows, load.columns),
        (load.sram_stride_z, load.sram_stride_y, load.stride_x),
    )
    data = np.zeros(cells.shape, bool)
    data[
        :,
        load.pad_y_before : load.pad_y_before + load.count_y,
        load.pad_x_before : load.pad_x_before + load.count_x,
    ] = True
    return cells % depth, data


Visit = Callable[[int, Sequence[int], Sequence[int], int], Addresses]
"""``nest``, or ``distinct``."""


def scratchpad_reads(
    instruction: Instruction, config: HardwareConfig, visit: Visit = nest
) -> list[Touch]:
    """Every scratchpad read; ACC words that GEMM only overwrites count as read too.

    visit: ``nest``, or ``distinct`` for each word once, ascending.
    """
    touches: list[Touch] = []

    def add(memory: Memory, base: int, extent: Sequence[int], stride: Sequence[int]) -> None:
        touches.append(Touch(memory, visit(base, extent, stride, config.depth(memory))))

    match instruction:
        case Gemm(extent=extent):
            add(Memory.ACT, instruction.act_address, extent, instruction.act_stride)
            add(Memory.WGT, instruction.wgt_address, extent, instruction.wgt_stride)
            add(Memory.ACC, instruction.acc_address, extent, instruction.acc_stride)
        case Vector(extent=extent):
            for elements in _source_nests(instruction):
                add(instruction.source, *elements)
            if instruction.fold is Fold.MAC and instruction.multiplier is Multiplier.TAP:
                add(Memory.TAP, instruction.tap_address, extent, instruction.tap_stride)
            if is_window(instruction):
                taps = instruction.tap_address, extent, instruction.tap_stride
                touches.append(Touch(Memory.TAP, _tap_words(*taps, config.tap_depth)))
            if reads_parameters(instruction):
                outer = outer_extent(instruction)
                add(Memory.PAR, instruction.par_address, outer, instruction.par_stride)
            if instruction.lookup and instruction.row is Row.NONE:
                add(Memory.TAB, instruction.tab_address, (256,), (1,))
        case Store():
            counts = (instruction.count_x, instruction.count_y, instruction.count_z)
            strides = (1, instruction.sram_stride_y, instruction.sram_stride_z)
            add(Memory.ACT, instruction.sram_address, counts, strides)
        case Load():
            pass
    return touches


def scratchpad_writes(
    instruction: Instruction, config: HardwareConfig, visit: Visit = nest
) -> list[Touch]:
    """Every scratchpad write; ``visit`` as for ``scratchpad_reads``."""
    match instruction:
        case Load(memory=memory):
            base = instruction.sram_address
            extent: tuple[int, ...] = (
                instruction.columns,
                instruction.rows,
                instruction.count_z,
            )
            stride: tuple[int, ...] = (
                instruction.stride_x,
                instruction.sram_stride_y,
                instruction.sram_stride_z,
            )
        case Gemm():
            memory, base = Memory.ACC, instruction.acc_address
            extent, stride = instruction.extent, instruction.acc_stride
        case Vector():
            memory = written_memory(instruction)
            base, extent = _written(instruction)
            stride = instruction.destination_stride
            if not all(extent):
                return []
        case Store():
            return []
    return [Touch(memory, visit(base, extent, stride, config.depth(memory)))]


def _banks(touches: list[Touch], memory: Memory, config: HardwareConfig) -> int:
    mask = 0
    for touch in touches:
        if touch.memory is memory:
            size = config.bank_words(memory)
            first, last = (int(touch.addresses[end]) // size for end in (0, -1))
            banks = (first,) if first == last else set((touch.addresses // size).tolist())
            for bank in banks:
                mask |= 1 << bank
    return mask


def bank_masks(instruction: Instruction, config: HardwareConfig) -> dict[str, int]:
    """Exactly the bank masks that the instruction's addresses need, by the names of its fields."""
    reads = scratchpad_reads(instruction, config, distinct)
    writes = scratchpad_writes(instruction, config, distinct)
    masks = {
        "act_read_banks": _banks(reads, Memory.ACT, config),
        "act_write_banks": _banks(writes, Memory.ACT, config),
        "acc_banks": _banks(reads, Memory.ACC, config) | _banks(writes, Memory.ACC, config),
    }
    return {name: mask for name, mask in masks.items() if hasattr(instruction, name)}


@lru_cache(maxsize=KEPT_MASKS)
def with_bank_masks(instruction: Instruction, config: HardwareConfig) -> Instruction:
    """The instruction with exactly the bank masks its addresses need."""
    return replace(instruction, **bank_masks(instruction, config))  # type: ignore[arg-type]
