"""Parameters, buffers and constants: raw little-endian bytes with sizes, strides and an offset."""

from typing import Any

import numpy as np

from ...errors import ModelError, UnsupportedOperatorError
from ...graph.ir import Array
from .archive import Archive
from .schema import read_meta

__all__ = ["Weights"]

FOLDERS = (
    ("data/weights/", "model_weights_config.json"),
    ("data/constants/", "model_constants_config.json"),
)


class Weights:
    """The tensors of an archive by what the module calls them; read when they are asked for."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._entries: dict[str, tuple[str, Any]] = {}
        name = archive.program_name().removeprefix("models/").removesuffix(".json")
        for folder, config in FOLDERS:
            path = folder + config.replace("model_", f"{name}_", 1)
            if path not in archive.members:
                continue
            document = archive.json(path)
            entries = document.get("config") if isinstance(document, dict) else None
            if not isinstance(entries, dict):
                raise archive.error(f"{path!r} has no table 'config'")
            self._entries.update({key: (folder, each) for key, each in entries.items()})

    def __getitem__(self, name: str) -> Array:
        """An array of the tensor, read-only.

        Raises ModelError for a missing or malformed one, and one that does not fit its bytes;
        UnsupportedOperatorError for one that is pickled.
        """
        folder, entry = self._entries.get(name, ("", None))
        if not isinstance(entry, dict):
            raise self._archive.error(f"no tensor {name!r} in the archive")
        if entry.get("use_pickle") is not False or entry.get("tensor_meta") is None:
            raise UnsupportedOperatorError(
                f"{self._archive.path}: {name!r} is a pickle, which is never loaded; export a "
                "model of plain tensors"
            )
        path = entry.get("path_name")
        if not isinstance(path, str) or "/" in path:
            raise self._archive.error(f"tensor {name!r} is in {path!r}; required a member's name")
        try:
            meta = read_meta(name, entry["tensor_meta"])
        except ModelError as error:
            raise self._archive.error(str(error)) from None
        numbers = (*meta.sizes, *meta.strides, meta.offset)
        if any(not isinstance(each, int) or each < 0 for each in numbers):
            raise self._archive.error(f"tensor {name!r} has layout {numbers}; required 0 or more")
        sizes, strides = (tuple(map(int, each)) for each in (meta.sizes, meta.strides))
        return self._view(name, folder + path, meta.dtype.numpy, sizes, strides, int(meta.offset))

    def _view(
        self,
        name: str,
        member: str,
        dtype: np.dtype[Any],
        sizes: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
    ) -> Array:
        content = self._archive.member(member)
        stored = np.frombuffer(content[: len(content) // dtype.itemsize * dtype.itemsize], dtype)
        if len(sizes) != len(strides):
            raise self._archive.error(f"tensor {name!r} has {len(sizes)} sizes, {strides}")
        if 0 in sizes:
            return np.zeros(sizes, dtype)
        last = offset + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
        elements = int(np.prod(sizes, dtype=object))
        if last >= stored.size or elements > max(stored.size, 1):
            raise self._archive.error(
                f"tensor {name!r} of sizes {list(sizes)}, strides {list(strides)} from element "
                f"{offset} on; its bytes have {stored.size} elements"
            )
        steps = tuple(step * dtype.itemsize for step in strides)
        view = np.lib.stride_tricks.as_strided(stored[offset:], sizes, steps, writeable=False)
        if dtype == np.bool_:
            return np.asarray(view.view(np.uint8) != 0)
        return view
