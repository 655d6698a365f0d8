"""Labels: numbers of classes, or names, for each sample."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import CalibrationError
from ...graph.ir import Array
from .arrays import load_arrays

__all__ = ["number_labels", "read_classes", "read_labels"]


def read_labels(file: Path, names: Sequence[str], classes: Sequence[str]) -> Array:
    """The label of each sample.

    file: ``.npy``, any array with one row for each sample; ``.csv`` lines of file and label, in any
    order, a heading allowed; any other: one label a line.
    names: of the samples' files.  classes: names of the classes by number, or none.
    Raises CalibrationError for a file that cannot be read, and for files without a label.
    """
    if file.suffix == ".npy":
        return np.asarray(load_arrays(file)[""])
    lines = _lines(file)
    if file.suffix == ".csv":
        return number_labels(_by_file(file, lines, names), classes, str(file))
    return number_labels(lines, classes, str(file))


def read_classes(file: Path) -> tuple[str, ...]:
    """Names of classes, one a line, in the order of the model's output."""
    found = tuple(_lines(file))
    if len(set(found)) != len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise CalibrationError(f"{file}: class {twice!r} twice; required each name once")
    return found


def number_labels(labels: Sequence[str], classes: Sequence[str], where: str) -> Array:
    """int64, one for each label: its place in ``classes``, or the number that it is.

    Raises CalibrationError, naming ``where``.
    """
    places = {name: place for place, name in enumerate(classes)}
    numbers = []
    for label in labels:
        place = places.get(label)
        if place is None and not (label.isascii() and label.isdigit()):
            known = f"one of {len(classes)} classes" if classes else "a number; or name the classes"
            raise CalibrationError(f"{where}: label {label!r}; required {known}")
        numbers.append(int(label) if place is None else place)
    return np.array(numbers, np.int64)


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationError(f"cannot read {file}: {error}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _by_file(file: Path, lines: Sequence[str], names: Sequence[str]) -> list[str]:
    try:
        rows = [row for row in csv.reader(lines) if row]
    except csv.Error as error:
        raise CalibrationError(f"cannot read {file}: {error}") from None
    wrong = next((row for row in rows if len(row) != 2), None)
    if wrong is not None:
        raise CalibrationError(f"{file}: line {','.join(wrong)!r}; required file,label")
    found = {row[0].strip(): row[1].strip() for row in rows}
    if len(found) != len(rows):
        raise CalibrationError(f"{file}: a file with two labels; required one each")
    missing = [name for name in names if name not in found]
    if missing:
        raise CalibrationError(
            f"{file}: no label for {missing[0]!r}, nor {len(missing) - 1} others; required one for "
            "each file, by its path in the folder"
        )
    return [found[name] for name in names]
