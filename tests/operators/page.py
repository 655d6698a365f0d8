"""The generated part of ``docs/operators.md``."""

from collections.abc import Mapping
from pathlib import Path

from .cases import CASES, Case
from .model import Outcome

__all__ = ["PAGE", "TARGET", "lines_of", "row", "write_page"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"
TARGET = "vta:zynq7020"
BEGIN = "<!-- What follows is written by `make operators`. -->\n"
HEADING = "| between two convolutions | where | bytes |"


def row(case: Case, outcome: Outcome) -> str:
    """A case as a line of its table."""
    where = f"CPU: {'; '.join(outcome.reasons)}" if outcome.reasons else "accelerator"
    exact = "within 1 step" if case.off else "equal"
    return f"| {case.title} | {where} | {exact} |"


def lines_of(text: str) -> set[str]:
    """The lines of the page's generated tables."""
    return set(text.partition(BEGIN)[2].splitlines())


def write_page(outcomes: Mapping[str, Outcome]) -> None:
    """Write the tables behind the part of the page that people write.

    outcomes: by the titles of the cases.
    """
    parts = [PAGE.read_text().partition(BEGIN)[0] + BEGIN]
    for family in dict.fromkeys(case.family for case in CASES):
        parts.append(
            f"\n## {family}\n\n| between two convolutions | where | bytes |\n|---|---|---|\n"
        )
        cases = (case for case in CASES if case.family == family)
        parts += [row(case, outcomes[case.title]) + "\n" for case in cases]
    PAGE.write_text("".join(parts))
