"""Calibration data from files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.errors import CalibrationError
from dovetail.compiler.graph.ir import Array
from dovetail.compiler.quantize.data import Preparation, read_data
from dovetail.compiler.quantize.signature import Signature, fitted

IMAGE = (Signature("image", (1, 3, 4, 4)),)
TWO = (Signature("a", (1, 2)), Signature("b", (1, 3)))


def random(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


IMAGES = random((5, 3, 4, 4))


def samples(path: Path, inputs: tuple[Signature, ...] = IMAGE) -> list[dict[str, Array]]:
    return [dict(each) for each in read_data(path, inputs)]


@pytest.mark.parametrize("array", [IMAGES, IMAGES[:, None], IMAGES.astype(np.float64)])
def test_samples_lie_along_the_first_dimension(tmp_path: Path, array: Array) -> None:
    np.savez(tmp_path / "data.npz", anything=array)
    found = samples(tmp_path / "data.npz")
    assert [list(each) for each in found] == [["image"]] * 5
    np.testing.assert_array_equal(np.concatenate([each["image"] for each in found]), IMAGES)
    assert all(each["image"].dtype == np.float32 for each in found)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_inputs_of_whole_numbers_keep_their_type(tmp_path: Path, dtype: str) -> None:
    inputs = (Signature("ids", (1, 4), dtype), Signature("at", (), dtype))
    ids = np.array([[0, 1, 1, 0], [1, 1, 0, 0]])
    np.savez(tmp_path / "data.npz", ids=ids, at=np.array([1.0, 0.0]))
    found = samples(tmp_path / "data.npz", inputs)
    assert [each["ids"].tolist() for each in found] == [[row] for row in ids.tolist()]
    assert {array.dtype for each in found for array in each.values()} == {np.dtype(dtype)}
    np.savez(tmp_path / "data.npz", ids=ids, at=np.array([1.0, 0.5]))
    with pytest.raises(CalibrationError, match=f"'at' is {dtype}, and float64 array has 0.5"):
        samples(tmp_path / "data.npz", inputs)


@pytest.mark.parametrize(("ending", "what"), [(".png", "pictures"), (".wav", "sounds")])
def test_whole_numbers_come_from_arrays_only(tmp_path: Path, ending: str, what: str) -> None:
    (tmp_path / f"file{ending}").write_bytes(b"")
    with pytest.raises(CalibrationError, match=f"{what} for input 'ids' of int64; required arrays"):
        read_data(tmp_path, (Signature("ids", (1, 3, 4, 4), "int64"),))


def test_a_folder_gives_its_files_in_order(tmp_path: Path) -> None:
    for number in (2, 0, 1):
        np.save(tmp_path / f"{number}.npy", IMAGES[number : number + 1])
    (tmp_path / "notes.txt").write_text("no array")
    found = np.concatenate([each["image"] for each in samples(tmp_path)])
    np.testing.assert_array_equal(found, IMAGES[:3])


def test_an_archive_has_each_input_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", a=random((4, 2)), b=random((4, 3)), more=random((1,)))
    found = samples(tmp_path / "data.npz", TWO)
    assert len(found) == 4
    assert {name: array.shape for name, array in found[0].items()} == {"a": (1, 2), "b": (1, 3)}


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    def refused(message: str, inputs: tuple[Signature, ...] = IMAGE) -> None:
        with pytest.raises(CalibrationError, match=message):
            samples(tmp_path / "data.npz", inputs)

    refused("no calibration data .*data.npz; required a folder, .npz or .npy")
    (tmp_path / "data.npz").write_bytes(b"PK damaged")
    refused("cannot read .*data.npz")
    np.savez(tmp_path / "data.npz", image=random((5, 3, 4)))
    refused(r"array \[5, 3, 4\] for input 'image'; required \[1, 3, 4, 4\]")
    np.savez(tmp_path / "data.npz", image=np.array(["text"]))
    refused("required numbers")
    np.savez(tmp_path / "data.npz", image=IMAGES[:0])
    refused("no samples for input 'image'")
    np.savez(tmp_path / "data.npz", image=np.where(IMAGES > 0, np.nan, IMAGES))
    refused("NaN or infinity for input 'image'")
    np.savez(tmp_path / "data.npz", a=random((4, 2)))
    refused("no array 'b'; found 'a'; required one for each input", TWO)
    np.savez(tmp_path / "data.npz", a=random((4, 2)), b=random((3, 3)))
    refused("different numbers of samples", TWO)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="has no"):
        samples(tmp_path)


def test_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(CalibrationError, match="cannot read"):
        samples(tmp_path / "data.npy")


def test_a_file_of_another_kind_is_named_so(tmp_path: Path) -> None:
    (tmp_path / "data.npy").write_text("import torch\n")
    with pytest.raises(CalibrationError, match=r"data\.npy is neither an array \(\.npy\) nor"):
        samples(tmp_path / "data.npy")


def test_samples_are_spread_over_files_and_read_again(tmp_path: Path) -> None:
    for number in range(4):
        np.save(tmp_path / f"{number}.npy", np.full((3, 3, 4, 4), number, np.float32))
    data = read_data(tmp_path, IMAGE)
    assert len(data) == 12
    few = data.spread(4)
    for _ in range(2):
        assert [each["image"].max() for each in few] == [0, 1, 2, 3]
    assert len(few.spread(2)) == 2
    assert data.spread(50) is data


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "samples are int; required a list of mappings, each with an array by input"),
        ([IMAGES[:1]], r"sample 0 is ndarray; required a mapping .* as \{'image': array\}"),
        ([{}], "sample 0: no array for input 'image'; found nothing; required one for each"),
        ([{"a": 1, "b": 2}], "sample 0: no array for input 'image'; found 'a', 'b'; required"),
        ([{"image": [[1], [2, 3]]}], "sample 0: input 'image' is not an array: "),
        (
            [{"image": IMAGES[:1]}, {"image": IMAGES}],
            r"sample 1: array \[5, 3, 4, 4\] for input 'image'; required \[1, 3, 4, 4\]",
        ),
        ([{"image": np.full((1, 3, 4, 4), "a")}], "array of <U1 for input 'image'; required num"),
        ([{"image": IMAGES[:1] * np.nan}], "sample 0: NaN or infinity for input 'image'"),
        ([{"image": np.full((1, 3, 4, 4), 1e39)}], "sample 0: NaN or infinity for input 'image'"),
    ],
)
def test_samples_that_do_not_fit_are_refused_by_number(given: Any, message: str) -> None:
    with pytest.raises(CalibrationError, match=message):
        list(fitted(given, IMAGE))


def test_samples_have_the_inputs_alone() -> None:
    (found,) = fitted([{"image": IMAGES[:1].tolist(), "more": 3}], IMAGE)
    assert list(found) == ["image"]
    np.testing.assert_array_equal(found["image"], IMAGES[:1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resize": (1, 2, 3)}, r"resize to \(1, 2, 3\); required one or two sizes above 0"),
        ({"resize": (0,)}, r"resize to \(0,\); required one or two sizes above 0"),
        ({"std": (1.0, 0.0)}, "a scale or deviation of 0; required another number"),
        ({"scale": 0.0}, "a scale or deviation of 0; required another number"),
    ],
)
def test_preparations_without_meaning_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Preparation(**options)


def test_folders_without_samples_and_sounds_for_two_inputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match=f"folder {tmp_path} has no .npy or .npz files, pic"):
        read_data(tmp_path, IMAGE)
    (tmp_path / "a.wav").touch()
    with pytest.raises(CalibrationError, match="sounds for 2 inputs; required arrays"):
        read_data(tmp_path, TWO)
    (tmp_path / "a.wav").rename(tmp_path / "a.png")
    with pytest.raises(CalibrationError, match="pictures for 2 inputs; required arrays"):
        read_data(tmp_path, TWO)
