"""Properties of the gateware hold, and break with the first of the bugs planted in it."""

from pathlib import Path

import pytest

from .engine import TOOLS
from .report import HOLES, property_row
from .run import Proof, planted, prove
from .table import PROOFS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proofs.md"


@pytest.mark.parametrize(
    "proof", [each for each in PROOFS if each.quick], ids=lambda each: each.name
)
def test_the_property_holds_and_a_planted_bug_is_found(proof: Proof, tmp_path: Path) -> None:
    if not (TOOLS / "yices-smt2").exists():
        pytest.skip("no yices-smt2: install the extra 'prove'")
    assert prove(proof, proof.configs[0], tmp_path, bugs=1).problems == ()


@pytest.mark.parametrize("proof", PROOFS, ids=lambda each: each.name)
def test_bugs_can_be_planted(proof: Proof) -> None:
    assert proof.bugs
    for old, new in proof.bugs:
        planted(f"dovetail.vta_hw.{proof.subject}", old, new)


def test_the_page_has_every_proof_and_hole() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert HOLES in page
    for proof in PROOFS:
        assert property_row(proof) in page, f"docs/proofs.md is stale ({proof.name}): make prove"
