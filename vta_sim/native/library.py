"""Native functions that can be called, however their machine code came about."""

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from dovetail import isa
from dovetail.isa.frozen import frozen

from .language import Native, Record

__all__ = ["Library", "Substitute", "names_of", "sources_digest"]


class Library:
    """Compiled functions."""

    def __init__(self, code: object, addresses: Mapping[Native, int]) -> None:
        """code: what keeps the machine code in memory."""
        self._code, self._addresses = code, addresses

    def call(self, function: Native, *arguments: Record | int) -> int:
        """Call a function that returns an int."""
        values = [
            argument.pointer if isinstance(argument, Record) else argument for argument in arguments
        ]
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(values))
        return int(prototype(self._addresses[function])(*values))


@frozen
class Substitute:
    """A native function that calls of another one mean.

    digest: of its sources.
    """

    declared: Native
    means: Native
    digest: str


def names_of(functions: Sequence[Native]) -> list[str]:
    """Their names in machine code."""
    return [f"{function.__module__}.{function.__name__}" for function in functions]


@cache
def sources_digest() -> str:
    """Hash of all that native code and its formats are made of."""
    digest = hashlib.sha256()
    for folder in (Path(isa.__file__).parent, Path(__file__).parent.parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
