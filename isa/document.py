"""Writes the manual, docs/isa.md, from the instruction set itself."""

import ast
from collections.abc import Sequence
from dataclasses import fields
from enum import IntEnum
from inspect import getdoc, getsource
from itertools import pairwise
from pathlib import Path
from textwrap import dedent, indent

from . import assembly
from .config import INSTRUCTION_BYTES, DramTiming, HardwareConfig
from .configs import CONFIGS
from .declared import declarations
from .finishes import OwnFinish
from .formats import Format
from .instructions import CLASSES, Finish, Fold, Instruction, Multiplier, Rounding, Row
from .manual_text import (
    BUS,
    FIXED_FORMULA,
    FORMULA,
    LOOPS,
    MEMORY_NOTES,
    OVERVIEW,
    REGISTERS_NOTE,
    RULES,
    RUNNING,
    STOPPING,
    SYNCHRONISATION,
    UNITS_NOTE,
)
from .memories import Memory, Unit
from .registers import REGISTERS, Control, ErrorCode, Status
from .requantize import requantize, requantize_fixed
from .sdram import SdramTiming

__all__ = ["main", "manual"]


def _table(headings: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _memories() -> str:
    rows = [(memory.name, memory.code, *(MEMORY_NOTES[memory])) for memory in Memory]
    headings = ("memory", "number", "word", "bytes", "written by", "read by")
    return "## Memories\n\n" + _table(headings, rows)


def _format(layout: Format) -> str:
    rows: list[tuple[object, ...]] = []
    for field in layout.fields:
        low = layout.offset(field.name)
        bits = f"{low + field.width - 1}:{low}" if field.width > 1 else str(low)
        kind = "signed" if field.signed else "unsigned"
        rows.append((f"`{field.name}`", bits, kind, field.doc))
    rows.append(("reserved", f"{layout.width - 1}:{layout.used_bits}", "", "0"))
    return _table(("field", "bits", "", "meaning"), rows)


def _enumeration(enum: type[IntEnum], heading: str = "value") -> str:
    """Values and the strings that follow them in the source."""
    (definition,) = ast.parse(dedent(getsource(enum))).body
    assert isinstance(definition, ast.ClassDef)
    docs: dict[str, str] = {}
    for assignment, following in pairwise(definition.body):
        match assignment, following:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = " ".join(text.split())
    rows: list[tuple[object, ...]] = [
        (member.value, f"`{member.name}`", docs.get(member.name, "")) for member in enum
    ]
    return _table((heading, "name", "meaning"), rows)


def _instruction(cls: type[Instruction]) -> str:
    name = cls.format.name
    text = f"### {name.upper()} (opcode {cls.unit + 1})\n\n{getdoc(cls)}\n{LOOPS[name]}\n"
    return text + _format(cls.format)


def _configurations(configs: Sequence[HardwareConfig]) -> str:
    rows: list[tuple[object, ...]] = [
        (f"`{field.name}`", *(getattr(config, field.name) for config in configs))
        for field in fields(HardwareConfig)
        if field.name not in ("name", "finish", "dram")
    ]
    rows.append(("fingerprint", *(f"`{config.fingerprint:#010x}`" for config in configs)))
    timings: list[tuple[object, ...]] = [
        (f"`{field.name}`", *(_timing(config.dram, field.name) for config in configs))
        for field in fields(DramTiming)
    ]
    names, first = [config.name for config in configs], configs[0]
    parts = (
        "## Configurations\n",
        f"{getdoc(HardwareConfig)}\n",
        _fields(HardwareConfig),
        _table(("", *names), rows),
        "The fingerprint is the first four bytes, little-endian, of the SHA-256 of this text (here "
        f"that of {first.name}): every field but the name, how units are built (`multiplier_bits` "
        "to `deep_pipelines`, `load_ahead`), the clock, the memory's timing, `fixed_rounding`, "
        "`row_parameters`, `nibble_weights` and `short_constants` where they are False, and "
        "`finish` where it is empty.\n",
        f"    {first.identity}\n",
        f"The memory that simulations assume where none is given.  {getdoc(DramTiming)}\n",
        _fields(DramTiming),
        _table(("", *names), timings),
    )
    return "\n".join(parts)


def _fields(cls: type) -> str:
    """The declaration of each field of a dataclass."""
    rows: list[tuple[object, ...]] = [
        (f"`{field.name}`", declared.text, declared.range) for field, declared in declarations(cls)
    ]
    return _table(("field", "meaning", "range"), rows)


def _timing(timing: DramTiming, name: str) -> object:
    """A field of a memory's timing; of an SDRAM the chip's name."""
    value = getattr(timing, name)
    return value.chip.name if isinstance(value, SdramTiming) else "none" if value is None else value


def _assembly() -> str:
    """The assembler's own description of its language."""
    title, _, rest = (getdoc(assembly) or "").partition("\n")
    return f"## Assembly\n\n{title}\n{rest}\n"


def _finishes(own: OwnFinish | None) -> str:
    """The finishes, and the meaning of CUSTOM where it has one."""
    text = "### Finishes\n\n" + _enumeration(Finish)
    if own is None:
        return text
    source = indent(dedent(getsource(own.meaning)), "    ")
    return f"{text}\nCUSTOM is `{own.name}`, version {own.version}: {own.text}\n\n{source}"


def manual(config: HardwareConfig | None = None) -> str:
    """The whole manual: that of ``config``, or of all named configurations."""
    registers = [(f"`0x{r.offset:03X}`", r.name, r.access.value, r.doc) for r in REGISTERS]
    units = [(unit.value, unit.name) for unit in Unit]
    parts = [
        OVERVIEW,
        _memories(),
        "## Units\n\n" + _table(("number", "unit"), units) + UNITS_NOTE,
        SYNCHRONISATION,
        RULES,
        f"## Instructions\n\nEach has {INSTRUCTION_BYTES} bytes. "
        "Level 0 of a loop nest is the innermost.\n",
        *(_instruction(cls) for cls in CLASSES),
        "### Folds\n\n" + _enumeration(Fold),
        "### Multipliers\n\n" + _enumeration(Multiplier),
        _finishes(config.own_finish if config else None),
        "### Roundings\n\n" + _enumeration(Rounding),
        "### Parameters of rows\n\n" + _enumeration(Row),
        FORMULA + "\n" + indent(dedent(getsource(requantize)), "    "),
        FIXED_FORMULA + "\n" + indent(dedent(getsource(requantize_fixed)), "    "),
        RUNNING,
        BUS,
        "## Host registers\n" + REGISTERS_NOTE,
        _table(("offset", "name", "access", "meaning"), registers),
        "### CONTROL bits\n\n" + _enumeration(Control, "bit"),
        "### STATUS bits\n\n" + _enumeration(Status, "bit"),
        STOPPING + "\n" + _enumeration(ErrorCode),
        _assembly(),
        _configurations((config,) if config else tuple(CONFIGS.values())),
    ]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def main() -> None:
    """Write the manual into the repository this file is in."""
    path = Path(__file__).resolve().parent.parent / "docs" / "isa.md"
    path.write_text(manual())


if __name__ == "__main__":
    main()
