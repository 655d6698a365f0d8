"""Tables and listings as HTML, for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["listing", "table"]


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table below its title; integers with separators, fractions with four digits."""
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<p><b>{escape(title)}</b></p><table><tr>{head}</tr>{body}</table>"


def listing(title: str, text: str) -> str:
    """A text as it stands, folded away below its title."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def _shown(cell: object) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
