"""The compiled module and its file.

A ``.dvt`` file is, in order: the magic bytes, the length of the manifest (8 bytes, little-endian),
the manifest (JSON, UTF-8), the sections, one after the other, and the digest of everything before
it (``files.py``).  The manifest lists each section's name and length; blanks at its end let the
sections begin at a multiple of 64 bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ModuleError
from .files import DIGEST_BYTES, digest, read_file, write_whole
from .result import RunResult

__all__ = ["FORMAT_VERSION", "Module", "TensorSignature"]

MAGIC = b"DOVETAIL"
FORMAT_VERSION = 2
ALIGNMENT = 64
"""Of the first section; what needs it in a later one sees to the lengths before it."""


@dataclass(frozen=True, slots=True)
class TensorSignature:
    """Name, shape and element type (a NumPy name) of an input or output; -1 is any size."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        sizes = ", ".join("any" if size < 0 else str(size) for size in self.shape)
        return f"{self.name}: {self.dtype}[{sizes}]"


@dataclass(frozen=True, slots=True)
class Module:
    """A compiled model.

    target: as given to the compiler, completed ("vta:zynq7020", "cpu").
    details: what the target needs besides bytes; JSON values only.
    sections: bytes by name; of a module for CPUs that was read, parts of the file's content.
    """

    target: str
    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    details: Mapping[str, Any]
    sections: Mapping[str, Any]

    def __repr__(self) -> str:
        given, found = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        size = sum(map(len, self.sections.values()))
        return f"<Module {self.target}: ({given}) -> ({found}), {size:,} bytes>"

    def _repr_html_(self) -> str:
        from .html import table

        layers = self.details.get("layers", ())
        rows = [(each["name"], each["kind"], each["macs"], each["dram_bytes"]) for each in layers]
        return table(repr(self), ("layer", "operators", "MACs", "DRAM bytes"), rows)

    def run(self, inputs: Mapping[str, Any], device: str = "sim") -> RunResult:
        """Run on the device called ``device``.

        inputs: NumPy arrays, or tensors of any other library that speaks DLPack (PyTorch, JAX, ...)
        in the CPU's memory; they are not copied.
        Raises InputError for a wrong name, shape or type, DeviceError when the device is unknown,
        is for something else, or stops with an error.
        """
        if self.target == "cpu":
            from .native.execute import execute_native

            return execute_native(self, inputs, device)
        from .executor import execute

        return execute(self, inputs, device)

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return b"".join(self._content())

    def _content(self) -> list[bytes]:
        """The content of the file, in parts."""
        manifest = {
            "format": FORMAT_VERSION,
            "target": self.target,
            "inputs": [_to_json(tensor) for tensor in self.inputs],
            "outputs": [_to_json(tensor) for tensor in self.outputs],
            "details": dict(self.details),
            "sections": [[name, len(data)] for name, data in self.sections.items()],
        }
        text = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
        text += b" " * (-(len(MAGIC) + 8 + len(text)) % ALIGNMENT)
        head = MAGIC + len(text).to_bytes(8, "little") + text
        parts = [head, *self.sections.values()]
        return [*parts, digest(*parts)]

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        write_whole(path, self._content())

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, where: str = "module") -> "Module":
        """Read the content of a file; ``where`` names it in errors.

        Raises ModuleError when it is not a module, is damaged, or is of another format version.
        """
        return cls._read(memoryview(data), digest(memoryview(data)[:-DIGEST_BYTES]), where)

    @classmethod
    def _read(cls, data: memoryview, found: bytes, where: str) -> "Module":
        """found: the digest of what is before the one in ``data``."""
        smallest = len(MAGIC) + 8 + DIGEST_BYTES
        if len(data) < smallest or data[: len(MAGIC)] != MAGIC:
            raise ModuleError(
                f"{where} is not a dovetail module (found {len(data)} bytes, beginning "
                f"{bytes(data[:8])!r}); make one with: dovetail compile"
            )
        body = data[:-DIGEST_BYTES]
        if found != data[-DIGEST_BYTES:]:
            raise ModuleError(
                f"{where} is damaged: its content does not match its checksum (truncated, or bits "
                "changed), or it is of an older version; compile it again"
            )
        start = len(MAGIC) + 8
        length = int.from_bytes(data[len(MAGIC) : start], "little")
        try:
            manifest = json.loads(bytes(body[start : start + length]))
            return cls._parse(manifest, body[start + length :])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            problem = f"no entry {error}" if isinstance(error, KeyError) else error
            raise ModuleError(f"{where} has a manifest that cannot be read: {problem}") from None

    @classmethod
    def _parse(cls, manifest: dict[str, Any], rest: memoryview) -> "Module":
        if manifest["format"] != FORMAT_VERSION:
            raise ValueError(f"format {manifest['format']}; required {FORMAT_VERSION}")
        sections: dict[str, bytes | memoryview] = {}
        place = 0
        for name, size in manifest["sections"]:
            if name in sections or size < 0:
                raise ValueError(f"section {name!r} twice, or of a size below 0")
            part = rest[place : place + size]
            sections[name] = part if manifest["target"] == "cpu" else bytes(part)
            place += size
        if place != len(rest):
            raise ValueError(f"{len(rest)} bytes of sections; the manifest lists {place}")
        return cls(
            manifest["target"],
            tuple(_from_json(tensor) for tensor in manifest["inputs"]),
            tuple(_from_json(tensor) for tensor in manifest["outputs"]),
            manifest["details"],
            sections,
        )

    @classmethod
    def load(cls, path: Path) -> "Module":
        """Read a file.

        Raises ModuleError as ``from_bytes`` does, and when there is no such file.
        """
        try:
            data, found = read_file(path)
        except OSError as error:
            raise ModuleError(f"cannot read module {path}: {error.strerror}") from None
        return cls._read(data, found, str(path))


def _to_json(tensor: TensorSignature) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}


def _from_json(values: dict[str, Any]) -> TensorSignature:
    return TensorSignature(values["name"], tuple(values["shape"]), values["dtype"])
