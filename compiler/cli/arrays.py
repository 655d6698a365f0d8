"""Arrays that come from files and go to files.  NumPy is imported when there is one."""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import click

from dovetail.runtime.errors import InputError, ModuleError
from dovetail.runtime.files import write_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dovetail.runtime.module import Module
    from dovetail.runtime.tensors import TensorSignature

__all__ = [
    "dimensions_option",
    "random_arrays",
    "random_inputs",
    "read_array",
    "read_dimensions",
    "read_inputs",
    "write_array",
    "write_outputs",
]

DAMAGED = (ValueError, TypeError, SyntaxError, TokenError)
"""Exceptions of NumPy for invalid headers of ``.npy`` files, which it parses as Python."""

ARCHIVE = b"PK\x03\x04"
"""How zip archives begin, and so ``.npz`` files."""


def read_inputs(pairs: tuple[str, ...]) -> "dict[str, NDArray[np.generic]]":
    """The arrays of ``NAME=FILE.npy`` pairs, by name.

    Raises InputError for a file that is not an array, click.UsageError for another form of pair.
    """
    inputs: dict[str, NDArray[np.generic]] = {}
    for pair in pairs:
        name, separator, file = pair.partition("=")
        if not separator or not name:
            raise click.UsageError(f"--input {pair!r}; required NAME=FILE.npy")
        if name in inputs:
            raise click.UsageError(f"--input {name!r} is given twice")
        inputs[name] = read_array(Path(file), f"input {name!r}: cannot read {file}")
    return inputs


def read_array(path: Path, problem: str) -> "NDArray[Any]":
    """The array in a ``.npy`` file.

    Raises InputError that begins with ``problem``.
    """
    import numpy as np

    try:
        with path.open("rb") as source:
            if source.peek(len(ARCHIVE)).startswith(ARCHIVE):
                raise InputError(
                    f"{problem} as .npy: it is an archive of arrays (.npz); required one array: "
                    "numpy.save writes one of them"
                )
            found: NDArray[Any] = np.lib.format.read_array(source, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{problem} as .npy: {error.strerror or error}") from None
    except (MemoryError, *DAMAGED) as error:
        raise InputError(f"{problem} as .npy: {error}") from None
    return found


dimensions_option = click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a symbolic dimension."
)


def read_dimensions(pairs: tuple[str, ...]) -> dict[str, int]:
    """The sizes of ``NAME=SIZE`` pairs, by name.

    Raises click.UsageError for a pair that is none, and for a name given twice.
    """
    sizes: dict[str, int] = {}
    for pair in pairs:
        name, _, size = pair.partition("=")
        if not name or not size.isdecimal():
            raise click.UsageError(f"--dim {pair!r}; required NAME=SIZE")
        if name in sizes:
            raise click.UsageError(f"--dim {name!r} is given twice")
        sizes[name] = int(size)
    return sizes


def random_inputs(module: "Module") -> "dict[str, NDArray[np.generic]]":
    """Inputs for ``module``, as ``random_arrays`` makes them."""
    return random_arrays(module.inputs)


def random_arrays(signatures: "Sequence[TensorSignature]") -> "dict[str, NDArray[np.generic]]":
    """Inputs from a fixed seed: 0 to 1 in floats, every value in bytes; 0 and 1 in wider integers,
    which may be places in a table.

    Dimensions of any size are 1.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    inputs: dict[str, NDArray[np.generic]] = {}
    for tensor in signatures:
        shape = tuple(1 if size < 0 else size for size in tensor.shape)
        if "float" in tensor.dtype:
            inputs[tensor.name] = rng.random(shape, np.float32).astype(tensor.dtype)
        elif tensor.dtype == "bool":
            inputs[tensor.name] = rng.random(shape) < 0.5
        else:
            limits = np.iinfo(tensor.dtype)
            low, high = (limits.min, limits.max) if limits.bits == 8 else (0, 1)
            inputs[tensor.name] = rng.integers(low, high, shape, tensor.dtype, endpoint=True)
    return inputs


def write_array(path: Path, array: "NDArray[Any]") -> None:
    """Write one ``.npy`` file, whole or not at all.

    Raises ModuleError when it cannot be written.
    """
    import numpy as np

    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    write_whole(path, data.getvalue())


def write_outputs(folder: Path, outputs: "Mapping[str, NDArray[Any]]") -> dict[str, str]:
    """Write ``NAME.npy`` for each output; the paths by name.

    Characters that a file name should not have become underscores.  Raises ModuleError when the
    folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModuleError(f"cannot make folder {folder}: {error.strerror}") from None
    paths: dict[str, str] = {}
    for name, array in outputs.items():
        stem = re.sub(r"[^\w.+-]", "_", name)
        while str(folder / f"{stem}.npy") in paths.values():
            stem += "_"
        write_array(folder / f"{stem}.npy", array)
        paths[name] = str(folder / f"{stem}.npy")
    return paths
