"""Instructions to the 64 bytes that the hardware fetches, and back."""

from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache

from .config import INSTRUCTION_BYTES
from .errors import EncodingError
from .formats import Format
from .instructions import (
    CLASSES,
    Finish,
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Rounding,
    Row,
    Units,
    Vector,
)
from .legality import word_problem
from .memories import Memory, Unit

__all__ = ["SIDES", "decode", "encode", "field_values"]

SIDES = (Memory.ACT, Memory.ACC)
"""The memories that VECTOR's ``source`` and ``destination`` number."""

KEPT = 1 << 16
"""Encoded instructions that are remembered: programs of one network are made again and again."""


def _mask(units: Iterable[Unit]) -> int:
    return sum(1 << unit for unit in units)


def _units(mask: int) -> Units:
    return frozenset(unit for unit in Unit if mask >> unit & 1)


def field_values(instruction: Instruction) -> dict[str, int]:
    """The value of every field of the instruction's format, in the format's order."""
    values: dict[str, int] = {"opcode": instruction.unit + 1}
    for name, levels in PARTS[type(instruction)]:
        value = getattr(instruction, name)
        if isinstance(value, frozenset):
            values[name] = _mask(value)
        elif isinstance(value, Memory):
            values[name] = value.code if instruction.unit is Unit.LOAD else SIDES.index(value)
        elif isinstance(value, tuple):
            if len(value) != len(levels):
                raise EncodingError(
                    f"{instruction.format.name}: {name} has {len(value)} levels; "
                    f"required {len(levels)}"
                )
            values.update(zip(levels, value, strict=True))
        else:
            values[name] = int(value)
    return {field.name: values[field.name] for field in instruction.format.fields}


def _level_names(layout: Format, stem: str) -> list[str]:
    return [f.name for f in layout.fields if f.name[:-1] == stem and f.name[-1].isdigit()]


PARTS: dict[type[object], list[tuple[str, list[str]]]] = {
    cls: [(field.name, _level_names(cls.format, field.name)) for field in fields(cls)]
    for cls in CLASSES
}
"""Each field of an instruction, and the fields of the format that hold its levels."""


@lru_cache(maxsize=KEPT)
def encode(instruction: Instruction) -> bytes:
    """The 64 bytes of ``instruction``, little-endian.

    Raises EncodingError when a value does not fit its field or the word is illegal in every
    configuration.
    """
    word = instruction.format.encode(field_values(instruction))
    problem = word_problem(instruction)
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
    for name, levels in PARTS[cls]:
        if name not in values:
            arguments[name] = tuple(values[level] for level in levels)
        elif name in ("wait", "post"):
            arguments[name] = _units(values[name])
        else:
            arguments[name] = values[name]
    _decode_enums(cls, arguments)
    instruction: Instruction = cls(**arguments)  # type: ignore[arg-type]
    problem = word_problem(instruction)
    if problem:
        raise EncodingError(f"{cls.format.name}: {problem}")
    return instruction


def _decode_enums(cls: type[Instruction], arguments: dict[str, object]) -> None:
    choices: dict[str, tuple[object, ...]] = {}
    if cls is Load:
        choices = {"memory": tuple(Memory), "nibbles": (False, True)}
    elif cls is Gemm:
        choices = {"accumulate": (False, True)}
    elif cls is Vector:
        choices = {
            "source": SIDES,
            "destination": SIDES,
            "fold": tuple(Fold),
            "multiplier": tuple(Multiplier),
            "finish": tuple(Finish),
            "lookup": (False, True),
            "rounding": tuple(Rounding),
            "row": tuple(Row),
        }
    for name, values in choices.items():
        code = arguments[name]
        assert isinstance(code, int)
        if code >= len(values):
            raise EncodingError(
                f"{cls.format.name}: {name} = {code}; required 0 to {len(values) - 1}"
            )
        arguments[name] = values[code]
