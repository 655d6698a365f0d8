"""Where the machine code of native functions comes from."""

from collections.abc import Sequence
from importlib.util import find_spec

from .errors import MissingCodeError
from .language import Native
from .library import Library, Substitute

__all__ = ["find_library"]


def find_library(
    functions: Sequence[Native], lanes: int = 0, own: Substitute | None = None
) -> Library:
    """Machine code for this very processor where LLVM is installed, else what the package brought.

    lanes: of the core; 0 when the functions have nothing to do with lanes.  own: a function of
    another package, which needs LLVM.
    Raises MissingCodeError when there is neither, and what ``machine_code.build`` raises.
    """
    if find_spec("llvmlite"):
        from .machine_code import build

        return build(functions, lanes, own=own)
    from .shipped import load

    found = None if own else load(functions, lanes)
    if found is None:
        lacks = "a finish of your own" if own else "this processor"
        raise MissingCodeError(
            f"the simulator's machine code is made by LLVM, and none for {lacks} came with "
            "the package; install the extra: pip install 'dovetail[cpu]'"
        )
    return found
