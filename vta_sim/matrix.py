"""Effect of GEMM on the data: as ``dovetail.isa.semantics.gemm``, compiled."""

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Gemm
from dovetail.isa.memories import Unit
from dovetail.isa.table import InstructionTable

from .memories import Memories
from .native.language import Levels, dot, load_tile, load_word, store_word, sum_rows, sum_word

__all__ = ["gemm", "order_levels"]


def gemm(row: Gemm, m: Memories) -> None:
    """Run a GEMM, iteration after iteration; a tile stays in registers while its address does."""
    act_words, act_wrap, wgt_wrap, acc_wrap = m.act, m.act_wrap, m.wgt_wrap, m.acc_wrap
    acc_words, offset, zero = m.acc, row.weight_offset, row.act_zero_point
    loaded = row.wgt_address & wgt_wrap
    tile = load_tile(m.wgt, loaded)
    taken = zero * (sum_rows(tile) + offset * m.lanes)
    count, reduction = row.extent[0], row.reduction
    act_step, wgt_step, acc_step = row.act_stride[0], row.wgt_stride[0], row.acc_stride[0]
    for i5 in range(row.extent[5]):
        for i4 in range(row.extent[4]):
            for i3 in range(row.extent[3]):
                for i2 in range(row.extent[2]):
                    for i1 in range(row.extent[1]):
                        act = row.act_address + _offset(row.act_stride, i1, i2, i3, i4, i5)
                        wgt = row.wgt_address + _offset(row.wgt_stride, i1, i2, i3, i4, i5)
                        acc = row.acc_address + _offset(row.acc_stride, i1, i2, i3, i4, i5)
                        first = not row.accumulate and _none(reduction, i1, i2, i3, i4, i5)
                        for i0 in range(count):
                            if wgt & wgt_wrap != loaded:
                                loaded = wgt & wgt_wrap
                                tile = load_tile(m.wgt, loaded)
                                if zero:
                                    taken = zero * (sum_rows(tile) + offset * m.lanes)
                            product = dot(tile, act_words, act & act_wrap)
                            if offset:
                                product += offset * sum_word(act_words, act & act_wrap)
                            if zero:
                                product -= taken
                            if not (first and (i0 == 0 or not reduction & 1)):
                                product += load_word(acc_words, acc & acc_wrap)
                            store_word(acc_words, acc & acc_wrap, product)
                            act += act_step
                            wgt += wgt_step
                            acc += acc_step


def _offset(stride: Levels, i1: int, i2: int, i3: int, i4: int, i5: int) -> int:
    """Offset that the indices of levels 1 and up add to an address."""
    return i1 * stride[1] + i2 * stride[2] + i3 * stride[3] + i4 * stride[4] + i5 * stride[5]


def _none(reduction: int, i1: int, i2: int, i3: int, i4: int, i5: int) -> bool:
    """True if every reduced level of 1 and up is at index 0."""
    lower = i1 * (reduction >> 1 & 1) + i2 * (reduction >> 2 & 1) + i3 * (reduction >> 3 & 1)
    return lower + i4 * (reduction >> 4 & 1) + i5 * (reduction >> 5 & 1) == 0


def order_levels(table: InstructionTable, config: HardwareConfig) -> None:
    """Permute the levels of each GEMM of ``table``, where that changes no result.

    Levels that keep the weights become the inner ones, the longest innermost. A GEMM that only
    accumulates may run in any order. Another may where each result is complete in itself: levels
    that are reduced keep the ACC address, and the others reach no address twice. Its first tile
    comes first in any order of the levels.
    """
    mine = np.flatnonzero(table.units == int(Unit.GEMM))
    extent = table.levels(Gemm.format, "extent", mine)
    levels = np.arange(extent.shape[1])
    reduced = (table.field(Gemm.format, "reduction", mine)[:, None] >> levels & 1).astype(bool)
    still = extent == 1
    step = np.abs(table.levels(Gemm.format, "acc_stride", mine))
    complete = (~reduced | still | (step == 0)).all(axis=1)
    # In the order of their steps, each must be longer than all before it reach.
    reach = np.where(reduced | still, 0, (extent - 1) * step)
    by_step = np.argsort(np.where(reduced | still, -1, step), axis=1, kind="stable")
    sorted_reach = np.take_along_axis(reach, by_step, 1)
    before = np.cumsum(sorted_reach, axis=1) - sorted_reach
    apart = np.take_along_axis(step, by_step, 1) > before
    complete &= (apart | np.take_along_axis(reduced | still, by_step, 1)).all(axis=1)
    complete &= reach.sum(axis=1) < config.acc_depth
    free = complete | (table.field(Gemm.format, "accumulate", mine) != 0)

    moves = (table.levels(Gemm.format, "wgt_stride", mine) != 0) & ~still
    order = np.argsort(np.where(moves, 1, -extent), axis=1, kind="stable")
    order = np.where(free[:, None], order, levels)
    for stem in ("extent", "act_stride", "wgt_stride", "acc_stride"):
        values = np.take_along_axis(table.levels(Gemm.format, stem, mine), order, 1)
        table.set_levels(Gemm.format, stem, mine, values)
    bits = np.take_along_axis(reduced, order, 1).astype(np.int64) << levels
    table.set_field(Gemm.format, "reduction", mine, bits.sum(axis=1))
