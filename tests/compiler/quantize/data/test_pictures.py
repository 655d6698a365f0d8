"""Pictures as samples, against NumPy on the pixels that were written."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.errors import CalibrationError
from dovetail.compiler.quantize.data import Preparation, read_data
from dovetail.compiler.quantize.signature import Signature

image_module = pytest.importorskip("PIL.Image", reason="no Pillow")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def inputs(*shape: int) -> tuple[Signature, ...]:
    return (Signature("image", shape),)


def pixels(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def write(path: Path, values: NDArray[np.uint8]) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    image_module.fromarray(values).save(path)
    return path


def read(folder: Path, shape: tuple[int, ...], **options: object) -> list[NDArray]:
    data = read_data(folder, inputs(*shape), Preparation(**options))
    return [each["image"] for each in data]


def test_pixels_are_scaled_and_normalised_in_the_inputs_layout(tmp_path: Path) -> None:
    values = pixels(4, 6)
    write(tmp_path / "a.png", values)
    expected = ((values / 255 - MEAN) / STD).astype(np.float32)
    (first,) = read(tmp_path, (1, 3, 4, 6), mean=MEAN, std=STD)
    assert first.dtype == np.float32
    np.testing.assert_allclose(first[0], expected.transpose(2, 0, 1), rtol=1e-6)
    (last,) = read(tmp_path, (1, 4, 6, 3), mean=MEAN, std=STD)
    np.testing.assert_allclose(last[0], expected, rtol=1e-6)
    (swapped,) = read(tmp_path, (1, 4, 6, 3), scale=1, bgr=True)
    np.testing.assert_array_equal(swapped[0], values[..., ::-1])


def test_a_grey_input_takes_colours_and_grey(tmp_path: Path) -> None:
    grey = pixels(5, 5)[..., 0]
    write(tmp_path / "a.png", grey)
    write(tmp_path / "b.png", np.repeat(grey[..., None], 3, axis=2))
    for found in read(tmp_path, (1, 1, 5, 5), scale=1):
        np.testing.assert_array_equal(found[0, 0], grey)


def test_the_middle_is_cut_after_the_shorter_side_is_resized(tmp_path: Path) -> None:
    values = np.zeros((20, 40, 3), np.uint8)
    values[:, 14:26] = 200
    write(tmp_path / "a.png", values)
    (found,) = read(tmp_path, (1, 8, 4, 3), resize=(10,), crop=True, scale=1)
    np.testing.assert_array_equal(found, np.full((1, 8, 4, 3), 200), "columns 8 to 12 of 20")
    (whole,) = read(tmp_path, (1, 10, 20, 3), resize=(10, 20), scale=1)
    assert whole.max() == 200


def test_folders_are_classes(tmp_path: Path) -> None:
    for number, name in enumerate(("cat", "dog", "dog")):
        write(tmp_path / name / f"{number}.png", pixels(2, 2))
    data = read_data(tmp_path, inputs(1, 3, 2, 2))
    assert data.labels is not None
    assert data.labels.tolist() == [0, 1, 1]
    assert data.classes == ("cat", "dog")
    names = tmp_path / "names.txt"
    names.write_text("bird\ncat\ndog\n")
    data = read_data(tmp_path, inputs(1, 3, 2, 2), classes=names)
    assert data.labels is not None
    assert data.labels.tolist() == [1, 2, 2]


def test_numbers_of_folders_are_labels(tmp_path: Path) -> None:
    for number in (3, 7):
        write(tmp_path / str(number) / "a.png", pixels(2, 2))
    data = read_data(tmp_path, inputs(1, 3, 2, 2))
    assert data.labels is not None
    assert (data.labels.tolist(), data.classes) == ([3, 7], ())


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    def refused(message: str, shape: tuple[int, ...] = (1, 3, 2, 2), **options: object) -> None:
        with pytest.raises(CalibrationError, match=message):
            read(tmp_path, shape, **options)

    file = write(tmp_path / "a.png", pixels(3, 2))
    refused("3 high and 2 wide; required 2 and 2; resize it, or resize and crop")
    refused("1 or 3 channels, first or last", (1, 2, 2, 2))
    refused("2 values of mean; required 1, or 3", mean=(0.0, 1.0))
    file.write_bytes(file.read_bytes()[:50])
    refused("cannot read picture .*a.png")
    file.write_bytes(b"GIF89a")
    refused("cannot read picture .*a.png")
    image_module.fromarray(np.zeros((2, 2), np.uint16)).save(file)
    refused("more than 8 bits a channel")
    np.save(tmp_path / "b.npy", np.zeros((3, 2, 2)))
    refused("has arrays and pictures; required one of them")
    file.unlink()
    write(tmp_path / "cat" / "a.png", pixels(2, 2))
    refused("both samples and folders of samples")
