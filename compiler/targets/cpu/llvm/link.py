"""Object files to one image of machine code.

Only what LLVM's position-independent code for functions without data of their own consists of:
sections that are not written, and addresses relative to where they are used.  Functions of the
C library are called through the image's table.  Source: System V ABI, chapter 4 (ELF64 headers,
sections, symbols); types of relocations are in the record of the kind of CPU.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail.isa.frozen import frozen
from dovetail.runtime.native.image import IMPORT_BYTES, Image

from ....errors import CompilerError
from ..arch.arch import Arch

__all__ = ["link"]

_SYMBOLS, _RELOCATIONS, _NOBITS = 2, 4, 8
"""Types of sections: SHT_SYMTAB, SHT_RELA, SHT_NOBITS."""
_WRITTEN, _LOADED = 1, 2
"""Flags of sections: SHF_WRITE, SHF_ALLOC."""
_SECTION, _SYMBOL, _RELOCATION = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), "<QQq"
_LOCAL = 0
_PAGE_BITS = 12
_ALIGNMENT = 64


def link(arch: Arch, objects: Sequence[bytes], exported: Sequence[str]) -> Image:
    """One image of ``objects``; its symbols are ``exported``.

    Raises CompilerError for a symbol that is missing or is defined twice, and for what an image
    cannot have.
    """
    linker = _Linker(arch)
    parts = [_Object.read(data) for data in objects]
    for part in parts:
        linker.define(part)
    imports = sorted({name for part in parts for name in part.undefined} - linker.symbols.keys())
    missing = sorted(set(exported) - linker.symbols.keys())
    if missing:
        raise CompilerError(f"machine code does not link: it has no symbol {missing[0]}")
    return linker.image(parts, imports, exported)


@frozen
class _Section:
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    name: str

    @property
    def is_kept(self) -> bool:
        """True if the image has it; what tells how to unwind the stack is left out."""
        return bool(self.flags & _LOADED) and self.name != ".eh_frame"


@dataclass(slots=True)
class _Object:
    """An object file: its sections, its symbols as name, section and value, and their places."""

    data: bytes
    machine: int
    sections: list[_Section]
    symbols: list[tuple[str, int, int, bool]]
    places: dict[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, data: bytes) -> "_Object":
        start, size, count, names = (
            *struct.unpack_from("<Q", data, 40),
            *struct.unpack_from("<HHH", data, 58),
        )
        headers = [_SECTION.unpack_from(data, start + size * n) for n in range(count)]
        strings = headers[names][4]
        sections = [
            _Section(h[1], h[2], h[4], h[5], h[6], h[7], h[8], _text(data, strings + h[0]))
            for h in headers
        ]
        table = next(each for each in sections if each.kind == _SYMBOLS)
        strings = sections[table.link].offset
        symbols = []
        for n in range(table.size // _SYMBOL.size):
            name, info, _, section, value, _ = _SYMBOL.unpack_from(
                data, table.offset + _SYMBOL.size * n
            )
            symbols.append((_text(data, strings + name), section, value, info >> 4 == _LOCAL))
        return cls(data, struct.unpack_from("<H", data, 18)[0], sections, symbols)

    @property
    def undefined(self) -> list[str]:
        """Symbols that others define."""
        return [name for name, section, _, _ in self.symbols if section == 0 and name]


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


@dataclass(slots=True)
class _Linker:
    """Collects sections; ``symbols``: the object that defines each, its section and value."""

    arch: Arch
    symbols: dict[str, tuple[_Object, int, int]] = field(default_factory=dict)

    def define(self, part: _Object) -> None:
        """Take the symbols that others may use."""
        if part.machine != self.arch.machine:
            raise CompilerError(
                f"machine code does not link: an object is for machine {part.machine}, required "
                f"{self.arch.machine} ({self.arch.name})"
            )
        for name, section, value, local in part.symbols:
            if section and name and not local:
                if name in self.symbols:
                    raise CompilerError(f"machine code does not link: {name} is defined twice")
                self.symbols[name] = part, section, value

    def image(
        self, parts: Sequence[_Object], imports: Sequence[str], exported: Sequence[str]
    ) -> Image:
        """The table of imports, a stub for each, then the sections of all objects."""
        code = bytearray(IMPORT_BYTES * len(imports))
        stubs = {}
        for number, name in enumerate(imports):
            stubs[name] = start = len(code)
            code += self.arch.stub.code
            for offset, kind, addend in self.arch.stub.relocations:
                self._patch(code, kind, start + offset, IMPORT_BYTES * number + addend)
        for part in parts:
            for number, section in enumerate(part.sections):
                if not section.is_kept or not section.size:
                    continue
                if section.flags & _WRITTEN or section.kind == _NOBITS:
                    raise CompilerError(f"machine code does not link: it writes to {section.name}")
                code += self.arch.filler * (-len(code) % max(section.alignment, _ALIGNMENT))
                part.places[number] = len(code)
                code += part.data[section.offset : section.offset + section.size]
        for part in parts:
            self._relocate(part, code, stubs)
        found = {name: self._address(name) for name in exported}
        return Image(bytes(code), found, tuple(imports))

    def _address(self, name: str) -> int:
        part, section, value = self.symbols[name]
        return part.places[section] + value

    def _relocate(self, part: _Object, code: bytearray, stubs: dict[str, int]) -> None:
        size = struct.calcsize(_RELOCATION)
        for section in part.sections:
            if section.kind != _RELOCATIONS or not part.sections[section.info].is_kept:
                continue
            base = part.places[section.info]
            for n in range(section.size // size):
                offset, info, addend = struct.unpack_from(
                    _RELOCATION, part.data, section.offset + size * n
                )
                kind, symbol = info & 0xFFFFFFFF, part.symbols[info >> 32]
                self._patch(code, kind, base + offset, self._target(part, symbol, stubs) + addend)

    def _patch(self, code: bytearray, kind: int, place: int, address: int) -> None:
        """Write an address into the 32 bits at ``place``.  Images begin with a page."""
        relocation = self.arch.relocations.get(kind)
        if relocation is None:
            raise CompilerError(f"machine code does not link: relocation {kind}")
        if relocation.pages:
            value = ((address >> _PAGE_BITS) - (place >> _PAGE_BITS)) << _PAGE_BITS
        elif relocation.low:
            value = address & ((1 << _PAGE_BITS) - 1)
        else:
            value = address - place
        value >>= relocation.shift
        width = sum(bits for bits, _ in relocation.fields)
        low, high = (0, 1 << width) if relocation.low else (-1 << width - 1, 1 << width - 1)
        if not low <= value < high:
            raise CompilerError(f"machine code does not link: {address - place} bytes are too far")
        (word,) = struct.unpack_from("<I", code, place)
        for bits, position in relocation.fields:
            mask = (1 << bits) - 1
            word = word & ~(mask << position) | (value & mask) << position
            value >>= bits
        struct.pack_into("<I", code, place, word)

    def _target(
        self, part: _Object, symbol: tuple[str, int, int, bool], stubs: dict[str, int]
    ) -> int:
        name, section, value, _ = symbol
        if section:
            return part.places[section] + value
        return stubs[name] if name in stubs else self._address(name)
