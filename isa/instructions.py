"""The four instructions: one frozen class each, its fields and what they mean.

Which values an instruction may have is in ``legality``; what it does in ``semantics``; which
addresses it touches in ``footprint``; where its bits are in ``instruction_formats``.

Loop levels count from the innermost: level 0 varies fastest.  Every scratchpad address is taken
modulo the depth of its memory.
"""

from enum import IntEnum
from typing import ClassVar

from .formats import Format
from .frozen import KeepsHash, frozen
from .instruction_formats import (
    GEMM_FORMAT,
    LOAD_FORMAT,
    STORE_FORMAT,
    VECTOR_FORMAT,
    VECTOR_LEVELS,
)
from .memories import Memory, Unit

__all__ = [
    "CLASSES",
    "FORMATS",
    "Finish",
    "Fold",
    "Gemm",
    "Instruction",
    "Load",
    "Multiplier",
    "Rounding",
    "Row",
    "Store",
    "Units",
    "Vector",
]

Units = frozenset[Unit]
NO_UNITS: Units = frozenset()


class Fold(IntEnum):
    """How VECTOR combines the elements of one reduction into its int32 accumulator (wrapping).

    Elements of ACT are sign-extended to 32 bits.
    """

    ADD = 0
    """Sum of the elements."""
    SUB = 1
    """First element minus all others."""
    MAX = 2
    """Largest element, as a signed number."""
    MIN = 3
    """Smallest element, as a signed number."""
    MAC = 4
    """Sum of the elements' low 16 bits (signed) times the multiplier; with WINDOW, of 8 bits."""


class Multiplier(IntEnum):
    """Where the multiplier of ``Fold.MAC`` comes from; 0 for every other fold."""

    TAP = 0
    """int8 from the TAP memory, per lane, plus the low 9 bits (signed) of ``m0``."""
    IMMEDIATE = 1
    """``m0`` where the level-0 index is 0, else ``m1``."""
    PAIR = 2
    """The element before it, for elements of odd level-0 index; those of even index count for
    nothing else.  Elements of odd index have an address of their own, and something is added to
    all: see VECTOR.
    """
    WINDOW = 3
    """Three neighbouring TAP words, for an element and what was read two columns before and one
    column before: see VECTOR.
    """


class Finish(IntEnum):
    """Ways in which VECTOR finishes the folded int32 value before it is written."""

    NONE = 0
    """Kept; clipped to ``low..high`` when the destination is ACT."""
    REQUANTIZE = 1
    """``clip(rint(float32(v + bias) * scale) + zero_point, low, high)`` with bias and scale from
    PAR; with the rounding FIXED in fixed point.
    """
    SHIFT = 2
    """``(v + (1 << shift >> 1)) >> shift`` (no wrap inside), then as NONE."""
    CUSTOM = 3
    """The result of the configuration's own `finish` for ``v`` and ``shift``, then as NONE.  Only
    where that field names one; its number is the last.
    """


class Rounding(IntEnum):
    """How REQUANTIZE scales and rounds; ignored by the other finishes."""

    FLOAT = 0
    """By a float32 scale, half to even: ONNX Runtime's results."""
    FIXED = 1
    """By a multiplier of 31 bits and a power of two, rounding twice: TensorFlow Lite's results.
    Only where the configuration has `fixed_rounding`.
    """
    WIDE = 2
    """As FLOAT, but ``-2^19..2^19`` takes the place of ``low..high``, before the zero point is
    added.  Only where the configuration has `row_parameters`, and only to ACC.
    """


class Row(IntEnum):
    """Results that VECTOR makes from all lanes of a folded word and writes to PAR, for all lanes
    alike, in place of a finish; only where the configuration has `row_parameters`.
    """

    NONE = 0
    """Nothing: each lane is finished separately."""
    LESS = 1
    """With the fold MAX, the bias ``m1`` less the largest of the lanes' low 8 bits (signed), and
    the scale 1.  With any other, the bias ``m1`` less the sum of all lanes, and lane 0's scale of
    PAR.
    """
    OVER = 2
    """The bias ``m1``, and lane 0's scale of PAR divided by the sum of all lanes and lane 0's bias
    of PAR: a quotient of float32.
    """
    ROOT = 3
    """Lane 0's bias of PAR; and lane 0's scale of PAR, times ``2^shift``, divided by the root of
    the sum of all lanes and ``m1``: to 16 bits, by a table.
    """


