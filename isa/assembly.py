"""Assembly text: one instruction a line.

    .config tiny
    .set weights 0x1000                 # a name for a number
    load   memory=wgt sram_address=0 dram_address=weights+64 count_x=9 post=gemm
    gemm   act_address=0 wgt_address=0 acc_address=0
           extent=3,3,8,8 act_stride=1,10,1,10 wgt_stride=1,3 acc_stride=0,0,1,8
           reduction=3 wait=load

An instruction is the name of its unit and ``field=value`` pairs; a line that begins with such a
pair goes on with the instruction before.  A value is

- a number: decimal, hexadecimal (``0x``) or a name, or several joined by ``+`` and ``-``;
- for a loop nest, numbers joined by commas, level 0 first; levels left out at the end have extent 1
  and stride 0 (destination and PAR strides begin with level 1);
- a memory (``act``, ``wgt``, ``acc``, ``par``, ``tap``, ``tab``);
- for ``wait`` and ``post``, units joined by commas;
- for ``fold``, ``multiplier``, ``finish`` and ``rounding``, a name: ``max``, ``immediate``,
  ``requantize``, ``fixed``, ...; a configuration's own finish by its name, or ``custom``.

Fields left out have their default: counts, extents and ``reduction_levels`` 1, ``low`` -128,
``high`` 127, ``fold`` and ``multiplier`` the first of their names, all others 0 or none.  What says
where an instruction works has none: in LOAD ``memory`` and ``sram_address``, in STORE both
addresses, in GEMM addresses, extents and strides of all three memories, in VECTOR source,
destination, their addresses and strides, and extents.  Bank masks left out are exactly those that
the addresses need.
``.set NAME NUMBER`` names a number from there on.  ``.config NAME`` refuses any other
configuration.  ``#`` begins a comment.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import TypeVar

from .config import HardwareConfig
from .encoding import encode
from .errors import AssemblyError, EncodingError
from .finishes import OwnFinish
from .footprint import with_bank_masks
from .frozen import frozen
from .instruction_formats import GEMM_LEVELS, VECTOR_LEVELS
from .instructions import (
    Finish,
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Rounding,
    Row,
    Store,
    Vector,
)
from .memories import Memory, Unit

__all__ = ["assemble", "disassemble"]

Choice = TypeVar("Choice")

CLASSES: dict[str, type[Instruction]] = {
    cls.__name__.lower(): cls for cls in (Load, Gemm, Vector, Store)
}
ENUMS = {
    "fold": Fold,
    "multiplier": Multiplier,
    "finish": Finish,
    "rounding": Rounding,
    "row": Row,
}
MEMORIES = ("memory", "source", "destination")
UNITS = ("wait", "post")
FLAGS = ("accumulate", "lookup")
MASKS = ("act_read_banks", "act_write_banks", "acc_banks")
LEVELS = {
    **{("gemm", f"{stem}_stride"): GEMM_LEVELS for stem in ("act", "wgt", "acc")},
    **{("vector", f"{stem}_stride"): VECTOR_LEVELS for stem in ("source", "tap")},
    **{("vector", f"{stem}_stride"): VECTOR_LEVELS - 1 for stem in ("destination", "par")},
    ("gemm", "extent"): GEMM_LEVELS,
    ("vector", "extent"): VECTOR_LEVELS,
}


def disassemble(program: Sequence[Instruction], config: HardwareConfig | None = None) -> str:
    """One line for each instruction, fields with their default left out.

    config: whose own finish is called by its name.
    ``assemble`` gives the same program back, for that configuration; without one for any.
    """
    own = config.own_finish if config else None
    return "".join(f"{_line(instruction, own)}\n" for instruction in program)


def _line(instruction: Instruction, own: OwnFinish | None) -> str:
    words = [f"{instruction.format.name:<6}"]
    for field in fields(instruction):
        value = getattr(instruction, field.name)
        if value != _default(field) or field.name in MASKS:
            text = own.name if own and value is Finish.CUSTOM else _text(field.name, value)
            words.append(f"{field.name}={text}")
    return " ".join(words)


def _default(field: "Field[object]") -> object:
    return None if field.default is MISSING else field.default


def _rest(name: str) -> int:
    """Value of the levels that a list leaves out."""
    return 1 if name == "extent" else 0


def _text(name: str, value: object) -> str:
    match value:
        case Memory():
            return value.value
        case frozenset():
            return ",".join(unit.name.lower() for unit in sorted(value))
        case tuple():
            used = [level for level, number in enumerate(value) if number != _rest(name)]
            return ",".join(map(str, value[: max(used, default=0) + 1]))
        case Fold() | Multiplier() | Finish() | Rounding() | Row():
            return value.name.lower()
        case bool():
            return str(int(value))
        case _:
            return f"{value:#x}" if name in (*MASKS, "dram_address") else str(value)


@frozen
class _Word:
    """A word between blanks; lines and columns count from 1."""

    text: str
    line: int
    column: int

    def error(self, message: str) -> AssemblyError:
        """An error at this place."""
        return AssemblyError(f"line {self.line}, column {self.column}: {message}")


def _statements(text: str) -> Iterator[list[_Word]]:
    """The words of each instruction and directive."""
    statement: list[_Word] = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.partition("#")[0]
        words = [_Word(m.group(), number, m.start() + 1) for m in re.finditer(r"\S+", code)]
        if words and statement and "=" in words[0].text and statement[0].text in CLASSES:
            statement += words
        elif words:
            if statement:
                yield statement
            statement = words
    if statement:
        yield statement


def assemble(text: str, config: HardwareConfig) -> tuple[Instruction, ...]:
    """The program that ``text`` describes.

    config: whose bank masks are filled in.
    Raises AssemblyError naming line and column, and what is wrong there.
    """
    program: list[Instruction] = []
    names: dict[str, int] = {}
    for statement in _statements(text):
        if statement[0].text.startswith("."):
            _directive(statement, names, config)
        else:
            program.append(_instruction(statement, names, config))
    return tuple(program)


def _directive(words: list[_Word], names: dict[str, int], config: HardwareConfig) -> None:
    head, *arguments = words
    match head.text, arguments:
        case ".config", [name]:
            if name.text != config.name:
                raise name.error(f"written for {name.text}; assembled for {config.name}")
        case ".set", [name, value]:
            if not name.text.isidentifier():
                raise name.error(f"{name.text!r} is not a name; required letters, digits and _")
            if name.text in names:
                raise name.error(f"{name.text} is set twice")
            try:
                names[name.text] = _number(value.text, names)
            except ValueError as error:
                raise value.error(str(error)) from None
        case _:
            raise head.error(
                f"found {' '.join(word.text for word in words)!r}; required .config NAME, "
                ".set NAME NUMBER or an instruction"
            )


def _instruction(words: list[_Word], names: dict[str, int], config: HardwareConfig) -> Instruction:
    head = words[0]
    cls = CLASSES.get(head.text)
    if cls is None:
        raise head.error(f"no instruction is called {head.text!r}; there are: {', '.join(CLASSES)}")
    known = {field.name: field for field in fields(cls)}
    values: dict[str, object] = {}
    places: dict[str, _Word] = {}
    for word in words[1:]:
        name, separator, value = word.text.partition("=")
        if not separator or name not in known:
            raise word.error(
                f"{word.text!r} in {head.text}; required field=value with a field of: "
                f"{', '.join(known)}"
            )
        if name in values:
            raise word.error(f"field {name} is given twice")
        places[name] = word
        try:
            own = config.own_finish if name == "finish" else None
            is_own = own is not None and value == own.name
            values[name] = Finish.CUSTOM if is_own else _value(head.text, name, value, names)
        except ValueError as error:
            raise word.error(f"{word.text}: {error}") from None
    missing = [n for n, f in known.items() if f.default is MISSING and n not in values]
    if missing:
        raise head.error(f"{head.text} needs {', '.join(missing)}")
    instruction: Instruction = cls(**values)  # type: ignore[arg-type]
    try:
        encode(instruction)
    except EncodingError as error:
        raise _culprit(str(error), places, head).error(str(error)) from None
    masks = {name for name in MASKS if name in known} - set(values)
    if masks:
        filled = with_bank_masks(instruction, config)
        values |= {name: getattr(filled, name) for name in masks}
        instruction = cls(**values)  # type: ignore[arg-type]
    return instruction


def _culprit(message: str, places: dict[str, _Word], head: _Word) -> _Word:
    """The word that set the field that an instruction's message is about."""
    for name, word in places.items():
        if re.search(rf"\b{name}\d? = ", message):
            return word
    return head


