"""Draws docs/diagrams/*.dot as SVG: ``make diagrams``, which needs Graphviz.

Each picture names the digest of its source, so that a test can tell without Graphviz whether it is
up to date.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "diagrams"


def stamp(source: Path) -> str:
    """The comment by which a picture of ``source`` says what it was drawn from."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return f"<!-- drawn from {source.name}, SHA-256 {digest} -->"


def draw(source: Path) -> None:
    """Write the picture beside ``source``."""
    done = subprocess.run(["dot", "-Tsvg", source], capture_output=True, text=True, check=True)
    svg = re.sub(r"<!--.*?-->\n?", "", done.stdout[done.stdout.index("<svg") :], flags=re.DOTALL)
    source.with_suffix(".svg").write_text(f"{stamp(source)}\n{svg}", encoding="utf-8")


def main() -> int:
    """Draw all of them."""
    if shutil.which("dot") is None:
        print("Graphviz is needed to draw diagrams: apt-get install graphviz", file=sys.stderr)
        return 1
    for source in sorted(FOLDER.glob("*.dot")):
        draw(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
