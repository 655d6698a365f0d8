from pathlib import Path

from dovetail.isa.document import manual
from dovetail.isa.instructions import FORMATS
from dovetail.isa.registers import REGISTERS

PATH = Path(__file__).resolve().parents[2] / "docs" / "isa.md"


def test_the_manual_is_current() -> None:
    assert PATH.read_text() == manual(), "docs/isa.md is stale: run make docs"


def test_the_manual_names_every_field_and_register() -> None:
    text = manual()
    for layout in FORMATS:
        assert all(f"`{field.name}`" in text for field in layout.fields)
    assert all(register.name in text for register in REGISTERS)
