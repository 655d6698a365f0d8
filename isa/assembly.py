"""Assembly text: one instruction a line.

    # a comment
    load   memory=wgt sram_address=0 dram_address=0x1000 count_x=9 post=gemm
    gemm   act_address=0 wgt_address=0 acc_address=0 extent=3,3,8,8,1,1 act_stride=1,10,1,10,0,0 ...
    wait=load

A line is the unit's name and ``field=value`` pairs.  Values are integers (decimal or 0x), lists
joined by commas, or names: memories (act, wgt, ...), units (joined by commas), fold, multiplier and
finish (by name).  Fields left out have their default; bank masks left out are those the addresses
need.  Lists may be shorter than the nest: the rest is 1 for extents and 0 for strides.
"""

from collections.abc import Sequence
from dataclasses import MISSING, Field, fields

from .config import HardwareConfig
from .errors import AssemblyError, EncodingError
from .footprint import with_bank_masks
from .instructions import (
    Finish,
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Store,
    Vector,
    encode,
)
from .memories import Memory, Unit

__all__ = ["assemble", "disassemble"]

CLASSES: dict[str, type[Instruction]] = {
    cls.__name__.lower(): cls for cls in (Load, Gemm, Vector, Store)
}
ENUMS = {"fold": Fold, "multiplier": Multiplier, "finish": Finish}
MEMORIES = ("memory", "source", "destination")
UNITS = ("wait", "post")
FLAGS = ("accumulate", "lookup")
MASKS = ("act_read_banks", "act_write_banks", "acc_banks")
LEVELS = {
    ("gemm", "extent"): 6,
    ("gemm", "act_stride"): 6,
    ("gemm", "wgt_stride"): 6,
    ("gemm", "acc_stride"): 6,
    ("vector", "extent"): 5,
    ("vector", "source_stride"): 5,
    ("vector", "tap_stride"): 5,
    ("vector", "destination_stride"): 4,
    ("vector", "par_stride"): 4,
}


def disassemble(program: Sequence[Instruction]) -> str:
    """One line for each instruction, fields with their default left out.

    ``assemble`` gives the same program back.
    """
    return "".join(f"{_line(instruction)}\n" for instruction in program)


def _line(instruction: Instruction) -> str:
    words = [f"{instruction.format.name:<6}"]
    for field in fields(instruction):
        value = getattr(instruction, field.name)
        default = _default(field)
        if value != default or field.name in MASKS:
            words.append(f"{field.name}={_text(field.name, value)}")
    return " ".join(words)


def _default(field: "Field[object]") -> object:
    return None if field.default is MISSING else field.default


def _text(name: str, value: object) -> str:
    match value:
        case Memory():
            return value.value
        case frozenset():
            return ",".join(unit.name.lower() for unit in sorted(value))
        case tuple():
            return ",".join(map(str, value))
        case Fold() | Multiplier() | Finish():
            return value.name.lower()
        case bool():
            return str(int(value))
        case _:
            return f"{value:#x}" if name in (*MASKS, "dram_address") else str(value)


def assemble(text: str, config: HardwareConfig) -> tuple[Instruction, ...]:
    """The program that ``text`` describes.

    config: whose bank masks are filled in.
    Raises AssemblyError naming the line and what is wrong with it.
    """
    program = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            program.append(_instruction(words, number, config))
    return tuple(program)


def _instruction(words: list[str], number: int, config: HardwareConfig) -> Instruction:
    cls = CLASSES.get(words[0])
    if cls is None:
        raise AssemblyError(
            f"line {number}: no instruction is called {words[0]!r}; there are: {', '.join(CLASSES)}"
        )
    known = {field.name: field for field in fields(cls)}
    values: dict[str, object] = {}
    for word in words[1:]:
        name, separator, value = word.partition("=")
        if not separator or name not in known:
            raise AssemblyError(
                f"line {number}: {word!r} in {words[0]}; required field=value with a field of: "
                f"{', '.join(known)}"
            )
        if name in values:
            raise AssemblyError(f"line {number}: field {name} is given twice")
        values[name] = _value(words[0], name, value, number)
    missing = [n for n, f in known.items() if f.default is MISSING and n not in values]
    if missing:
        raise AssemblyError(f"line {number}: {words[0]} needs {', '.join(missing)}")
    instruction: Instruction = cls(**values)  # type: ignore[arg-type]
    try:
        encode(instruction)
    except EncodingError as error:
        raise AssemblyError(f"line {number}: {error}") from None
    masks = {name for name in MASKS if name in known} - set(values)
    if masks:
        filled = with_bank_masks(instruction, config)
        values |= {name: getattr(filled, name) for name in masks}
        instruction = cls(**values)  # type: ignore[arg-type]
    return instruction


def _value(unit: str, name: str, text: str, number: int) -> object:
    try:
        if name in MEMORIES:
            return Memory(text)
        if name in UNITS:
            return frozenset(Unit[part.upper()] for part in text.split(",") if part)
        if name in ENUMS:
            return ENUMS[name][text.upper()]
        if (unit, name) in LEVELS:
            count = LEVELS[unit, name]
            listed = [int(part, 0) for part in text.split(",")]
            if len(listed) > count:
                raise ValueError(f"{len(listed)} levels; at most {count}")
            rest = 1 if name == "extent" else 0
            return (*listed, *[rest] * (count - len(listed)))
        value = int(text, 0)
        if name in FLAGS:
            return (False, True)[value] if value in (0, 1) else _bad(value)
        return value
    except (ValueError, KeyError) as error:
        raise AssemblyError(
            f"line {number}: {name}={text}: not a value of this field ({error})"
        ) from None


def _bad(value: int) -> bool:
    raise ValueError(f"{value}; required 0 or 1")
