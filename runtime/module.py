"""The compiled module and its file.

A ``.dvt`` file is, in order: the magic bytes, the length of the manifest (8 bytes, little-endian),
the manifest (JSON, UTF-8), the sections, one after the other, and the digest of everything before
it (``files.py``).  The manifest lists the length of each section; each begins at a multiple of 64
bytes, with blanks before the first and zeros before the others.  A signature may come before the
digest.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dovetail.isa.frozen import frozen

from .errors import ModuleError
from .files import DIGEST_BYTES, digest, read_file, write_whole
from .manifest import Content, read_value, write_value
from .parts import PARTS, Part, part_class
from .tensors import TensorSignature

__all__ = ["FORMAT_VERSION", "MAGIC", "TRAILER", "Module", "Placement", "trailer_of"]

MAGIC = b"DOVETAIL"
FORMAT_VERSION = 9
TRAILER = b"DOVESIGN"
"""Begins a signature (``trust/signature.py``), which may stand between sections and checksum."""
TRAILER_BYTES = len(TRAILER) + 32 + 64
ALIGNMENT = 64
"""Sections begin at multiples of this many bytes."""


class Placement(NamedTuple):
    """Where a node of the model runs, and why there; macs: the products that it asks for."""

    node: str
    operator: str
    where: str
    reason: str
    macs: int = 0


@frozen
class Module:
    """A compiled model: parts that run in order and pass tensors to each other by name.

    target: as given to the compiler, completed ("vta:zynq7020", "cpu").
    placement: where each node of the model runs, if that is not all in one part.
    """

    target: str
    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    parts: tuple[Part, ...]
    placement: tuple[Placement, ...] = ()

    @classmethod
    def of_part(cls, part: Part) -> "Module":
        """The module that is one part alone."""
        return cls(part.target, part.inputs, part.outputs, (part,))

    def __post_init__(self) -> None:
        """Raises ModuleError when there is no part, or a part or the module lacks a tensor or has
        two of one name.
        """
        if not self.parts:
            raise ModuleError("a module without parts")
        known = _named(self.inputs, "the inputs")
        for number, part in enumerate(self.parts):
            for tensor in part.inputs:
                _require(known, tensor, f"part {number}")
            known |= _named(part.outputs, f"part {number}")
        for tensor in _named(self.outputs, "the outputs").values():
            _require(known, tensor, "the outputs")

    def __repr__(self) -> str:
        given, found = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        sections: list[Content] = []
        write_value(self.parts, sections)
        size = sum(map(len, sections))
        return f"<Module {self.target}: ({given}) -> ({found}), {size:,} bytes>"

    def _repr_html_(self) -> str:
        from .html import table

        layers = [layer for part in self.parts for layer in getattr(part, "layers", ())]
        rows = [(each.name, each.kind, each.macs, each.dram_bytes) for each in layers]
        return table(repr(self), ("layer", "operators", "MACs", "DRAM bytes"), rows)

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return b"".join(self._content())

    def _content(self) -> list[Content]:
        """The content of the file, in pieces."""
        sections: list[Content] = []
        parts = [(part.kind, write_value(part, sections)) for part in self.parts]
        values = {
            "format": FORMAT_VERSION,
            "target": self.target,
            "inputs": write_value(self.inputs, sections),
            "outputs": write_value(self.outputs, sections),
            "parts": parts,
            "placement": self.placement,
            "sections": [len(each) for each in sections],
        }
        text = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
        text += b" " * (-(len(MAGIC) + 8 + len(text)) % ALIGNMENT)
        pieces: list[Content] = [MAGIC + len(text).to_bytes(8, "little") + text]
        for each in sections:
            pieces += [each, bytes(-len(each) % ALIGNMENT)]
        return [*pieces, digest(*pieces)]

    def save(self, path: Path | str) -> None:
        """Write the file, whole or not at all."""
        write_whole(Path(path), self._content())

    @classmethod
    def from_bytes(
        cls,
        data: bytes | memoryview,
        where: str = "module",
        kinds: Mapping[str, type[Part]] | None = None,
    ) -> "Module":
        """Read the content of a file; ``where`` names it in errors.

        kinds: of parts, besides those of ``PARTS``.
        Raises ModuleError when it is not a module, is damaged, or is of another format version.
        """
        view = memoryview(data)
        return cls._read(view, digest(view[:-DIGEST_BYTES]), where, kinds or {})

    @classmethod
    def load(cls, path: Path | str, kinds: Mapping[str, type[Part]] | None = None) -> "Module":
        """Read a file.

        Raises ModuleError as ``from_bytes`` does, and when there is no such file.
        """
        try:
            data, found = read_file(Path(path))
        except OSError as error:
            raise ModuleError(f"cannot read module {path}: {error.strerror}") from None
        return cls._read(data, found, str(path), kinds or {})

    @classmethod
    def _read(
        cls, data: memoryview, found: bytes, where: str, kinds: Mapping[str, type[Part]]
    ) -> "Module":
        """found: the digest of what is before the one in ``data``."""
        smallest = len(MAGIC) + 8 + DIGEST_BYTES
        if len(data) < smallest or data[: len(MAGIC)] != MAGIC:
            raise ModuleError(
                f"{where} is not a dovetail module (found {len(data)} bytes, beginning "
                f"{bytes(data[:8])!r}); make one with: dovetail compile"
            )
        start = len(MAGIC) + 8
        end = start + int.from_bytes(data[len(MAGIC) : start], "little")
        manifest = _manifest(data[start:end], found == data[-DIGEST_BYTES:], where)
        read: dict[str, Any] = {
            name: read_value(kind, manifest[name], where, path=name)
            for name, kind in ENTRIES.items()
        }
        last = len(data) - DIGEST_BYTES - len(trailer_of(data))
        sections = _cut(read["sections"], data[end:last], where)
        parts = []
        for number, (kind, content) in enumerate(read["parts"]):
            if kind not in PARTS and kind not in kinds:
                raise ModuleError(
                    f"{where} has a part of an unknown kind {kind!r}; there are: "
                    f"{', '.join((*PARTS, *kinds))}"
                )
            chosen = kinds[kind] if kind in kinds else part_class(kind)
            parts.append(read_value(chosen, content, where, sections, f"parts[{number}]"))
        try:
            return cls(
                read["target"], read["inputs"], read["outputs"], tuple(parts), read["placement"]
            )
        except ModuleError as error:
            raise ModuleError(f"{where}: {error}; compile it again") from None


def trailer_of(data: memoryview | bytes) -> memoryview | bytes:
    """The signature in the content of a file; nothing where there is none."""
    found = data[-DIGEST_BYTES - TRAILER_BYTES : -DIGEST_BYTES]
    return found if found[: len(TRAILER)] == TRAILER else found[:0]


ENTRIES: dict[str, Any] = {
    "format": int,
    "target": str,
    "inputs": tuple[TensorSignature, ...],
    "outputs": tuple[TensorSignature, ...],
    "parts": tuple[tuple[str, object], ...],
    "placement": tuple[Placement, ...],
    "sections": tuple[int, ...],
}
"""Types of the manifest's entries; a part is its kind and its fields, a section its length."""


