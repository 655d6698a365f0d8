"""Labels from files, and numbers of classes."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.errors import CalibrationError
from dovetail.compiler.graph.ir import Array
from dovetail.compiler.quantize.data import read_data
from dovetail.compiler.quantize.signature import Signature

X = (Signature("x", (1, 2)),)


def labels(folder: Path, name: str, text: str, classes: str = "") -> Array:
    (folder / name).write_text(text)
    named = folder / "classes" if classes else None
    if named:
        named.write_text(classes)
    found = read_data(folder / "data", X, labels=folder / name, classes=named).labels
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files, of two samples and one."""
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "a.npy", np.zeros((2, 2), np.float32))
    np.save(tmp_path / "data" / "b.npy", np.zeros((1, 2), np.float32))
    return tmp_path


def test_a_line_is_a_label(folder: Path) -> None:
    assert labels(folder, "l.txt", "4\n0\n\n9\n").tolist() == [4, 0, 9]
    assert labels(folder, "l.txt", "b\na\nb", "a\nb").tolist() == [1, 0, 1]


def test_a_file_has_the_label_of_its_line(folder: Path) -> None:
    text = 'file,label\nb.npy,5\n"a.npy",3\n'
    assert labels(folder, "l.csv", text).tolist() == [3, 3, 5]


def test_arrays_of_any_shape_are_labels(folder: Path) -> None:
    np.save(folder / "l.npy", np.arange(6).reshape(3, 2))
    data = read_data(folder / "data", X, labels=folder / "l.npy")
    np.testing.assert_array_equal(data.labels, [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(data.spread(2).labels, [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    ("name", "text", "classes", "message"),
    [
        ("l.txt", "1\n2", "", "2 labels for 3 samples; required one for each"),
        ("l.txt", "1\n2\ncat", "", "label 'cat'; required a number; or name the classes"),
        ("l.txt", "a\nb\nc", "a\nb", "label 'c'; required one of 2 classes"),
        ("l.txt", "a\nb\nc", "a\na", "class 'a' twice"),
        ("l.csv", "a.npy,1\n", "", "no label for 'b.npy'"),
        ("l.csv", "a.npy,1,2\n", "", "required file,label"),
        ("l.csv", "a.npy,1\na.npy,2\n", "", "a file with two labels"),
    ],
)
def test_labels_that_do_not_fit_are_refused(
    folder: Path, name: str, text: str, classes: str, message: str
) -> None:
    with pytest.raises(CalibrationError, match=message):
        labels(folder, name, text, classes)


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "l.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CalibrationError, match=r"cannot read .*l\.txt"):
        read_data(folder / "data", X, labels=folder / "l.txt")
