"""Tables of the manual: fields of instructions, memories, configurations.

The tables are read from the page itself, so what it says of bits and sizes is what is tested.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "isa.md"
INSTRUCTION_BYTES = 64
UNITS = ("LOAD", "GEMM", "VECTOR", "STORE")


@dataclass(frozen=True, slots=True)
class Field:
    """Bits ``high`` to ``low``, both included, of an instruction."""

    name: str
    high: int
    low: int
    signed: bool

    def read(self, word: int) -> int:
        bits = self.high - self.low + 1
        value = word >> self.low & (1 << bits) - 1
        return value - (1 << bits) if self.signed and value >> bits - 1 else value


@cache
def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def section(title: str) -> str:
    """Text under the heading ``title``, up to the next heading."""
    found = re.search(
        rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None, title
    return found.group(1)


def rows(table: str) -> list[list[str]]:
    """The cells of each line of a table, the head's and the rule's too."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


@cache
def fields(unit: str) -> tuple[Field, ...]:
    """The fields of the instruction of ``unit``; those named "reserved" are the bits that are 0."""
    found = []
    for cells in rows(section(f"{unit} (opcode {UNITS.index(unit) + 1})"))[2:]:
        high, _, low = cells[1].partition(":")
        found.append(Field(cells[0], int(high), int(low or high), cells[2] == "signed"))
    return tuple(found)


@cache
def configuration(name: str) -> dict[str, int]:
    """The numbers of the configuration ``name``, by field; True is 1."""
    table = rows(section("Configurations"))
    heads = [index for index, cells in enumerate(table) if cells[0] == ""]
    column = table[heads[0]].index(name)
    sizes = {}
    for cells in table[heads[0] + 2 :]:
        if cells[0] == "fingerprint":
            return sizes
        if cells[column].isdigit():
            sizes[cells[0]] = int(cells[column])
        elif cells[column] in ("True", "False"):
            sizes[cells[0]] = int(cells[column] == "True")
    raise AssertionError("the table of configurations ends with their fingerprints")


def names_of_configurations() -> list[str]:
    """The columns of the table of configurations."""
    table = rows(section("Configurations"))
    return next([name for name in cells if name] for cells in table if cells[0] == "")


def value_names(title: str) -> dict[int, str]:
    """The table of named values under ``title``: number to name."""
    return {int(cells[0]): cells[1] for cells in rows(section(title))[2:]}
