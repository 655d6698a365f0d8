"""Arrays that come from files and go to files."""

import io
import re
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dovetail.runtime.errors import InputError, ModuleError
from dovetail.runtime.module import Module, write_whole

__all__ = ["random_inputs", "read_inputs", "write_outputs"]

DAMAGED = (ValueError, TypeError, SyntaxError, TokenError)
"""What NumPy raises for headers of ``.npy`` files that are none: it parses them as Python."""


def read_inputs(pairs: tuple[str, ...]) -> dict[str, NDArray[np.generic]]:
    """The arrays of ``NAME=FILE.npy`` pairs, by name.

    Raises InputError for a file that is no array, click.UsageError for a pair that is none.
    """
    inputs: dict[str, NDArray[np.generic]] = {}
    for pair in pairs:
        name, separator, file = pair.partition("=")
        if not separator or not name:
            raise click.UsageError(f"--input {pair!r}; required NAME=FILE.npy")
        if name in inputs:
            raise click.UsageError(f"--input {name!r} is given twice")
        try:
            with open(file, "rb") as source:
                inputs[name] = np.lib.format.read_array(source, allow_pickle=False)
        except (OSError, MemoryError, *DAMAGED) as error:
            raise InputError(f"input {name!r}: cannot read {file} as .npy: {error}") from None
    return inputs


def random_inputs(module: Module) -> dict[str, NDArray[np.generic]]:
    """Inputs for ``module`` from a fixed seed: 0 to 1 in float32, every value in int8 and uint8."""
    rng = np.random.default_rng(0)
    inputs: dict[str, NDArray[np.generic]] = {}
    for tensor in module.inputs:
        if tensor.dtype == "float32":
            inputs[tensor.name] = rng.random(tensor.shape, np.float32)
        else:
            limits = np.iinfo(tensor.dtype)
            inputs[tensor.name] = rng.integers(
                limits.min, limits.max + 1, tensor.shape, dtype=tensor.dtype
            )
    return inputs


def write_outputs(folder: Path, outputs: Mapping[str, NDArray[Any]]) -> dict[str, str]:
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
        data = io.BytesIO()
        np.save(data, array, allow_pickle=False)
        write_whole(folder / f"{stem}.npy", data.getvalue())
        paths[name] = str(folder / f"{stem}.npy")
    return paths
