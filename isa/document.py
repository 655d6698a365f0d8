"""Writes the manual, docs/isa.md, from the instruction set itself."""

import ast
from collections.abc import Sequence
from enum import IntEnum
from inspect import getdoc, getsource
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

from .config import INSTRUCTION_BYTES
from .configs import CONFIGS
from .formats import Format
from .instructions import CLASSES, Finish, Fold, Instruction, Multiplier
from .memories import Memory, Unit
from .registers import REGISTERS, Control, ErrorCode, Status
from .semantics import requantize

__all__ = ["main", "manual"]

OVERVIEW = """
# Instruction set manual

Generated from `isa/` by `make docs`; edit there. Cycles are specified in [timing.md](timing.md).

## Machine

Five units: FETCH reads the program, in order, and puts each instruction into the queue of its unit:
LOAD, GEMM, VECTOR or STORE. These four work at the same time, each on its own instructions in
order. `block` (B below) is the number of lanes.

All numbers are two's complement, little-endian; bit 0 is the least significant. A word in DRAM has
the same bytes as in its scratchpad, at ascending addresses; lane 0 comes first. DRAM addresses are
32-bit byte addresses, computed modulo 2^32. **Scratchpad addresses are word addresses and are taken
modulo the depth of their memory**, after all indices are added; depths are powers of two.
"""

MEMORY_NOTES = {
    Memory.ACT: ("B int8", "LOAD, VECTOR", "GEMM, VECTOR, STORE"),
    Memory.WGT: ("B x B int8, `[output lane][input lane]`", "LOAD", "GEMM"),
    Memory.ACC: ("B int32", "LOAD, GEMM, VECTOR", "GEMM, VECTOR"),
    Memory.PAR: ("B int32 biases, then B float32 scales", "LOAD", "VECTOR"),
    Memory.TAP: ("B int8", "LOAD", "VECTOR"),
    Memory.TAB: ("B int8; a table is 256 consecutive words", "LOAD", "VECTOR"),
}

SYNCHRONISATION = """
## Tokens

Every ordered pair of the four units has a counter. An instruction starts when, for each unit in its
`wait` field, the counter from that unit to its own is at least 1; it takes one from each. When it
ends it adds one to the counter from its own unit to each unit in its `post` field. An instruction
that posts does not start while that could make a counter exceed the configuration's `token_max`,
counting what earlier instructions in flight will post: a poster waits, a counter never saturates.
All counters are 0 when a program starts. A unit can neither wait for nor post to itself.

LOAD ends when its last word is written, GEMM and VECTOR when their last result is written, STORE
when memory has answered its last burst. So a token from STORE to LOAD orders DRAM.

## Banks

ACT and ACC are split into banks of equal size, bank 0 first. An instruction states the banks it
uses: `act_read_banks`, `act_write_banks`, `acc_banks` (reads and writes), bit i for bank i. It
starts when no other unit holds one of them in the same role, and holds all to its end. A VECTOR
instruction also waits while an earlier one that writes a bank it reads is in flight. Bank locks
keep the machine's timing simple; **they are no substitute for tokens**: which of two units gets a
bank first depends on memory's timing.

## Rules for programs

The hardware refuses an instruction that is not legal (error ILLEGAL_INSTRUCTION):
- the opcode is not 1 to 4, or a reserved bit is 1;
- `wait` or `post` names the instruction's own unit;
- LOAD: `memory` above 5; `count_z`, the rows or the columns of the padded block are 0;
- STORE: a count is 0;
- LOAD and STORE: `dram_address`, `dram_stride_y` or `dram_stride_z` is not a multiple of the word's
size;
- GEMM and VECTOR: an extent is 0;
- VECTOR: `fold` above 4, `multiplier` or `finish` above 2, `rounding` not 0, `reduction_levels` not
1 to 5, `lookup` with destination ACC,
  `tab_address` not a multiple of 256, `low` above `high`.

What follows has no defined result, and `dovetail assemble` refuses it where it can be seen in one
instruction:
- two instructions of different units touch one word, at least one writes it, and no chain of tokens
orders them;
- an instruction touches a bank that its masks do not name;
- a LOAD addresses one scratchpad word twice;
- a VECTOR reads a word after the same instruction wrote it;
- a scale that is negative, infinite or not a number;
- a program that writes over itself.

Instructions of one unit need no tokens between them: they take effect in order.
"""

FORMULA = """
## Requantisation

`finish = 1` computes, lane by lane, with `bias` and `scale` from PAR:

    total  = (v + bias) modulo 2^32, as int32
    a      = total rounded to a float32 (24 significant bits, half to even)
    p      = a * scale rounded to a float32, half to even
    result = clip(p rounded to an integer, half to even, + zero_point, low, high)

In integers: write |total| = m * 2^e with m of 24 bits after rounding; multiply m by the 24-bit
significand of the scale; round the product to 24 bits; shift it right with rounding. A product
below 2^-126 rounds to 0; one above every int8 limit is clipped.

In NumPy:
"""

STOPPING = """
## Errors

The first error fixes ERROR_CODE and ERROR_INDEX and stops the machine: no instruction starts after
it, no burst is announced after it, and write beats first offered after it carry no byte. When the
bursts already announced are answered BUSY falls and ERROR rises. Scratchpads then hold anything.
"""


