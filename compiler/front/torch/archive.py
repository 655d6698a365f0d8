"""The zip archive of a ``.pt2`` file: JSON and raw bytes, never run.

Source: PyTorch 2.15, torch/export/pt2_archive (``constants.py``, ``_package.py``).
"""

import io
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from dovetail.isa.frozen import frozen

from ...errors import ModelError

__all__ = ["Archive", "archive_of", "open_archive"]

HOW = "write it with torch.export.save(torch.export.export(model.eval(), inputs), 'FILE.pt2')"
OLD = "serialized_exported_program.json"
"""An entry of archives by torch 2.7 and older, whose weights are pickles."""

BROKEN = (
    *(BadZipFile, EOFError, LookupError, NotImplementedError),
    *(OSError, RuntimeError, ValueError, struct.error),
)
"""Exceptions of ``zipfile`` and ``json`` for damaged files."""


@frozen
class Archive:
    """A ``.pt2`` file in memory, by the names of its members without the root folder."""

    path: Path
    members: Mapping[str, bytes]

    def error(self, problem: str) -> ModelError:
        """The error for this file."""
        return ModelError(f"{self.path}: {problem}")

    def member(self, name: str) -> bytes:
        """The content of a member.  Raises ModelError when there is none of the name."""
        if name not in self.members:
            raise self.error(f"no member {name!r} in the archive; {HOW}")
        return self.members[name]

    def json(self, name: str) -> object:
        """The content of a member that is JSON.  Raises ModelError when it is not."""
        try:
            found: object = json.loads(self.member(name))
        except (ValueError, RecursionError) as error:
            raise self.error(f"{name!r} is not JSON: {error}") from None
        return found

    def program_name(self) -> str:
        """The member that has the program.  Raises ModelError unless there is exactly one."""
        named = [n for n in self.members if n.startswith("models/") and n.endswith(".json")]
        if len(named) != 1:
            raise self.error(f"{len(named)} programs in the archive, required 1; {HOW}")
        return named[0]


def open_archive(path: Path) -> Archive:
    """Read a file whole; what it says of sizes is bounded by its own.

    Members are stored, as torch writes them: one that is compressed is refused, so that no file
    grows.  Pickles inside (sample inputs, custom objects) are never read.
    Raises ModelError for a file that is not such an archive.
    """
    try:
        with path.open("rb") as file:
            return Archive(path, _members(path, file, path.stat().st_size))
    except FileNotFoundError:
        raise ModelError(f"no model file {path}") from None
    except BROKEN as error:
        raise ModelError(f"{path} is not a .pt2 file ({error}); {HOW}") from None


def archive_of(content: bytes) -> Archive:
    """As ``open_archive``, of a file's content."""
    path = Path("program.pt2")
    return Archive(path, _members(path, io.BytesIO(content), len(content)))


def _members(path: Path, file: BinaryIO, size: int) -> dict[str, bytes]:
    with ZipFile(file) as archive:
        entries = [each for each in archive.infolist() if not each.filename.endswith("/")]
        names = [each.filename for each in entries]
        if any(name.rpartition("/")[2] == OLD for name in names):
            raise ModelError(
                f"{path} is of torch 2.7 or older, whose weights are pickles, which are never "
                f"loaded; with torch 2.8 or newer, {HOW}"
            )
        roots = [name.removesuffix("archive_format") for name in names]
        roots = [root for root, name in zip(roots, names, strict=True) if root != name]
        if len(roots) != 1 or len(set(names)) != len(names):
            pickled = any(name.endswith("data.pkl") for name in names)
            found = "a pickle, which is never loaded" if pickled else "no archive of torch.export"
            raise ModelError(f"{path} is {found}; {HOW}")
        if any(each.compress_type != ZIP_STORED for each in entries):
            raise ModelError(f"{path} has compressed members; required stored ones; {HOW}")
        if sum(each.file_size for each in entries) > size:
            raise ModelError(f"{path} has members that overlap; {HOW}")
        wanted = [n for n in names if n.startswith(roots[0]) and not n.endswith((".pt", ".pkl"))]
        found_members = {name.removeprefix(roots[0]): archive.read(name) for name in wanted}
    kind = found_members.get("archive_format", b"")
    if kind.strip() != b"pt2" or found_members.get("byteorder", b"little") != b"little":
        raise ModelError(f"{path}: required format pt2 and little-endian bytes; {HOW}")
    return found_members
