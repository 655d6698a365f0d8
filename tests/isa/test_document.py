import re
from pathlib import Path

import pytest

from dovetail.isa.document import manual
from dovetail.isa.encoding import decode, field_values
from dovetail.isa.errors import EncodingError
from dovetail.isa.instructions import FORMATS, Instruction
from dovetail.isa.registers import REGISTERS

from .test_encoding import LOAD, VECTOR

PATH = Path(__file__).resolve().parents[2] / "docs" / "isa.md"


def test_the_manual_is_current() -> None:
    assert PATH.read_text() == manual(), "docs/isa.md is stale: run make docs"


def test_the_manual_names_every_field_and_register() -> None:
    text = manual()
    for layout in FORMATS:
        assert all(f"`{field.name}`" in text for field in layout.fields)
    assert all(register.name in text for register in REGISTERS)


@pytest.mark.parametrize(
    ("instruction", "field"),
    [
        (LOAD, "memory"),
        (VECTOR, "fold"),
        (VECTOR, "multiplier"),
        (VECTOR, "finish"),
        (VECTOR, "rounding"),
    ],
)
def test_the_rules_name_the_last_value_that_is_legal(instruction: Instruction, field: str) -> None:
    named = re.findall(rf"`{field}`(?: or `\w+`)?(?: is)? above (\d)", manual())
    layout, legal = instruction.format, set()
    (width,) = (each.width for each in layout.fields if each.name == field)
    for value in range(1 << width):
        word = layout.encode({**field_values(instruction), field: value})
        try:
            decode(word.to_bytes(64, "little"))
        except EncodingError:
            continue
        legal.add(value)
    assert legal == set(range(int(named[0]) + 1 if named else 1 << width))
