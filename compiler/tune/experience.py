"""Programs that were measured long before, for the model of cost: what comes with this project.

A file is an archive of NumPy arrays: ``rows``, features of programs, and ``targets``, the logarithm
to base 2 of the cost of each over that of its kernel's median.
"""

import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from .features import LENGTH
from .problem import Features

__all__ = [
    "SHIPPED",
    "Experience",
    "experience_of",
    "read_experience",
    "shipped_experience",
    "write_experience",
]

SHIPPED = Path(__file__).with_name("experience.npz")
WORST = 3.0
"""The largest target, and minus the least: what is beyond is all alike."""


@frozen
class Experience:
    """rows: float32[N, features].  targets: float32[N]."""

    rows: NDArray[np.float32]
    targets: NDArray[np.float32]


def experience_of(kernels: Mapping[str, Sequence[tuple[Features, float]]]) -> Experience:
    """Experience from features and costs of the programs of each kernel."""
    rows, targets = [], []
    for own in kernels.values():
        costs = np.log2([cost for _, cost in own])
        rows += [features for features, _ in own]
        targets += list(np.clip(costs - np.median(costs), -WORST, WORST))
    return Experience(np.array(rows, np.float32), np.array(targets, np.float32))


def write_experience(path: Path, experience: Experience) -> None:
    """Write a file, in half precision, rows to a 16th: they are logarithms, for the most part."""
    rows = np.round(experience.rows * 16) / 16
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            rows=np.ascontiguousarray(rows.T).astype(np.float16),
            targets=experience.targets.astype(np.float16),
        )


def read_experience(path: Path) -> Experience | None:
    """Contents of a file; None when it is of programs' other features, or cannot be read."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            rows, targets = found["rows"].T, found["targets"]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    if rows.shape != (targets.size, LENGTH):
        return None
    return Experience(rows.astype(np.float32), targets.astype(np.float32))


@cache
def shipped_experience() -> Experience | None:
    """The experience that comes with this project."""
    return read_experience(SHIPPED)
