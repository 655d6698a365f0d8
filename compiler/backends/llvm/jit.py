"""Machine code into this process."""

import itertools
from collections.abc import Mapping, Sequence
from functools import cache

import llvmlite.binding as llvm

from ...errors import CompilerError
from .target import host_cpu, target_machine

__all__ = ["LoadedCode"]

_names = itertools.count()


class LoadedCode:
    """Object files linked together in memory, until the last reference to this goes."""

    def __init__(
        self,
        objects: Sequence[bytes],
        symbols: Sequence[str],
        imports: Mapping[str, int] | None = None,
    ) -> None:
        """symbols: that have an address.  imports: addresses of what the objects call.

        Raises CompilerError for a symbol that is missing or is defined twice.
        """
        library = llvm.JITLibraryBuilder()
        for data in objects:
            library.add_object_img(data)
        for symbol in symbols:
            library.export_symbol(symbol)
        for symbol, address in (imports or {}).items():
            library.import_symbol(symbol, address)
        library.add_current_process()
        try:
            self._tracker = library.link(_linker(), f"dovetail{next(_names)}")
        except RuntimeError as error:
            raise CompilerError(f"machine code does not link: {error}") from error

    def address(self, symbol: str) -> int:
        """Of an exported symbol."""
        return int(self._tracker[symbol])


@cache
def _linker() -> llvm.LLJIT:
    return llvm.create_lljit_compiler(target_machine(host_cpu()), use_jit_link=True)
