"""ONNX's backend tests by the meanings of operators alone: nothing is compiled, so all can run."""

import re
import warnings
from pathlib import Path

import pytest

from . import backend
from .backend import cases

ROOT = Path(__file__).resolve().parents[2]


def wrong() -> list[str]:
    """The cases that the interpreter fails, beside those that docs/conformance.md names."""
    known = cases(ROOT / "build" / "conformance")
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    failing = set(re.findall(r"`(test_\w+)`", page))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, case in known.items():
            if case.category != "RealModel" and name.removesuffix("_cpu") not in failing:
                try:
                    case.run()
                except Exception as error:
                    found.append(f"{name}: {' '.join(str(error).split())[:200]}")
    return found


def test_every_case_has_its_result_by_the_meanings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_chosen", "interpreter")
    assert wrong() == []


def test_a_wrong_meaning_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_chosen", "interpreter")
    monkeypatch.setattr("dovetail.compiler.graph.operators.selection._overlap", lambda a, b: 0.0)
    assert any("nonmaxsuppression" in each for each in wrong())
