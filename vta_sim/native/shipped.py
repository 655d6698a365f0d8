"""Machine code that comes with the package: the simulator runs without LLVM.

A file for each kind of processor: a line of JSON, which says what is in it, then code.
"""

import json
import platform
from collections.abc import Sequence
from pathlib import Path

from dovetail.isa.frozen import frozen
from dovetail.runtime.native.host import host_flags
from dovetail.runtime.native.image import Image, LoadedImage

from .language import Native
from .library import Library, names_of, sources_digest

__all__ = ["SUFFIX", "Shipped", "load", "pack"]

SUFFIX = ".code"
FOLDER = Path(__file__).parent


@frozen
class Shipped:
    """Functions by their names, for a core of ``lanes`` lanes, or 0 for any.

    flags: Linux's names of what a processor must have.
    """

    functions: tuple[str, ...]
    lanes: int
    flags: tuple[str, ...]
    image: Image


def pack(entries: Sequence[Shipped]) -> bytes:
    """The content of a file; of entries for the same, the first that a processor can run is run."""
    listed, start = [], 0
    for each in entries:
        listed.append(
            {
                "functions": each.functions,
                "lanes": each.lanes,
                "flags": each.flags,
                "symbols": dict(each.image.symbols),
                "imports": each.image.imports,
                "place": [start, start + len(each.image.code)],
            }
        )
        start += len(each.image.code)
    head = json.dumps({"sources": sources_digest(), "entries": listed})
    return b"".join((head.encode(), b"\n", *(each.image.code for each in entries)))


def load(functions: Sequence[Native], lanes: int, folder: Path = FOLDER) -> Library | None:
    """The code for ``functions`` in ``folder``.

    None when there is none for this processor, or it was made of other sources than these.
    """
    try:
        head, _, code = (folder / f"{platform.machine()}{SUFFIX}").read_bytes().partition(b"\n")
    except OSError:
        return None
    said, names = json.loads(head), names_of(functions)
    if said["sources"] != sources_digest():
        return None
    for each in said["entries"]:
        suits = each["functions"] == names and each["lanes"] == lanes
        if suits and host_flags() >= set(each["flags"]):
            first, end = each["place"]
            image = LoadedImage(Image(code[first:end], each["symbols"], tuple(each["imports"])))
            places = zip(functions, names, strict=True)
            return Library(image, {function: image.address(name) for function, name in places})
    return None
