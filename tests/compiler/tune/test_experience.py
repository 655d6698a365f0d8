"""Programs that were measured before: files of them, and those that come with this project."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.tune.experience import (
    Experience,
    experience_of,
    read_experience,
    shipped_experience,
    write_experience,
)
from dovetail.compiler.tune.features import LENGTH
from dovetail.compiler.tune.model import CostModel, rank_correlation


def test_costs_count_beside_the_median_of_their_kernel() -> None:
    row = np.zeros(LENGTH, np.float32)
    found = experience_of({"a": [(row, 1.0), (row, 2.0), (row, 4.0)], "b": [(row, 7.0)]})
    assert found.rows.shape == (4, LENGTH)
    np.testing.assert_allclose(found.targets, [-1, 0, 1, 0])


def test_a_file_gives_what_was_written_as_far_as_it_is_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 30, (40, LENGTH)).astype(np.float32)
    given = Experience(rows, rng.normal(size=40).astype(np.float32))
    write_experience(tmp_path / "some.npz", given)
    found = read_experience(tmp_path / "some.npz")
    assert found is not None
    np.testing.assert_allclose(found.rows, given.rows, atol=1 / 32)
    np.testing.assert_allclose(found.targets, given.targets, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("what", ["absent", "noise", "empty", "others", "cut"])
def test_what_cannot_be_used_is_none(tmp_path: Path, what: str) -> None:
    path = tmp_path / "some.npz"
    match what:
        case "noise":
            path.write_bytes(b"noise" * 99)
        case "empty":
            path.write_bytes(b"")
        case "others":
            rows = np.zeros((3, LENGTH + 1), np.float32)
            write_experience(path, Experience(rows, np.zeros(3, np.float32)))
        case "cut":
            row = np.zeros((30, LENGTH), np.float32)
            write_experience(path, Experience(row, row[:, 0]))
            path.write_bytes(path.read_bytes()[:-100])
    assert read_experience(path) is None


def test_the_shipped_experience_ranks_kernels_that_were_left_out() -> None:
    found = shipped_experience()
    assert found is not None, "its features are of another version: measure it anew"
    assert found.rows.shape[0] > 1000
    assert np.isfinite(found.rows).all()
    assert np.abs(found.targets).max() <= 3
    half = found.rows.shape[0] // 2
    model = CostModel(Experience(found.rows[:half], found.targets[:half]))
    predicted = model.predict("unknown", list(found.rows[half:]))
    assert predicted is not None
    assert rank_correlation(list(predicted), list(found.targets[half:])) > 0.25
