"""The diagrams are drawn from the sources beside them."""

import hashlib
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("source", sorted(FOLDER.glob("diagrams/*.dot")), ids=lambda p: p.stem)
def test_a_diagram_is_up_to_date_and_shown(source: Path) -> None:
    drawn = source.with_suffix(".svg").read_text(encoding="utf-8")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert f"SHA-256 {digest} -->" in drawn.split("\n")[0], "draw it again: make diagrams"
    pages = [page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md")]
    assert any(re.search(rf"\(diagrams/{source.stem}\.svg\)", page) for page in pages)