def _named(tensors: tuple[TensorSignature, ...], where: str) -> dict[str, TensorSignature]:
    """By name.  Raises ModuleError for two of one name."""
    found = {tensor.name: tensor for tensor in tensors}
    if len(found) < len(tensors):
        raise ModuleError(f"{where}: two tensors of one name among {', '.join(found)}")
    return found


def _require(known: Mapping[str, TensorSignature], tensor: TensorSignature, where: str) -> None:
    found = known.get(tensor.name)
    if found is None:
        raise ModuleError(f"{where}: no tensor {tensor.name!r}; there are: {', '.join(known)}")
    fits = len(found.shape) == len(tensor.shape) and all(
        mine == other or -1 in (mine, other)
        for mine, other in zip(found.shape, tensor.shape, strict=True)
    )
    if not fits or found.dtype != tensor.dtype:
        raise ModuleError(f"{where}: found tensor {found}, required {tensor}")


def _manifest(text: memoryview, is_whole: bool, where: str) -> dict[str, object]:
    """The manifest of a file of this format, whose digest is right if it ``is_whole``."""
    try:
        found = json.loads(bytes(text))
        problem = f"required are the entries {', '.join(ENTRIES)}"
    except (ValueError, RecursionError) as error:
        found, problem = None, str(error)
    version = found.get("format") if isinstance(found, dict) else None
    if type(version) is int and version != FORMAT_VERSION:
        raise ModuleError(
            f"{where} is a module of format {version}; this version reads format "
            f"{FORMAT_VERSION}: compile the model again"
        )
    if not is_whole:
        raise ModuleError(
            f"{where} is damaged: its content does not match its checksum (truncated, or bits "
            "changed); compile it again"
        )
    if not isinstance(found, dict) or type(version) is not int or {*found} != {*ENTRIES}:
        raise ModuleError(f"{where} has a manifest that cannot be read: {problem}")
    return found


def _cut(lengths: tuple[int, ...], rest: memoryview, where: str) -> list[memoryview]:
    """The sections of these lengths."""
    found = []
    place = 0
    for length in lengths:
        if length < 0:
            raise ModuleError(f"{where} has a section of {length} bytes; compile it again")
        found.append(rest[place : place + length])
        place += length + -length % ALIGNMENT
    if place != len(rest):
        raise ModuleError(
            f"{where} has {len(rest)} bytes of sections, the manifest lists {place}; "
            "compile it again"
        )
    return found
