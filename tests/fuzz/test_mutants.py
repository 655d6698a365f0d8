"""A few mutants; ``make fuzz`` runs many more."""

import warnings
from pathlib import Path

import pytest

from .mutate import mutant
from .run import run_mutant


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_a_mutant_runs_or_is_refused(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 50):
            run_mutant(seed)


def test_a_mutant_is_the_same_each_time() -> None:
    assert [mutant(seed) for seed in range(20)] == [mutant(seed) for seed in range(20)]
