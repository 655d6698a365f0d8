"""ONNX's backend tests by the meanings of operators alone: nothing is compiled, so all can run."""

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.kept import check_kept

from . import backend
from .backend import cases

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "conformance"
KEPT = Path(__file__).with_name("kept_forms.json")


SHARES = 60
"""Tests that the cases are shared out to, so that each is short."""


@pytest.fixture(scope="module")
def names() -> tuple[str, ...]:
    """Cases that the interpreter must pass: those that docs/conformance.md does not name."""
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    failing = set(re.findall(r"`(test_\w+)`", page))
    return tuple(
        name
        for name, case in cases(FOLDER).items()
        if case.category != "RealModel" and name.removesuffix("_cpu") not in failing
    )


def wrong(chosen: Iterable[str], forms: list[str]) -> list[str]:
    """Cases that the interpreter fails, with the reasons; ``forms``: gets those of the others."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in chosen:
            backend.FORMS.clear()
            try:
                cases(FOLDER)[name].run()
                forms.append(f"{name.removesuffix('_cpu')}: {'; '.join(backend.FORMS)}")
            except Exception as error:
                found.append(f"{name}: {' '.join(str(error).split())[:200]}")
    return found


@pytest.mark.parametrize("share", range(SHARES))
def test_every_case_has_its_result_by_the_meanings(
    share: int, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_chosen", "interpreter")
    first, end = (len(names) * n // SHARES for n in (share, share + 1))
    forms: list[str] = []
    assert wrong(names[first:end], forms) == []
    check_kept(KEPT, names[first], forms)


def test_a_wrong_meaning_is_found(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_chosen", "interpreter")
    monkeypatch.setattr("dovetail.compiler.graph.operators.selection._overlap", lambda a, b: 0.0)
    assert wrong((name for name in names if "nonmaxsuppression" in name), [])
