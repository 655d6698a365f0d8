"""``docs/conformance.md``: what passes by family, and why the rest does not."""

from collections.abc import Mapping
from pathlib import Path

from .backend import Case
from .workers import Outcome

__all__ = ["write_report"]


def write_report(path: Path, cases: Mapping[str, Case], outcomes: Mapping[str, Outcome]) -> None:
    """Write the page."""
    del cases
    failed = {name: each for name, each in sorted(outcomes.items()) if each.reason}
    lines = [f"{len(outcomes) - len(failed)} of {len(outcomes)}"]
    lines += [f"{name}: {each.reason}" for name, each in failed.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
