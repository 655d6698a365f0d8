"""Where the machine code of native functions comes from."""

from collections.abc import Sequence
from importlib.util import find_spec

from .errors import MissingCodeError
from .language import Native
from .library import Library

__all__ = ["find_library"]


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
