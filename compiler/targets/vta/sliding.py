"""Depthwise taps as windows of columns: VECTOR applies a row of taps each cycle."""

from dovetail.isa.frozen import frozen, replace
from dovetail.isa.instruction_formats import VECTOR_LEVELS

from .layers.tap_row import TAP_GROUP, WINDOW
from .operands import Operand, Tile

__all__ = ["Windowed", "slide"]


@frozen
class Windowed:
    """A tile of windows of columns.

    skip: results at the start of each row that are not written.  wide: whether a column has two
    levels, so that the windows are wider than three columns.
    """

    tile: Tile
    skip: int
    wide: bool


def slide(tile: Tile) -> Windowed | None:
    """``tile`` with its innermost folded level, of at most ``WINDOW`` taps, inside the instruction.

        for x, for ky, for kx of kw            for x of X + skip, for column of s, for ky
            source[s * x + kx] * taps[kx]  ->      source[first + s * x + column] * three taps

    Rows of taps may be cut into groups, by a level above the innermost, which stays.  Only taps
    have windows; they are the last of a group of four words but one.  None when there is no such
    level, or more cycles would be needed.
    """
    if "taps" not in tile.operands or not tile.folded or tile.nest.makes_row:
        return None
    source, taps = tile.operands["source"], tile.operands["taps"]
    width, step = tile.extents[0], source.strides[0]
    rows = tile.folded.bit_length()
    if not 1 < width <= WINDOW or taps.strides[0] != 1 or rows > 3 or rows == len(tile.extents):
        return None
    if any(stride % TAP_GROUP for stride in taps.strides[1:]):
        return None
    if (taps.address + width) % TAP_GROUP != WINDOW or not step or source.strides[rows] % step:
        return None
    # Columns from one result to the next, and before the first result's last.
    stride = source.strides[rows] // step
    skip = -(-width // stride) - 1 if stride > 0 else 0
    if stride < 1 or stride * (tile.extents[rows] + skip) >= width * tile.extents[rows]:
        return None
    if stride > 1 and len(tile.extents) + (rows == 1) > VECTOR_LEVELS:
        return None
    first = (width - stride * (1 + skip)) * step
    if source.address + first < 0:
        return None

    def moved(operand: Operand, address: int, column: int) -> Operand:
        before = operand.strides[1:rows] or (0,)
        columns = (column,) if stride > 1 else ()
        return Operand(operand.scope, address, (*before, *columns, *operand.strides[rows:]))

    operands = dict(tile.operands)
    for name in ("target", "bias", "scale"):
        if name in operands:
            operand = operands[name]
            start = operand.address - skip * operand.strides[rows]
            operands[name] = moved(operand, start, 0)
    operands["source"] = moved(source, source.address + first, step)
    operands["taps"] = moved(taps, taps.address, 0)
    folded = (tile.extents[1:rows] or (1,)) + ((stride,) if stride > 1 else ())
    extents = (*folded, tile.extents[rows] + skip, *tile.extents[rows + 1 :])
    changed = replace(tile, operands=operands, extents=extents, folded=(1 << len(folded)) - 1)
    return Windowed(changed, skip, rows > 2)
