"""The fields of many instruction words at once, as columns of integers.

The same bits and the same legality as ``encoding.decode`` and ``legality.legality_problem``, for
programs of thousands of words; a test holds the two together.
"""

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
        legal = _nothing_above(chosen, layout.used_bits) & _legal(unit, columns, config)
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


def _fields(parts: NDArray[np.uint64], layout: Format) -> Columns:
    """The value of each field in each word: int64[fields, n].

    parts: uint64[n, parts of a word].
    """
    widths = np.array([field.width for field in layout.fields], np.uint64)[:, None]
    signs = np.array([field.signed for field in layout.fields], np.uint64)[:, None]
    places = np.cumsum(widths, axis=0, dtype=np.uint64) - widths
    part, shift = (places // 64).astype(np.intp)[:, 0], places % 64
    by_part = np.concatenate([parts, np.zeros_like(parts[:, :1])], axis=1).T
    # Shifted twice, since a shift by 64 is not defined.
    bits = by_part[part] >> shift | by_part[part + 1] << (63 - shift) << np.uint64(1)
    values = bits & ((np.uint64(1) << widths) - 1)
    negative = values >> (widths - 1) & signs
    # Modulo 2**64, as int64 counts.
    return (values - (negative << widths)).astype(np.int64)


def _nothing_above(parts: NDArray[np.uint64], used: int) -> NDArray[np.bool_]:
    """True where the reserved bits are 0."""
    part, shift = divmod(used, 64)
    rest = parts[:, part:].copy()
    if rest.size:
        rest[:, 0] >>= np.uint64(shift)
    return np.logical_not(np.logical_or.reduce(rest != 0, axis=1))


def _legal(unit: Unit, field: dict[str, Columns], config: HardwareConfig) -> NDArray[np.bool_]:
    """As ``encoding.decode`` and ``legality.legality_problem`` judge."""
    legal: NDArray[np.bool_] = ((field["wait"] | field["post"]) >> int(unit) & 1) == 0
    match unit:
        case Unit.LOAD:
            rows = field["pad_y_before"] + field["count_y"] + field["pad_y_after"]
            columns = field["pad_x_before"] + field["count_x"] + field["pad_x_after"]
            legal &= (field["count_z"] * rows * columns != 0) & (field["memory"] < len(Memory))
            sizes = np.array([config.word_bytes(memory) for memory in Memory])
            size = sizes[np.minimum(field["memory"], len(Memory) - 1)]
            size = np.where(field["nibbles"], config.bus_bytes, size)
            legal &= np.where(field["step"], _windows(field, config), _aligned(field, size))
            codes = [memory.code for memory in config.short_memories]
            legal &= (field["nibbles"] == 0) | np.isin(field["memory"], codes)
            off = np.logical_or.reduce([field[name] % SHORT_ROWS != 0 for name in BY_ROWS])
            legal &= ~((field["nibbles"] != 0) & (field["memory"] == Memory.TAB.code) & off)
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