@frozen(kw_only=True)
class Load(KeepsHash):
    """Copy ``count_z x count_y x count_x`` words from DRAM into a padded block of a scratchpad.

    The block has ``pad_y_before + count_y + pad_y_after`` rows of ``pad_x_before + count_x +
    pad_x_after`` words; its cell (z, y, x) is at ``sram_address + z * sram_stride_z + y *
    sram_stride_y + x``.  With ``count_x`` or ``count_y`` 0 nothing is read: a pure fill.  No cell
    may be addressed twice.

    With a ``step`` the words of a row are *windows* of it, which may overlap: word x begins ``x *
    step`` bytes after the first, wherever that is, and goes to column ``x * (1 + gap)``.  Bytes
    outside ``row_first .. row_end - 1``, counted from the row's first, are read, and replaced by
    ``pad_value``.  So an image of few channels is read pixel by pixel, several of them in a word.

    With ``nibbles`` words are in DRAM in a short form.  A word of WGT is made from about half as
    many bytes: a multiplier of 4 bits for each output lane, from the beginning of a beat, then, in
    the next beats, a nibble for each weight, which is signed.  The lower nibble of a byte comes
    first.  Only where the configuration has `nibble_weights`.  Where it has `short_constants`, a
    word of PAR is made from its scales, with biases of 0, or, with a ``gap``, from one bias and one
    scale for all lanes; and four words of TAB are made from a beat, a quarter of which repeats over
    the lanes of each.
    """

    unit: ClassVar[Unit] = Unit.LOAD
    format: ClassVar[Format] = LOAD_FORMAT

    memory: Memory
    sram_address: int
    dram_address: int = 0
    count_x: int = 1
    count_y: int = 1
    count_z: int = 1
    dram_stride_y: int = 0
    dram_stride_z: int = 0
    sram_stride_y: int = 0
    sram_stride_z: int = 0
    pad_x_before: int = 0
    pad_x_after: int = 0
    pad_y_before: int = 0
    pad_y_after: int = 0
    pad_value: int = 0
    step: int = 0
    gap: int = 0
    row_first: int = 0
    row_end: int = 0
    nibbles: bool = False
    act_write_banks: int = 0
    acc_banks: int = 0
    wait: Units = NO_UNITS
    post: Units = NO_UNITS

    @property
    def columns(self) -> int:
        """Cells in a row of the padded block."""
        return self.pad_x_before + self.count_x + self.pad_x_after

    @property
    def rows(self) -> int:
        """Rows in a plane of the padded block."""
        return self.pad_y_before + self.count_y + self.pad_y_after

    @property
    def same(self) -> bool:
        """True if words of PAR are made from one bias and one scale."""
        return self.nibbles and self.memory is Memory.PAR and self.gap > 0

    @property
    def stride_x(self) -> int:
        """Words from one cell of a row to the next."""
        return 1 + self.gap if self.step else 1

    @property
    def words(self) -> int:
        """Words read from DRAM."""
        return self.count_x * self.count_y * self.count_z

    @property
    def padded(self) -> bool:
        """True if any cell is padding."""
        return self.columns * self.rows * self.count_z != self.words


@frozen(kw_only=True)
class Gemm(KeepsHash):
    """For each iteration: ``ACC[o] (+)= WGT[w] @ ACT[a]``, ``o``, ``w``, ``a`` affine in the six
    loop indices.

    A tile whose ``reduction`` levels all have index 0 overwrites ACC unless ``accumulate``; every
    other adds. Weights are int8, to which ``weight_offset`` is added; from inputs
    ``act_zero_point`` is taken; int32 sums that wrap.
    Iterations take effect one after the other.
    """

    unit: ClassVar[Unit] = Unit.GEMM
    format: ClassVar[Format] = GEMM_FORMAT

    act_address: int
    wgt_address: int
    acc_address: int
    extent: tuple[int, ...]
    act_stride: tuple[int, ...]
    wgt_stride: tuple[int, ...]
    acc_stride: tuple[int, ...]
    reduction: int = 0
    accumulate: bool = False
    weight_offset: int = 0
    act_zero_point: int = 0
    act_read_banks: int = 0
    acc_banks: int = 0
    wait: Units = NO_UNITS
    post: Units = NO_UNITS


@frozen(kw_only=True)
class Vector(KeepsHash):
    """For each iteration of the outer levels: fold the reduction levels lane by lane, post-process,
    write.

    Levels 0 to ``reduction_levels - 1`` are folded (level 0 always, perhaps with extent 1); the
    destination and PAR addresses move with the other levels only.  No word may be read after the
    same instruction wrote it, other than by a later instruction.
    """

    unit: ClassVar[Unit] = Unit.VECTOR
    format: ClassVar[Format] = VECTOR_FORMAT

    source: Memory
    destination: Memory
    source_address: int
    destination_address: int
    extent: tuple[int, ...]
    source_stride: tuple[int, ...]
    destination_stride: tuple[int, ...]
    """Levels 1 and up: four values; those of folded levels are ignored."""
    reduction_levels: int = 1
    fold: Fold = Fold.ADD
    multiplier: Multiplier = Multiplier.TAP
    post: Units = NO_UNITS
    finish: Finish = Finish.NONE
    lookup: bool = False
    rounding: Rounding = Rounding.FLOAT
    zero_point: int = 0
    low: int = -128
    high: int = 127
    shift: int = 0
    m0: int = 0
    m1: int = 0
    par_address: int = 0
    par_stride: tuple[int, ...] = (0,) * (VECTOR_LEVELS - 1)
    """Levels 1 and up, as destination_stride."""
    tap_address: int = 0
    tap_stride: tuple[int, ...] = (0,) * VECTOR_LEVELS
    tab_address: int = 0
    window_skip: int = 0
    row: Row = Row.NONE
    wide_window: bool = False
    act_read_banks: int = 0
    act_write_banks: int = 0
    acc_banks: int = 0
    wait: Units = NO_UNITS


@frozen(kw_only=True)
class Store(KeepsHash):
    """Copy ``count_z x count_y x count_x`` words from ACT to DRAM; ends when memory has answered
    every burst.
    """

    unit: ClassVar[Unit] = Unit.STORE
    format: ClassVar[Format] = STORE_FORMAT

    dram_address: int
    sram_address: int
    count_x: int = 1
    count_y: int = 1
    count_z: int = 1
    dram_stride_y: int = 0
    dram_stride_z: int = 0
    sram_stride_y: int = 0
    sram_stride_z: int = 0
    act_read_banks: int = 0
    wait: Units = NO_UNITS
    post: Units = NO_UNITS


Instruction = Load | Gemm | Vector | Store

CLASSES: tuple[type[Instruction], ...] = (Load, Gemm, Vector, Store)
FORMATS: tuple[Format, ...] = tuple(cls.format for cls in CLASSES)
