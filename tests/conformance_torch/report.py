"""The table of samples in ``docs/torch.md``."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.conformance.workers import Outcome

__all__ = ["write_report"]

BEGIN, END = "<!-- samples: make conformance-torch -->", "<!-- end of samples -->"


def write_report(path: Path, outcomes: Mapping[str, Outcome]) -> None:
    """Write what passed, by operator, between two marks of a page."""
    rows: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for name, outcome in outcomes.items():
        operator, dtype, _ = name.rsplit(".", 2)
        counts = rows[operator][dtype]
        counts[0] += outcome.reason is None
        counts[1] += 1
    passed = sum(each.reason is None for each in outcomes.values())
    wrong = {name for name, by in rows.items() if any(a < b for a, b in by.values())}
    lines = [
        f"**{passed} of {len(outcomes)} samples of {len(rows)} operators pass.** All of these do: "
        + ", ".join(f"`{name}`" for name in sorted(rows) if name not in wrong) + ".",
        "",
        "| not all of | float32 | int64 |",
        "|---|---|---|",
        *(
            f"| `{name}` | {_count(rows[name], 'float32')} | {_count(rows[name], 'int64')} |"
            for name in sorted(wrong)
        ),
    ]  # fmt: skip
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    table = "\n".join(lines)
    path.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def _count(row: Mapping[str, list[int]], dtype: str) -> str:
    return f"{row[dtype][0]} of {row[dtype][1]}" if dtype in row else ""
