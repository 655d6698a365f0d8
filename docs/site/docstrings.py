"""Docstrings, written to be read in the source, as reStructuredText.

A paragraph of ``name: meaning`` becomes a list of them, one that is indented unevenly stands as it
is, and everything else is text, but for what stands between double backquotes.
"""

import re
from itertools import groupby

__all__ = ["as_markup"]

ENTRY = re.compile(r"(?P<names>[a-z_][a-z0-9_]*(?:, [a-z_][a-z0-9_]*)*): (?P<meaning>\S.*)")
LITERAL = re.compile(r"(``.+?``)", re.DOTALL)
SPECIAL = re.compile(r"([*|`\\]|(?<=\w)_(?!\w))")


def as_markup(lines: list[str]) -> list[str]:
    """The docstring's lines as lines of reStructuredText."""
    found: list[str] = []
    for blank, group in groupby(lines, lambda line: not line.strip()):
        if not blank:
            found += [*_paragraph(list(group)), ""]
    return found


def _paragraph(lines: list[str]) -> list[str]:
    margins = {len(line) - len(line.lstrip()) for line in lines}
    if margins != {0}:
        return ["::", "", *(f"    {line}" for line in lines)]
    first = ENTRY.fullmatch(lines[0])
    if first is None:
        return _escaped(lines)
    fields: list[list[str]] = []
    for line in lines:
        entry = ENTRY.fullmatch(line)
        if entry:
            fields.append([f"**{entry['names'].replace('_', chr(92) + '_')}**", entry["meaning"]])
        else:
            fields[-1].append(line)
    return [
        text
        for name, *meaning in fields
        for text in (name, *(f"    {line}" for line in _escaped(meaning)))
    ]


def _escaped(lines: list[str]) -> list[str]:
    """The text with nothing in it that reStructuredText would take for markup."""
    parts = LITERAL.split("\n".join(lines))
    shown = [part if n % 2 else SPECIAL.sub(r"\\\1", part) for n, part in enumerate(parts)]
    return "".join(shown).split("\n")
