"""The command line of the two kinds of records, and their tables in docs/explore.md."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from dovetail.isa.errors import DovetailError

__all__ = ["renew_page"]


def renew_page(
    about: str, name: str, renew: Callable[[int | None], None], table: Callable[[], str]
) -> None:
    """Renew records, then write their table into the page; exits with 1 after an error.

    name: of the table, between ``<!-- name -->`` and ``<!-- end of name -->``.
    renew: makes records, so many at most.  table: Markdown.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--most", type=int, help="Renew so many at most; 0 writes the page alone.")
    asked = parser.parse_args()
    page = Path(__file__).parents[2] / "docs" / "explore.md"
    try:
        renew(asked.most)
    except DovetailError as error:
        sys.exit(f"error: {error}")
    before, rest = page.read_text(encoding="utf-8").split(f"<!-- {name} -->")
    end = f"<!-- end of {name} -->"
    text = f"{before}<!-- {name} -->\n{table()}\n{end}{rest.split(end)[1]}"
    page.write_text(text, encoding="utf-8")
