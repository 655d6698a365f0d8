"""The four instructions: one frozen class each, its fields and its legality.

Owns which values an instruction may have.  What an instruction does is in ``semantics``; which
addresses it touches is in ``footprint``; where its bits lie is in ``instruction_formats``.

Loop levels count from the innermost: level 0 varies fastest.  Every scratchpad address is taken
modulo the depth of its memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import ClassVar

from .config import INSTRUCTION_BYTES, HardwareConfig
from .errors import EncodingError
from .formats import Format
from .instruction_formats import (
    GEMM_FORMAT,
    LOAD_FORMAT,
    STORE_FORMAT,
    VECTOR_FORMAT,
    VECTOR_LEVELS,
)
from .memories import Memory, Unit

__all__ = [
    "FORMATS",
    "Finish",
    "Fold",
    "Gemm",
    "Instruction",
    "Load",
    "Multiplier",
    "Store",
    "Vector",
    "decode",
    "encode",
    "legality_problem",
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
    """Largest element."""
    MIN = 3
    """Smallest element."""
    MAC = 4
    """Sum of the elements' low 16 bits (signed) times the multiplier."""


class Multiplier(IntEnum):
    """Where the multiplier of ``Fold.MAC`` comes from; 0 for every other fold."""

    TAP = 0
    """int8 from the TAP memory, per lane, plus the low 9 bits (signed) of ``m0``."""
    IMMEDIATE = 1
    """``m0`` where the level-0 index is 0, else ``m1``."""
    PAIR = 2
    """Low 24 bits (signed) of the element before in the same reduction, where the level-0 index is
    odd; 0 where it is even."""
    WINDOW = 3
    """Three neighbouring TAP words, for an element and what was read two columns before and one
    column before: see below.
    """


class Finish(IntEnum):
    """What VECTOR does with the folded int32 value before it is written."""

    NONE = 0
    """Kept; clipped to ``low..high`` when the destination is ACT."""
    REQUANTIZE = 1
    """``clip(rint(float32(v + bias) * scale) + zero_point, low, high)`` with bias and scale from
    PAR.
    """
    SHIFT = 2
    """``(v + (1 << shift >> 1)) >> shift`` (no wrap inside), then as NONE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Copy ``count_z x count_y x count_x`` words from DRAM into a padded block of a scratchpad.

    The block has ``pad_y_before + count_y + pad_y_after`` rows of ``pad_x_before + count_x +
    pad_x_after`` words; its cell (z, y, x) is at ``sram_address + z * sram_stride_z + y *
    sram_stride_y + x``.  With ``count_x`` or ``count_y`` 0 nothing is read: a pure fill.  No cell
    may be addressed twice.

    With a ``step`` the words of a row are *windows* of it, which may overlap: word x begins ``x *
    step`` bytes after the first, wherever that is, and goes to column ``x * (1 + gap)``.  Bytes
    outside ``row_first .. row_end - 1``, counted from the row's first, are read, and replaced by
    ``pad_value``.  So an image of few channels is read pixel by pixel, several of them in a word.
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
    def stride_x(self) -> int:
        """Words from one cell of a row to the next."""
        return 1 + self.gap if self.step else 1

    @property
    def words(self) -> int:
        """Words read from DRAM."""
        return self.count_x * self.count_y * self.count_z

    @property
    def padded(self) -> bool:
        """Whether any cell is padding."""
        return self.columns * self.rows * self.count_z != self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """For each iteration: ``ACC[o] (+)= WGT[w] @ ACT[a]``, ``o``, ``w``, ``a`` affine in the six
    loop indices.

    A tile whose ``reduction`` levels all have index 0 overwrites ACC unless ``accumulate``; every
    other adds. Weights are int8, to which ``weight_offset`` is added; int32 sums that wrap.
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
    act_read_banks: int = 0
    acc_banks: int = 0
    wait: Units = NO_UNITS
    post: Units = NO_UNITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
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
    rounding: int = 0
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
    act_read_banks: int = 0
    act_write_banks: int = 0
    acc_banks: int = 0
    wait: Units = NO_UNITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
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


def _mask(units: Iterable[Unit]) -> int:
    return sum(1 << unit for unit in units)


def _units(mask: int) -> Units:
    return frozenset(unit for unit in Unit if mask >> unit & 1)


def field_values(instruction: Instruction) -> dict[str, int]:
    """The value of every field of the instruction's format, in the format's order."""
    values: dict[str, int] = {"opcode": instruction.unit + 1}
    for field in fields(instruction):
        value = getattr(instruction, field.name)
        if isinstance(value, frozenset):
            values[field.name] = _mask(value)
        elif isinstance(value, Memory):
            values[field.name] = (
                value.code if instruction.unit is Unit.LOAD else _SIDES.index(value)
            )
        elif isinstance(value, tuple):
            levels = _level_names(instruction.format, field.name)
            if len(value) != len(levels):
                raise EncodingError(
                    f"{instruction.format.name}: {field.name} has {len(value)} levels; "
                    f"required {len(levels)}"
                )
            values.update(zip(levels, value, strict=True))
        else:
            values[field.name] = int(value)
    return {field.name: values[field.name] for field in instruction.format.fields}


_SIDES = (Memory.ACT, Memory.ACC)


def _level_names(layout: Format, stem: str) -> list[str]:
    return [f.name for f in layout.fields if f.name[:-1] == stem and f.name[-1].isdigit()]


