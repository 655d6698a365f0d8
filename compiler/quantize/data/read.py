"""Samples in a path: a file of arrays, a text, or a folder of arrays, pictures, sounds or texts."""

from collections.abc import Sequence
from pathlib import Path

from dovetail.isa.frozen import frozen

from ...errors import CalibrationError
from ..signature import Signature
from .arrays import array_source
from .dataset import Dataset, Source
from .labels import number_labels, read_classes, read_labels
from .pictures import PICTURES, Preparation, picture_source
from .sounds import SOUNDS, sound_source
from .texts import TEXTS, ReadText

__all__ = ["read_data"]

ARRAYS = (".npy", ".npz")
KINDS = {
    **dict.fromkeys(ARRAYS, "arrays"),
    **dict.fromkeys(PICTURES, "pictures"),
    **dict.fromkeys(SOUNDS, "sounds"),
}
"""Contents of a file, by the end of its name.  Texts beside them are not samples."""


def read_data(
    path: Path,
    inputs: Sequence[Signature],
    options: Preparation | None = None,
    *,
    labels: Path | None = None,
    classes: Path | None = None,
    texts: ReadText | None = None,
) -> Dataset:
    """The samples of a file ``.npz``, ``.npy`` or ``.txt``, or of all files of a folder, by name.

    A folder has arrays, pictures, sounds or texts; or a folder of them for each class, whose names
    are numbers, names in ``classes``, or count in their order.  ``labels``: a file, instead.
    texts: reads those, if the model is a decoder.
    Raises CalibrationError when there is no data, or it does not fit the inputs.
    """
    read = _Reader(inputs, options or Preparation(), texts)
    named = read_classes(classes) if classes else ()
    if path.is_file():
        kind = "texts" if path.suffix.lower() in TEXTS else "arrays"
        data = Dataset((read(path.name, path, kind),))
    elif path.is_dir():
        data, named = _folder(path, read, named)
    else:
        raise CalibrationError(
            f"no calibration data {path}; required a folder, .npz or .npy; for a decoder also .txt"
        )
    if labels is None:
        return data
    names = [source.name for source in data.sources for _ in range(source.count)]
    return data.labelled(read_labels(labels, names, named), named)


def _folder(
    path: Path, read: "_Reader", classes: tuple[str, ...]
) -> tuple[Dataset, tuple[str, ...]]:
    """Its samples, labelled when it has folders of classes; the names of the classes."""
    files, folders = _files(path), sorted(each for each in path.iterdir() if each.is_dir())
    within = [_files(folder) for folder in folders]
    if files and any(within):
        raise CalibrationError(f"folder {path} has both samples and folders of samples")
    texts = sorted(file for file in path.iterdir() if file.suffix.lower() in TEXTS)
    if not files and not any(within) and texts:
        return Dataset(tuple(read(file.name, file, "texts") for file in texts)), classes
    if not files and not any(within):
        raise CalibrationError(
            f"folder {path} has no .npy or .npz files, pictures ({', '.join(PICTURES)}), .wav or "
            ".txt"
        )
    every = files or [file for group in within for file in group]
    kinds = sorted({KINDS[file.suffix.lower()] for file in every})
    if len(kinds) > 1:
        raise CalibrationError(f"folder {path} has {' and '.join(kinds)}; required one of them")
    sources = tuple(read(file.relative_to(path).as_posix(), file, kinds[0]) for file in every)
    if files:
        return Dataset(sources), classes
    names = [folder.name for folder, group in zip(folders, within, strict=True) if group]
    if not classes and not all(name.isascii() and name.isdigit() for name in names):
        classes = tuple(names)
    found = [
        file.parent.name
        for file, source in zip(every, sources, strict=True)
        for _ in range(source.count)
    ]
    return Dataset(sources).labelled(number_labels(found, classes, str(path)), classes), classes


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in KINDS)


@frozen
class _Reader:
    """Reads files as samples for ``inputs``."""

    inputs: Sequence[Signature]
    options: Preparation
    texts: ReadText | None

    def __call__(self, name: str, file: Path, kind: str) -> Source:
        """The samples of a file of this kind.  Raises CalibrationError."""
        if kind == "arrays":
            return array_source(name, file, self.inputs)
        if kind == "sounds":
            return sound_source(name, file, self.inputs, self.options.crop)
        if kind == "pictures":
            return picture_source(name, file, self.inputs, self.options)
        if self.texts is None:
            raise CalibrationError(f"text {file}, and no decoder to read it")
        return self.texts(name, file)
