"""Object files to one image of machine code.

Only what LLVM's position-independent x86-64 code for functions without data of their own consists
of: sections that are not written, and addresses relative to where they are used.  Functions of the
C library are called through the image's table.  Source: System V ABI, chapter 4, and its AMD64
supplement, 4.4 (ELF64 headers, sections, symbols, R_X86_64_PC32 and PLT32).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail.runtime.native.image import IMPORT_BYTES, Image

from ....errors import CompilerError

__all__ = ["link"]

_SYMBOLS, _RELOCATIONS, _NOBITS = 2, 4, 8
"""Types of sections: SHT_SYMTAB, SHT_RELA, SHT_NOBITS."""
_WRITTEN, _LOADED = 1, 2
"""Flags of sections: SHF_WRITE, SHF_ALLOC."""
_PC32, _PLT32 = 2, 4
_SECTION, _SYMBOL, _RELOCATION = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), "<QQq"
_LOCAL = 0
_STUB = b"\xff\x25"
"""``jmp [rip + 32-bit offset]``."""
_STUB_BYTES = 8
_ALIGNMENT = 64


def link(objects: Sequence[bytes], exported: Sequence[str]) -> Image:
    """One image of ``objects``; its symbols are ``exported``.

    Raises CompilerError for a symbol that is missing or is defined twice, and for what an image
    cannot have.
    """
    linker = _Linker()
    parts = [_Object.read(data) for data in objects]
    for part in parts:
        linker.define(part)
    imports = sorted({name for part in parts for name in part.undefined} - linker.symbols.keys())
    missing = sorted(set(exported) - linker.symbols.keys())
    if missing:
        raise CompilerError(f"machine code does not link: it has no symbol {missing[0]}")
    return linker.image(parts, imports, exported)


@dataclass(frozen=True, slots=True)
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
        """Whether the image has it; what tells how to unwind the stack is left out."""
        return bool(self.flags & _LOADED) and self.name != ".eh_frame"


@dataclass(slots=True)
class _Object:
    """An object file: its sections, its symbols as name, section and value, and where they lie."""

    data: bytes
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
        return cls(data, sections, symbols)

    @property
    def undefined(self) -> list[str]:
        """Symbols that others define."""
        return [name for name, section, _, _ in self.symbols if section == 0 and name]


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


@dataclass(slots=True)
class _Linker:
    """Collects sections; ``symbols``: the object that defines each, its section and value."""

    symbols: dict[str, tuple[_Object, int, int]] = field(default_factory=dict)

    def define(self, part: _Object) -> None:
        """Take the symbols that others may use."""
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
            stubs[name] = len(code)
            distance = IMPORT_BYTES * number - (len(code) + 6)
            code += (_STUB + struct.pack("<i", distance)).ljust(_STUB_BYTES, b"\xcc")
        for part in parts:
            for number, section in enumerate(part.sections):
                if not section.is_kept or not section.size:
                    continue
                if section.flags & _WRITTEN or section.kind == _NOBITS:
                    raise CompilerError(f"machine code does not link: it writes to {section.name}")
                code += b"\xcc" * (-len(code) % max(section.alignment, _ALIGNMENT))
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
                if kind not in (_PC32, _PLT32):
                    raise CompilerError(f"machine code does not link: relocation {kind}")
                place = base + offset
                distance = self._target(part, symbol, stubs) + addend - place
                struct.pack_into("<i", code, place, distance)

    def _target(
        self, part: _Object, symbol: tuple[str, int, int, bool], stubs: dict[str, int]
    ) -> int:
        name, section, value, _ = symbol
        if section:
            return part.places[section] + value
        return stubs[name] if name in stubs else self._address(name)
