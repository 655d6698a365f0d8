"""LOADs and STOREs of more words, rows or planes than their fields count, as several."""

from collections.abc import Iterator
from typing import Any

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import dram_word_bytes
from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Load, Store

__all__ = ["MOST", "MOST_PADDING", "moves"]

MOST = 4095
"""Words in a row, rows in a plane, and planes: each has 12 bits."""

MOST_PADDING = 255
"""Words before a row, and so on: each has 8 bits."""


def moves(whole: Load | Store, config: HardwareConfig) -> Iterator[Load | Store]:
    """Smaller moves that together equal ``whole``: plane by plane, row by row, word by word."""
    if max(whole.count_x, whole.count_y, whole.count_z) <= MOST and not _is_padded_far(whole):
        yield whole
        return
    word, stride = dram_word_bytes(whole, config), 1
    if isinstance(whole, Load) and whole.step:
        word, stride = whole.step, whole.stride_x
    for planes in _cut(whole, "z", whole.dram_stride_z, whole.sram_stride_z):
        for rows in _cut(planes, "y", whole.dram_stride_y, whole.sram_stride_y):
            for part in _cut(rows, "x", word, stride):
                yield _with_ends(part, part.dram_address - rows.dram_address)


def _is_padded_far(whole: Load | Store) -> bool:
    if isinstance(whole, Store):
        return False
    beside = max(whole.pad_x_before, whole.pad_x_after)
    return max(beside, whole.pad_y_before, whole.pad_y_after) > MOST_PADDING


def _cut(whole: Load | Store, axis: str, dram: int, sram: int) -> Iterator[Load | Store]:
    """Pieces along an axis: padding, what the axis counts, padding.

    dram, sram: bytes and words from one of what the axis counts to the next.
    """
    count = getattr(whole, f"count_{axis}")
    before, behind = (getattr(whole, f"pad_{axis}_{side}", 0) for side in ("before", "after"))
    if count <= MOST and max(before, behind) <= MOST_PADDING:
        yield whole
        return

    def piece(cell: int, start: int, words: int, padding: tuple[int, int]) -> Load | Store:
        """From cell ``cell`` of the block on, and in DRAM from ``start`` on."""
        changed: dict[str, Any] = {f"count_{axis}": words}
        if isinstance(whole, Load) and axis != "z":
            changed |= {f"pad_{axis}_before": padding[0], f"pad_{axis}_after": padding[1]}
        return replace(
            whole,
            dram_address=whole.dram_address + start * dram,
            sram_address=whole.sram_address + cell * sram,
            **changed,
        )

    first = before % MOST_PADDING if before > MOST_PADDING else before
    for cell in range(0, before - first, MOST_PADDING):
        yield piece(cell, 0, 0, (MOST_PADDING, 0))
    last = min(behind, MOST_PADDING)
    for start in range(0, count, MOST) or (0,):
        end = min(start + MOST, count)
        padding = first * (start == 0), last * (end == count)
        yield piece(before + start - padding[0], start, end - start, padding)
    for more in range(last, behind, MOST_PADDING):
        yield piece(before + count + more, 0, 0, (min(behind - more, MOST_PADDING), 0))


def _with_ends(part: Load | Store, moved: int) -> Load | Store:
    """A part that begins so many bytes behind the row's first: windows count from there."""
    if not moved or not isinstance(part, Load) or not part.step:
        return part
    first, end = part.row_first - moved, part.row_end - moved
    return replace(part, row_first=max(first, 0), row_end=max(end, 0))
