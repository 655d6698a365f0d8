"""A seeded sample of ONNX's backend tests; ``make conformance`` runs them all."""

import random
import re
from pathlib import Path

import pytest

from .backend import cases
from .workers import Outcome, run_cases

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = 160


def test_what_the_page_says_to_pass_does_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_VERIFY", "1")
    known = cases(ROOT / "build" / "conformance")
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    failing = set(re.findall(r"`(test_\w+)`", page))
    small = [
        name
        for name, case in known.items()
        if case.category != "RealModel" and name.removesuffix("_cpu") not in failing
    ]
    chosen = random.Random(20).sample(small, SAMPLE)
    outcomes: list[Outcome] = []
    run_cases(known, chosen, jobs=1, limit_s=60, report=outcomes.append)
    assert [(each.name, each.reason) for each in outcomes if each.reason] == []
    assert len(outcomes) == SAMPLE
