"""docs/proofs.md: what is proved, of what, for how long, and what is not."""

from pathlib import Path

from .run import Proved

__all__ = ["HOLES", "INTRODUCTION", "write_report"]

INTRODUCTION = ""
HOLES = ""


def write_report(results: list[Proved], path: Path, solver: str) -> None:
    """Write the page."""