def encode(instruction: Instruction) -> bytes:
    """The 64 bytes of ``instruction``, little-endian.

    Raises EncodingError when a value does not fit its field or the word is illegal in every
    configuration.
    """
    word = instruction.format.encode(field_values(instruction))
    problem = _problem(instruction)
    if problem:
        raise EncodingError(f"{instruction.format.name}: {problem}")
    return word.to_bytes(INSTRUCTION_BYTES, "little")


def decode(data: bytes) -> Instruction:
    """The instruction in 64 bytes.

    Raises EncodingError, naming the field, when they are not a legal instruction.
    """
    if len(data) != INSTRUCTION_BYTES:
        raise EncodingError(f"an instruction has {INSTRUCTION_BYTES} bytes; found {len(data)}")
    word = int.from_bytes(data, "little")
    opcode = word & 15
    if not 1 <= opcode <= len(CLASSES):
        raise EncodingError(f"opcode {opcode}; required 1 to {len(CLASSES)}")
    cls = CLASSES[opcode - 1]
    values = cls.format.decode(word)
    arguments: dict[str, object] = {}
    for field in fields(cls):
        name = field.name
        if name not in values:
            arguments[name] = tuple(values[level] for level in _level_names(cls.format, name))
        elif name in ("wait", "post"):
            arguments[name] = _units(values[name])
        else:
            arguments[name] = values[name]
    _decode_enums(cls, arguments)
    instruction: Instruction = cls(**arguments)  # type: ignore[arg-type]
    problem = _problem(instruction)
    if problem:
        raise EncodingError(f"{cls.format.name}: {problem}")
    return instruction


def _decode_enums(cls: type[Instruction], arguments: dict[str, object]) -> None:
    choices: dict[str, tuple[object, ...]] = {}
    if cls is Load:
        choices = {"memory": tuple(Memory)}
    elif cls is Gemm:
        choices = {"accumulate": (False, True)}
    elif cls is Vector:
        choices = {
            "source": _SIDES,
            "destination": _SIDES,
            "fold": tuple(Fold),
            "multiplier": tuple(Multiplier),
            "finish": tuple(Finish),
            "lookup": (False, True),
        }
    for name, values in choices.items():
        code = arguments[name]
        assert isinstance(code, int)
        if code >= len(values):
            raise EncodingError(
                f"{cls.format.name}: {name} = {code}; required 0 to {len(values) - 1}"
            )
        arguments[name] = values[code]


def _problem(instruction: Instruction) -> str | None:
    """What makes the instruction illegal in every configuration."""
    if instruction.unit in instruction.wait | instruction.post:
        return "a unit can neither wait for nor post to itself"
    match instruction:
        case Load():
            if not instruction.count_z * instruction.columns * instruction.rows:
                return "the block has no cells"
            if instruction.step and instruction.memory is not Memory.ACT:
                return f"step = {instruction.step} needs memory act"
            if instruction.step and instruction.columns != instruction.count_x:
                return f"step = {instruction.step} needs pad_x_before and pad_x_after 0"
        case Store():
            if not instruction.count_z * instruction.count_y * instruction.count_x:
                return "the block has no words"
        case Gemm():
            if 0 in instruction.extent:
                return f"extent = {instruction.extent}; required 1 and up"
        case Vector():
            if 0 in instruction.extent:
                return f"extent = {instruction.extent}; required 1 and up"
            if instruction.rounding:
                return f"rounding = {instruction.rounding}; only 0 (half to even) is defined"
            if not 1 <= instruction.reduction_levels <= VECTOR_LEVELS:
                return (
                    f"reduction_levels = {instruction.reduction_levels}; "
                    f"required 1 to {VECTOR_LEVELS}"
                )
            if instruction.lookup and instruction.destination is not Memory.ACT:
                return "lookup needs destination act"
            if instruction.tab_address % 256:
                return f"tab_address = {instruction.tab_address}; required a multiple of 256"
            if instruction.low > instruction.high:
                return f"low = {instruction.low} is above high = {instruction.high}"
    return None


def legality_problem(instruction: Instruction, config: HardwareConfig) -> str | None:
    """What makes the hardware of ``config`` refuse the instruction; None when it is legal.

    Beyond what ``decode`` refuses, DRAM addresses and strides must be multiples of the word size;
    with a step, strides of the bus only, and a step of at least a beat.
    """
    problem = _problem(instruction)
    if problem is None and isinstance(instruction, Load | Store):
        if isinstance(instruction, Load) and instruction.step:
            return _window_problem(instruction, config)
        memory = instruction.memory if isinstance(instruction, Load) else Memory.ACT
        size = config.word_bytes(memory)
        for name in ("dram_address", "dram_stride_y", "dram_stride_z"):
            value = getattr(instruction, name)
            if value % size:
                return (
                    f"{name} = {value}; required a multiple of {size}, "
                    f"the bytes of a {memory.value} word"
                )
    return problem


def _window_problem(load: Load, config: HardwareConfig) -> str | None:
    """What makes the hardware refuse a LOAD with a step."""
    if load.step < config.bus_bytes:
        return f"step = {load.step}; required 0, or {config.bus_bytes} and up, the bytes of a beat"
    for name in ("dram_stride_y", "dram_stride_z"):
        value = getattr(load, name)
        if value % config.bus_bytes:
            return f"{name} = {value}; required a multiple of {config.bus_bytes} with a step"
    return None
