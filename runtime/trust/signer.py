"""Who says to have signed a module's file; only ``signature`` finds out whether it is true."""

from pathlib import Path

from ..errors import ModuleError
from ..files import read_file
from ..module import TRAILER, trailer_of

__all__ = ["KEY_BYTES", "signer_of"]

KEY_BYTES = 32


def signer_of(path: Path) -> str | None:
    """The public key in a file's signature, in hexadecimal digits; None without a signature.

    Raises ModuleError when the file cannot be read.
    """
    try:
        data, _ = read_file(path)
    except OSError as error:
        raise ModuleError(f"cannot read module {path}: {error.strerror}") from None
    trailer = bytes(trailer_of(data))
    return trailer[len(TRAILER) : len(TRAILER) + KEY_BYTES].hex() or None
