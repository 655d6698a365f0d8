"""Refining a plan: how often a program is tried, and what is kept."""

from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.compiler.targets.vta import refine as module


@pytest.mark.parametrize("room", [False, True])
@pytest.mark.parametrize("most", [0, 1, 5])
def test_as_many_programs_are_tried_as_are_allowed(
    most: int, *, room: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the changes are tried next if there is no room.  A faster program is kept."""
    changes = [SimpleNamespace(first=n, end=n + 1, choices=(n,)) for n in range(64)]
    search = SimpleNamespace(changes=lambda choices: changes)
    monkeypatch.setattr(module, "_Search", lambda ways: search)
    monkeypatch.setattr(module, "_gain", lambda before, trial, change: change.first % 2)
    choices = [SimpleNamespace(first=n) for n in range(64)]
    start: Any = SimpleNamespace(choices=choices, cycles=100)
    tried: list[int] = []

    def attempt(found: Any) -> Any:
        tried.append(sum(isinstance(each, int) for each in found))
        return SimpleNamespace(choices=choices, cycles=100 - len(tried)) if room else None

    best = module.refine(start, attempt, SimpleNamespace(), most)  # type: ignore[arg-type]
    assert tried == ([64, 32, 64, 32, 64] if room else [64, 32, 16, 8, 4])[:most]
    assert best.cycles == (100 - most if room else 100)
