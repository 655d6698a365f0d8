"""Native functions that can be called, however their machine code came about."""

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dovetail import isa

from .errors import MissingCodeError
from .language import Native, Record

__all__ = ["Library", "find_library", "names_of", "sources_digest"]


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


def find_library(functions: Sequence[Native], lanes: int = 0) -> Library:
    """Machine code for this very processor where LLVM is installed, else what the package brought.

    lanes: of the core; 0 when the functions have nothing to do with lanes.
    Raises MissingCodeError when there is neither, and what ``machine_code.build`` raises.
    """
    if find_spec("llvmlite"):
        from .machine_code import build

        return build(functions, lanes)
    from .shipped import load

    found = load(functions, lanes)
    if found is None:
        raise MissingCodeError(
            "the simulator's machine code is made by LLVM, and none for this processor came with "
            "the package; install the extra: pip install 'dovetail[cpu]'"
        )
    return found


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
