"""Writes the table of docs/boards.md from the records.

``python -m dovetail.bitstreams.document``
"""

from pathlib import Path

from .record import Record, read_record

__all__ = ["read_records", "table", "write_page"]

BEGIN, END = "<!-- records -->", "<!-- end of records -->"


def read_records(folder: Path) -> list[Record]:
    """The records ``*/manifest.json`` below ``folder``, by board."""
    return [read_record(path) for path in sorted(folder.glob("*/manifest.json"))]


def table(records: list[Record]) -> str:
    """A Markdown table, one line a board."""
    if not records:
        return "No bitstream is recorded yet."
    rows = [record.row() for record in records]
    lines = [f"| {' | '.join(rows[0])} |", f"|{'---|' * len(rows[0])}"]
    lines += [f"| {' | '.join(row.values())} |" for row in rows]
    return "\n".join(lines)


def write_page(page: str, records: list[Record]) -> str:
    """``page`` with its table made again."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table(records)}\n{END}{after}"


def main() -> None:
    """Rewrite docs/boards.md of the working tree this runs in."""
    path = Path("docs/boards.md")
    path.write_text(write_page(path.read_text(), read_records(Path("bitstreams"))))


if __name__ == "__main__":
    main()
