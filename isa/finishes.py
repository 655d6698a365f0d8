"""Finishes of VECTOR that other packages bring.  One record says what gateware, simulator,
assembler, manual and compiler need to know.

An accelerator has one of them at most: its configuration's ``finish`` names it, and then an
instruction whose ``finish`` is CUSTOM does it.  A module carries that name, never code.
"""

import hashlib
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .entry_points import ExtensionError, find_outside, names_outside
from .frozen import frozen

__all__ = ["GROUP", "MOST_LATENCY", "SHIFTS", "OwnFinish", "find_finish"]

GROUP = "dovetail.finishes"
"""Entry points of packages that bring finishes: the name is the finish's, the object is it."""

NAME = re.compile(r"[a-z][a-z0-9_]*")
TAKEN = ("none", "requantize", "shift", "custom")
MOST_LATENCY = 6
"""Cycles between the registers of the folded value and of the finished one, at most."""
SHIFTS = 32
"""Values of the field ``shift``."""


@frozen
class OwnFinish:
    """A function of the folded value, which VECTOR applies before it limits and writes the value.

    name: in assembly and configurations: small letters, digits and _.
    text: its meaning in a line, for the manual.
    version: another one wherever results differ; from 1 up.
    meaning: of int32[...] values and a shift from 0 to 31: int32[...], the same shape.  Everything
    else is compared with it.
    native: the same for the simulator, ``(value: Lanes, shift: int) -> Lanes`` in the language of
    ``dovetail.vta_sim.native.language``.
    gateware: the same for one lane, a function of an Amaranth module, a signed(32) and an
    unsigned(5) value of one cycle.  It gives the signed(32) result ``latency`` cycles later, one a
    cycle; registers are in the domain ``sync``.
    latency: 0 to ``MOST_LATENCY``; whatever it is, no instruction takes longer.
    match: the shift with which it computes an int8 table, int8[256] from that of -128 on, exactly;
    None where there is none.  Without ``match`` every shift is tried.

    All its functions stand in one top-level module or package.
    Raises ExtensionError for a name, version or latency that cannot be.
    """

    name: str
    text: str
    meaning: Callable[[NDArray[np.int32], int], NDArray[np.int32]]
    native: Callable[..., Any]
    gateware: Callable[[Any, Any, Any], Any]
    latency: int
    version: int = 1
    match: Callable[[NDArray[np.int8]], int | None] | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name in TAKEN:
            raise ExtensionError(
                f"a finish is called {self.name!r}; required small letters, digits and _, and none "
                f"of {', '.join(TAKEN)}"
            )
        if not 0 <= self.latency <= MOST_LATENCY:
            raise ExtensionError(
                f"finish {self.name}: latency = {self.latency}; required 0 to {MOST_LATENCY}"
            )
        if self.version < 1:
            raise ExtensionError(f"finish {self.name}: version = {self.version}; required 1 and up")

    @property
    def pinned(self) -> str:
        """Name and version, as configurations have them."""
        return f"{self.name}@{self.version}"

    def bytes_of(self, shift: int) -> NDArray[np.int8]:
        """int8[256]: what an int8 value becomes in ACT, from that of -128 on."""
        values = np.arange(-128, 128, dtype=np.int32)
        return np.clip(self.meaning(values, shift), -128, 127).astype(np.int8)

    def shift_of(self, table: NDArray[np.int8]) -> int | None:
        """The shift with which it does to int8 values what ``table``, int8[256], does; None if
        there is none.
        """
        shifts = range(SHIFTS)
        if self.match is not None:
            found = self.match(table)
            shifts = range(0) if found is None else range(found, found + 1)
        return next((each for each in shifts if (self.bytes_of(each) == table).all()), None)

    @property
    def digest(self) -> str:
        """Hash of the sources that its functions stand in: the key of what is built from them."""
        digest = hashlib.sha256(self.pinned.encode())
        for package in sorted({each.__module__.partition(".")[0] for each in self._functions()}):
            file = Path(inspect.getfile(sys.modules[package]))
            whole = file.parent.rglob("*.py") if file.name == "__init__.py" else [file]
            for path in sorted(whole):
                digest.update(path.read_bytes())
        return digest.hexdigest()

    def _functions(self) -> tuple[Callable[..., Any], ...]:
        return self.meaning, self.native, self.gateware


@cache
def find_finish(name: str) -> OwnFinish:
    """The finish called ``name``, or ``name@version``, that an installed package brings.

    Raises ExtensionError when there is none, it is of another version, or something else has its
    name.
    """
    plain, _, version = name.partition("@")
    found = find_outside(GROUP, plain) if NAME.fullmatch(plain) else None
    if found is None:
        there = ", ".join(names_outside(GROUP)) or "none"
        raise ExtensionError(
            f"finish {name!r} is brought by no installed package; there are: {there}; install the "
            f"package that has it (entry points {GROUP!r})"
        )
    finish, brought = found
    if not isinstance(finish, OwnFinish):
        raise ExtensionError(
            f"{GROUP} {plain!r}: {brought} is a {type(finish).__name__}; required an OwnFinish"
        )
    if finish.name != plain:
        raise ExtensionError(
            f"{GROUP} {plain!r}: {brought} is called {finish.name!r}; required the same name"
        )
    if version and version != str(finish.version):
        raise ExtensionError(
            f"finish {name!r}: version {finish.version} is installed, {brought}; install the "
            f"package with version {version}, or compile again for {finish.pinned}"
        )
    return finish
