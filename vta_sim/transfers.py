"""Effect of LOAD and STORE on the data: as ``dovetail.isa.semantics``, compiled.

DRAM addresses are taken modulo 2**32 and are within DRAM: the window has been checked.
"""

from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory

from .memories import Memories
from .native.language import AnyArray, Bytes, copy, fill

__all__ = ["load", "read_words", "write_rows"]

ACT, WGT, ACC = Memory.ACT.code, Memory.WGT.code, Memory.ACC.code
PAR, TAP, TAB = Memory.PAR.code, Memory.TAP.code, Memory.TAB.code
LAST_ADDRESS = (1 << 32) - 1


def load(row: Load, m: Memories) -> None:
    """Run a LOAD: every padding cell is filled, every data cell copied."""
    if row.step > 0:
        _load_windows(row, m)
        return
    size = _word_bytes(row, m)
    before, count = row.pad_x_before, row.count_x
    rows = row.pad_y_before + row.count_y + row.pad_y_after
    columns = before + count + row.pad_x_after
    for z in range(row.count_z):
        for y in range(rows):
            cell = row.sram_address + z * row.sram_stride_z + y * row.sram_stride_y
            number = y - row.pad_y_before
            if count == 0 or number < 0 or number >= row.count_y:
                _put(row, m, cell, columns, -1, size)
                continue
            place = row.dram_address + z * row.dram_stride_z + number * row.dram_stride_y
            source = (place & LAST_ADDRESS) - m.dram_base
            _put(row, m, cell, before, -1, size)
            if row.nibbles > 0 and row.memory == PAR and row.gap > 0:
                _put_same(m, cell + before, count, source)
            elif row.nibbles > 0 and row.memory == PAR:
                _put_scales(m, cell + before, count, source)
            elif row.nibbles > 0 and row.memory == TAB:
                _repeat(m, cell + before, count, source)
            elif row.nibbles > 0:
                _expand(m, cell + before, count, source)
            else:
                _put(row, m, cell + before, count, source, size)
            _put(row, m, cell + before + count, row.pad_x_after, -1, size)


def _load_windows(row: Load, m: Memories) -> None:
    """Run a LOAD with a step."""
    for z in range(row.count_z):
        for y in range(row.pad_y_before + row.count_y + row.pad_y_after):
            cell = row.sram_address + z * row.sram_stride_z + y * row.sram_stride_y
            number = y - row.pad_y_before
            start = row.dram_address + z * row.dram_stride_z + number * row.dram_stride_y
            inside = number >= 0 and number < row.count_y
            for x in range(row.count_x):
                at = ((cell + x * (1 + row.gap)) & m.act_wrap) * m.lanes
                place = x * row.step
                fill(m.act, at, row.pad_value, m.lanes)
                first = max(row.row_first - place, 0)
                size = min(row.row_end - place, m.lanes) - first
                if inside and size > 0:
                    source = ((start + place + first) & LAST_ADDRESS) - m.dram_base
                    copy(m.act, at + first, m.dram, source, size)


