"""Operators between two convolutions, each a line of the page: those of ``cases.txt``.

There, ``#`` begins a family; a title that ends in ``~1`` is of a case whose outputs may be one step
of their scale away from ONNX Runtime's; the line below it, in ONNX's text form, reads ``a``, of
shape [1, 8, 6, 6], and makes ``b``.  Names of constants say their shapes: ``c8x4x3x3`` is a random
tensor of [8, 4, 3, 3], ``p8`` one of 8 values above 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CASES", "Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the page.  off: steps of its scale that an output may be away."""

    family: str
    title: str
    body: str
    off: int


def _cases(text: str) -> Iterator[Case]:
    family = title = ""
    for line in text.splitlines():
        if line.startswith("# "):
            family = line[2:]
        elif line.startswith(" "):
            yield Case(family, title.removesuffix(" ~1"), line.strip(), int(title.endswith(" ~1")))
        elif line:
            title = line


CASES = tuple(_cases(Path(__file__).with_name("cases.txt").read_text()))
