"""The fields of many instruction words at once, as columns of integers.

The same bits and the same legality as ``encoding.decode`` and ``legality.legality_problem``, for
programs of thousands of words; a test holds the two together.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from .config import INSTRUCTION_BYTES, SHORT_ROWS, HardwareConfig
from .encoding import SIDES
from .formats import Format
from .frozen import frozen
from .instruction_formats import VECTOR_LEVELS
from .instructions import FORMATS, Finish, Fold, Multiplier, Rounding, Row
from .legality import BY_ROWS
from .memories import Memory, Unit

__all__ = ["InstructionTable", "decode_table"]

Columns = NDArray[np.int64]


@frozen
class InstructionTable:
    """A program, field by field.

    units: int64[n], the unit of each instruction; -1 for a word that is illegal for the
    configuration. rows: int64[n, columns]: the values of the fields in the order of the format, the
    rest 0; all 0 for an illegal word.
    """

    units: NDArray[np.int64]
    rows: NDArray[np.int64]

    def fields(self, layout: Format, indices: NDArray[np.intp]) -> dict[str, Columns]:
        """All fields of some instructions of the format ``layout``, by name; each int64[k]."""
        return dict(zip(COLUMNS[layout.name], self.rows.T[:, indices], strict=False))

    def field(self, layout: Format, name: str, indices: NDArray[np.intp]) -> Columns:
        """Values of a field for some instructions of the format ``layout``; int64[k]."""
        return self.rows[indices, _column(layout, name)]

    def set_field(
        self, layout: Format, name: str, indices: NDArray[np.intp], values: Columns
    ) -> None:
        """Change what ``field`` gives."""
        self.rows[indices, _column(layout, name)] = values

    def levels(self, layout: Format, stem: str, indices: NDArray[np.intp]) -> Columns:
        """Values of a field that every loop level has; int64[k, levels]."""
        return self.rows[indices, _level_columns(layout, stem)]

    def set_levels(
        self, layout: Format, stem: str, indices: NDArray[np.intp], values: Columns
    ) -> None:
        """Change what ``levels`` gives."""
        self.rows[indices, _level_columns(layout, stem)] = values


def decode_table(words: NDArray[np.uint8], config: HardwareConfig) -> InstructionTable:
    """Decode ``words`` uint8[n, 64] for the hardware of ``config``."""
    count = len(words)
    width = max(len(layout.fields) for layout in FORMATS)
    table = InstructionTable(np.full(count, -1, np.int64), np.zeros((count, width), np.int64))
    parts = np.ascontiguousarray(words).view("<u8").reshape(count, INSTRUCTION_BYTES // 8)
    opcodes = (parts[:, 0] & np.uint64(15)).astype(np.int64)
    for unit, layout in zip(Unit, FORMATS, strict=True):
        mine = np.flatnonzero(opcodes == unit + 1)
        if not mine.size:
            continue
        chosen = parts[mine]
        values = _fields(chosen, layout)
        columns = dict(zip(COLUMNS[layout.name], values, strict=True))
        legal = _nothing_above(chosen, layout) & _legal(unit, columns, config)
        table.rows[mine[legal], : len(values)] = values.T[legal]
        table.units[mine[legal]] = int(unit)
    return table


COLUMNS = {
    layout.name: {field.name: place for place, field in enumerate(layout.fields)}
    for layout in FORMATS
}
"""Place of each field, by the name of the format."""


def _column(layout: Format, name: str) -> int:
    return COLUMNS[layout.name][name]


def _level_columns(layout: Format, stem: str) -> slice:
    """Levels are side by side, level 0 (or 1) first."""
    columns = COLUMNS[layout.name]
    first = level = 0 if f"{stem}0" in columns else 1
    while f"{stem}{level}" in columns:
        level += 1
    start = columns[f"{stem}{first}"]
    return slice(start, start + level - first)


@frozen
class _Bits:
    """Where the fields of a format are: uint64[fields, 1], but part, intp[fields].

    across: intp[k], fields that go on in the next part.  signed: intp[k].  used: bits of all.
    """

    part: NDArray[np.intp]
    shift: NDArray[np.uint64]
    mask: NDArray[np.uint64]
    across: NDArray[np.intp]
    signed: NDArray[np.intp]
    sign: NDArray[np.uint64]
    used: int

    @classmethod
    def of(cls, layout: Format) -> "_Bits":
        widths = np.array([field.width for field in layout.fields], np.uint64)[:, None]
        signed = np.flatnonzero([field.signed for field in layout.fields])
        ends = np.cumsum(widths, axis=0, dtype=np.uint64)
        part, shift = np.divmod(ends - widths, np.uint64(64))
        across = np.flatnonzero(shift + widths > 64)
        one = np.uint64(1)
        mask, sign = (one << widths) - one, one << widths[signed] - one
        return cls(part.astype(np.intp)[:, 0], shift, mask, across, signed, sign, int(ends[-1, 0]))


BITS = {layout.name: _Bits.of(layout) for layout in FORMATS}
"""By the name of the format."""


def _fields(parts: NDArray[np.uint64], layout: Format) -> Columns:
    """The value of each field in each word: int64[fields, n].

    parts: uint64[n, parts of a word].
    """
    bits = BITS[layout.name]
    by_part = np.ascontiguousarray(parts.T)
    values = by_part[bits.part] >> bits.shift
    over = bits.across
    values[over] |= by_part[bits.part[over] + 1] << np.uint64(64) - bits.shift[over]
    values &= bits.mask
    # The sign's bit counts negative; modulo 2**64, as int64 counts.
    values[bits.signed] = (values[bits.signed] ^ bits.sign) - bits.sign
    return values.view(np.int64)


def _nothing_above(parts: NDArray[np.uint64], layout: Format) -> NDArray[np.bool_]:
    """True where the reserved bits are 0."""
    part, shift = divmod(BITS[layout.name].used, 64)
    rest = parts[:, part:].copy()
    rest[:, :1] >>= np.uint64(shift)
    return np.bitwise_or.reduce(rest, axis=1) == 0


def _legal(unit: Unit, field: dict[str, Columns], config: HardwareConfig) -> NDArray[np.bool_]:
    """As ``encoding.decode`` and ``legality.legality_problem`` judge."""
    legal: NDArray[np.bool_] = ((field["wait"] | field["post"]) >> int(unit) & 1) == 0
    match unit:
        case Unit.LOAD:
            rows = field["pad_y_before"] + field["count_y"] + field["pad_y_after"]
            columns = field["pad_x_before"] + field["count_x"] + field["pad_x_after"]
            legal &= (field["count_z"] * rows * columns != 0) & (field["memory"] < len(Memory))
            sizes, may_be_short = _of_memories(config)
            memory, short = np.minimum(field["memory"], len(sizes) - 1), field["nibbles"] != 0
            size = sizes[memory]
            size = np.where(short, config.bus_bytes, size)
            legal &= np.where(field["step"], _windows(field, config), _aligned(field, size))
            if short.any():
                legal &= ~short | may_be_short[memory]
                off = np.logical_or.reduce([field[name] % SHORT_ROWS != 0 for name in BY_ROWS])
                legal &= ~(short & (field["memory"] == Memory.TAB.code) & off)
        case Unit.STORE:
            legal &= field["count_z"] * field["count_y"] * field["count_x"] != 0
            legal &= _aligned(field, np.array(config.word_bytes(Memory.ACT)))
        case Unit.GEMM:
            legal &= _extents(field)
        case Unit.VECTOR:
            legal &= _extents(field) & _rounded(field, config)
            legal &= (field["fold"] < len(Fold)) & (field["multiplier"] < len(Multiplier))
            legal &= field["finish"] < (len(Finish) if config.finish else Finish.CUSTOM)
            legal &= field["row"] < (len(Row) if config.row_parameters else 1)
            levels = field["reduction_levels"]
            legal &= (levels >= 1) & (levels <= VECTOR_LEVELS)
            legal &= (field["lookup"] == 0) | (field["destination"] == SIDES.index(Memory.ACT))
            legal &= (field["tab_address"] % 256 == 0) & (field["low"] <= field["high"])
    return legal


@cache
def _of_memories(config: HardwareConfig) -> tuple[Columns, NDArray[np.bool_]]:
    """Bytes of a word of each memory, and whether it may be in DRAM in a short form; by code."""
    sizes = [config.word_bytes(memory) for memory in Memory]
    return np.array(sizes), np.array([each in config.short_memories for each in Memory])


def _rounded(field: dict[str, Columns], config: HardwareConfig) -> NDArray[np.bool_]:
    """True where a VECTOR may have its rounding."""
    rounding = field["rounding"]
    wide = (rounding == Rounding.WIDE) & (field["destination"] == SIDES.index(Memory.ACC))
    fixed = config.fixed_rounding & (rounding == Rounding.FIXED)
    return (rounding == Rounding.FLOAT) | fixed | config.row_parameters & wide


def _windows(field: dict[str, Columns], config: HardwareConfig) -> NDArray[np.bool_]:
    """True where a LOAD may have its step."""
    bus = config.bus_bytes
    fits: NDArray[np.bool_] = (field["memory"] == Memory.ACT.code) & (field["step"] >= bus)
    fits &= (field["pad_x_before"] == 0) & (field["pad_x_after"] == 0)
    return fits & (field["dram_stride_y"] % bus == 0) & (field["dram_stride_z"] % bus == 0)


def _aligned(field: dict[str, Columns], size: Columns) -> NDArray[np.bool_]:
    names = ("dram_address", "dram_stride_y", "dram_stride_z")
    result: NDArray[np.bool_] = np.logical_and.reduce([field[name] % size == 0 for name in names])
    return result


def _extents(field: dict[str, Columns]) -> NDArray[np.bool_]:
    extents = [values for name, values in field.items() if name.startswith("extent")]
    result: NDArray[np.bool_] = np.logical_and.reduce([extent != 0 for extent in extents])
    return result