def _table(headings: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _memories() -> str:
    rows = [(memory.name, memory.code, *(MEMORY_NOTES[memory])) for memory in Memory]
    return "## Memories\n\n" + _table(("memory", "number", "word", "written by", "read by"), rows)


def _format(layout: Format) -> str:
    rows: list[tuple[object, ...]] = []
    for field in layout.fields:
        low = layout.offset(field.name)
        bits = f"{low + field.width - 1}:{low}" if field.width > 1 else str(low)
        kind = "signed" if field.signed else "unsigned"
        rows.append((f"`{field.name}`", bits, kind, field.doc))
    rows.append(("reserved", f"{layout.width - 1}:{layout.used_bits}", "", "0"))
    return _table(("field", "bits", "", "meaning"), rows)


def _enumeration(enum: type[IntEnum]) -> str:
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
    return _table(("value", "name", "meaning"), rows)


LOOPS = {
    "load": """
    rows = pad_y_before + count_y + pad_y_after;  columns = pad_x_before + count_x + pad_x_after
    for z in count_z: for row in rows: for column in columns:
        cell = sram_address + z * sram_stride_z + row * sram_stride_y + column
        y, x = row - pad_y_before, column - pad_x_before
        if 0 <= y < count_y and 0 <= x < count_x:
            memory[cell] = DRAM word at
                dram_address + z * dram_stride_z + y * dram_stride_y + x * word size
        else:
            every byte of memory[cell] = pad_value
""",
    "gemm": """
    for i5 in extent5: ... for i0 in extent0:
        a = act_address + sum(i * act_stride)
        w = wgt_address + sum(i * wgt_stride)
        o = acc_address + sum(i * acc_stride)
        first = not accumulate and every level of `reduction` has index 0
        for lane l:
            old = 0 if first else ACC[o][l]
            ACC[o][l] = old + (sum over k of WGT[w][l][k] * ACT[a][k])      modulo 2^32
""",
    "vector": """
    for the indices i of levels reduction_levels to 4 (outermost first), for each lane l:
        v = fold, over the indices of levels reduction_levels - 1 to 0 (level 0 fastest), of
            source[source_address + sum(i * source_stride)][l]              modulo 2^32
            (MAC: of the element's low 16 bits, signed, times the multiplier;
             TAP is TAP[tap_address + sum(i * tap_stride)][l])
        r = finish(v), with PAR[par_address + sum(i * par_stride)][l]
        if the destination is ACT: r = clip(r, low, high)
        if lookup: r = TAB[tab_address + 128 + r][l]
        destination[destination_address + sum(i * destination_stride)][l] = r

    The sums for PAR and the destination are over the levels that are not folded.
""",
    "store": """
    for z in count_z: for y in count_y: for x in count_x:
        DRAM word at dram_address + z * dram_stride_z + y * dram_stride_y + x * word size
            = ACT[sram_address + z * sram_stride_z + y * sram_stride_y + x]
""",
}


def _instruction(cls: type[Instruction]) -> str:
    name = cls.format.name
    text = f"### {name.upper()} (opcode {cls.unit + 1})\n\n{getdoc(cls)}\n{LOOPS[name]}\n"
    return text + _format(cls.format)


def _configurations() -> str:
    names = (
        *("block", "bus_bytes", "act_depth", "act_banks", "wgt_depth", "acc_depth", "acc_banks"),
        *("par_depth", "tap_depth", "tab_depth", "queue_depth", "fetch_ahead", "burst_beats"),
        *("store_slots", "token_max", "clock_hz"),
    )
    rows: list[tuple[object, ...]] = [
        (name, *(getattr(config, name) for config in CONFIGS.values())) for name in names
    ]
    rows.append(("fingerprint", *(f"`{config.fingerprint:#010x}`" for config in CONFIGS.values())))
    return "## Configurations\n\n" + _table(("", *CONFIGS), rows)


def manual() -> str:
    """The whole manual."""
    registers = [(f"`0x{r.offset:03X}`", r.name, r.access.value, r.doc) for r in REGISTERS]
    units = [(unit.value, unit.name) for unit in Unit]
    formula = "\n".join(f"    {line}" for line in dedent(getsource(requantize)).splitlines())
    parts = [
        OVERVIEW,
        _memories(),
        "## Units\n\n" + _table(("bit in `wait` and `post`", "unit"), units),
        SYNCHRONISATION,
        f"## Instructions\n\nEach has {INSTRUCTION_BYTES} bytes. "
        "Level 0 of a loop nest is the innermost.\n",
        *(_instruction(cls) for cls in CLASSES),
        "### Folds\n\n" + _enumeration(Fold),
        "### Multipliers\n\n" + _enumeration(Multiplier),
        "### Finishes\n\n" + _enumeration(Finish),
        FORMULA + "\n" + formula + "\n",
        "## Host registers\n\nAXI4-Lite, 32-bit registers.\n\n"
        + _table(("offset", "name", "access", "meaning"), registers),
        "### CONTROL bits\n\n" + _enumeration(Control),
        "### STATUS bits\n\n" + _enumeration(Status),
        STOPPING + "\n" + _enumeration(ErrorCode),
        _configurations(),
    ]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def main() -> None:
    """Write the manual into the repository this file is in."""
    path = Path(__file__).resolve().parent.parent / "docs" / "isa.md"
    path.write_text(manual())


if __name__ == "__main__":
    main()