def _value(unit: str, name: str, text: str, names: dict[str, int]) -> object:
    """Raises ValueError saying what is required."""
    if name in MEMORIES:
        return _choice(text, {memory.value: memory for memory in Memory})
    if name in UNITS:
        units = {unit.name.lower(): unit for unit in Unit}
        return frozenset(_choice(part, units) for part in text.split(",") if part)
    if name in ENUMS:
        return _choice(text, {member.name.lower(): member for member in ENUMS[name]})
    if (unit, name) in LEVELS:
        count = LEVELS[unit, name]
        listed = [_number(part, names) for part in text.split(",")]
        if len(listed) > count:
            raise ValueError(f"{len(listed)} levels; required at most {count}")
        return (*listed, *[_rest(name)] * (count - len(listed)))
    value = _number(text, names)
    if name not in FLAGS:
        return value
    if value not in (0, 1):
        raise ValueError("required 0 or 1")
    return value == 1


def _choice(text: str, choices: Mapping[str, Choice]) -> Choice:
    if text not in choices:
        raise ValueError(f"{text!r} is none of {', '.join(choices)}")
    return choices[text]


def _number(text: str, names: dict[str, int]) -> int:
    """The sum of the terms of ``text``."""
    terms = re.findall(r"([+-]?)([^+-]+)", text)
    if not terms or "".join(sign + term for sign, term in terms) != text:
        raise ValueError(f"{text!r} is not a number")
    return sum((-1 if sign == "-" else 1) * _term(term, names) for sign, term in terms)


def _term(term: str, names: dict[str, int]) -> int:
    if term in names:
        return names[term]
    try:
        return int(term, 0)
    except ValueError:
        known = f"; names set so far: {', '.join(names)}" if names else ""
        raise ValueError(f"{term!r} is neither a number nor a name{known}") from None
