"""``python -m tests.line_coverage report.json``: coverage's report, summed by part of the code."""

import json
import sys
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

APART = ("compiler/cli/profile/", "compiler/cli/explore/", "compiler/benchmark/")
"""Folders that draw pictures for the command line."""
DEPTH = 2
"""Folders that name a part."""
SUMS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def parts(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, list[int]]:
    """Statements, statements reached, branches and branches reached, of each part and of all."""
    found: dict[str, list[int]] = defaultdict(lambda: [0] * len(SUMS))
    for path, each in report["files"].items():
        part = "/".join(path.split("/")[:-1][:DEPTH])
        names = (f"{part} (pictures)",) if path.startswith(APART) else (part, "all but pictures")
        for name in names:
            sums = [each["summary"][key] for key in SUMS]
            found[name] = [a + b for a, b in zip(found[name], sums, strict=True)]
    return dict(sorted(found.items(), key=lambda item: (item[0].startswith("all"), item[0])))


def main(path: Path) -> None:
    """Print the table."""
    table = Table("part", "lines", "reached", "branches", "reached")
    for name, (lines, reached, branches, taken) in parts(json.loads(path.read_text())).items():
        of_lines, of_branches = reached / max(lines, 1), taken / max(branches, 1)
        table.add_row(name, f"{lines}", f"{of_lines:.1%}", f"{branches}", f"{of_branches:.1%}")
    Console().print(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