def _expand(m: Memories, cell: int, count: int, source: int) -> None:
    """Write ``count`` words of WGT from word ``cell`` on: nibbles in DRAM from byte ``source``."""
    half = m.lanes // 2
    for x in range(count):
        at = ((cell + x) & m.wgt_wrap) * m.lanes * m.lanes
        for lane in range(m.lanes):
            factor = 1 + (m.dram[source + lane // 2] >> 4 * (lane % 2) & 15)
            place = source + m.nibble_head + lane * half
            for k in range(half):
                both = m.dram[place + k]
                m.wgt[at] = ((both & 15 ^ 8) - 8) * factor
                m.wgt[at + 1] = ((both >> 4 ^ 8) - 8) * factor
                at += 2
        source += m.nibble_head + m.lanes * half


def _put_scales(m: Memories, cell: int, count: int, source: int) -> None:
    """Write ``count`` words of PAR from word ``cell`` on: scales in DRAM, and biases of 0."""
    half = 4 * m.lanes
    for x in range(count):
        at = ((cell + x) & m.par_wrap) * half
        fill(m.bias, at, 0, half)
        copy(m.scale, at, m.dram, source + x * half, half)


def _put_same(m: Memories, cell: int, count: int, source: int) -> None:
    """Write ``count`` words of PAR from word ``cell`` on: each a bias and a scale for all lanes."""
    for x in range(count):
        at = ((cell + x) & m.par_wrap) * 4 * m.lanes
        for lane in range(m.lanes):
            copy(m.bias, at + 4 * lane, m.dram, source, 4)
            copy(m.scale, at + 4 * lane, m.dram, source + 4, 4)
        source += m.short_same


def _repeat(m: Memories, cell: int, count: int, source: int) -> None:
    """Write ``count`` words of TAB from word ``cell`` on: each some bytes, as often as they fit."""
    size = m.short_row
    for x in range(count):
        at = ((cell + x) & m.tab_wrap) * m.lanes
        for place in range(m.lanes // size):
            copy(m.tab, at + place * size, m.dram, source + x * size, size)


def _word_bytes(row: Load, m: Memories) -> int:
    if row.memory == WGT:
        return m.lanes * m.lanes
    if row.memory == ACC:
        return 4 * m.lanes
    return 8 * m.lanes if row.memory == PAR else m.lanes


def _put(row: Load, m: Memories, cell: int, count: int, source: int, size: int) -> None:
    """Write ``count`` words from word ``cell`` on: DRAM from byte ``source``, or padding (-1)."""
    while count > 0:
        at = cell & _wrap(row, m)
        # As far as the memory's end.
        words = min(count, _wrap(row, m) + 1 - at)
        if row.memory == PAR:
            words = 1
            _put_parameters(row, m, at, source)
        elif row.memory == ACT:
            _move(m.act, at * size, m.dram, source, words * size, row.pad_value)
        elif row.memory == WGT:
            _move(m.wgt, at * size, m.dram, source, words * size, row.pad_value)
        elif row.memory == ACC:
            _move(m.acc, at * size, m.dram, source, words * size, row.pad_value)
        elif row.memory == TAP:
            _move(m.tap, at * size, m.dram, source, words * size, row.pad_value)
        else:
            _move(m.tab, at * size, m.dram, source, words * size, row.pad_value)
        cell += words
        count -= words
        if source >= 0:
            source += words * size


def _wrap(row: Load, m: Memories) -> int:
    """Depth less one of the memory."""
    if row.memory == ACT:
        return m.act_wrap
    if row.memory == WGT:
        return m.wgt_wrap
    if row.memory == ACC:
        return m.acc_wrap
    if row.memory == PAR:
        return m.par_wrap
    return m.tap_wrap if row.memory == TAP else m.tab_wrap


def _put_parameters(row: Load, m: Memories, at: int, source: int) -> None:
    """One word of PAR: biases, then scales."""
    half = 4 * m.lanes
    _move(m.bias, at * half, m.dram, source, half, row.pad_value)
    _move(m.scale, at * half, m.dram, source + half if source >= 0 else -1, half, row.pad_value)


def _move(target: AnyArray, at: int, dram: Bytes, source: int, size: int, padding: int) -> None:
    """Write ``size`` bytes: DRAM from byte ``source``, or padding (-1)."""
    if source >= 0:
        copy(target, at, dram, source, size)
    else:
        fill(target, at, padding, size)


def read_words(row: Store, m: Memories) -> None:
    """Read the operand of a STORE: words of ACT in the order z, y, x, to ``m.stored``."""
    place = 0
    for z in range(row.count_z):
        for y in range(row.count_y):
            word = row.sram_address + z * row.sram_stride_z + y * row.sram_stride_y
            left = row.count_x
            while left > 0:
                at = word & m.act_wrap
                words = min(left, m.act_wrap + 1 - at)
                copy(m.stored, place, m.act, at * m.lanes, words * m.lanes)
                place += words * m.lanes
                word += words
                left -= words


def write_rows(row: Store, m: Memories) -> None:
    """Write the result of a STORE: ``m.stored``, row by row, to DRAM."""
    size, place = row.count_x * m.lanes, 0
    for z in range(row.count_z):
        for y in range(row.count_y):
            address = row.dram_address + z * row.dram_stride_z + y * row.dram_stride_y
            copy(m.dram, (address & LAST_ADDRESS) - m.dram_base, m.stored, place, size)
            place += size
