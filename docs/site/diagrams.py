"""Draws docs/diagrams/*.dot as SVG: ``make diagrams``, which needs Graphviz.

Each picture names the digest of its source, so that a test can tell without Graphviz whether it is
up to date.  Colours follow the reader's colour scheme, as an image and inside a page.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "diagrams"
STYLE = """<style>
svg.diagram { color-scheme: light dark }
svg.diagram text { fill: light-dark(#1b2733, #e4e8ed); font-family: Helvetica, Arial, sans-serif }
svg.diagram .edge text { fill: light-dark(#4a586a, #aab4c0) }
svg.diagram .node *:not(text) { stroke: light-dark(#5b6b7f, #8594a6) }
svg.diagram .node path, svg.diagram .node polygon { fill: light-dark(#eef2f7, #26303b) }
svg.diagram .unit path, svg.diagram .unit polygon { fill: light-dark(#e0f1e4, #1f3a2a) }
svg.diagram .memory path, svg.diagram .memory polygon { fill: light-dark(#fdf0d5, #41361d) }
svg.diagram .outside path, svg.diagram .outside polygon { fill: light-dark(#e7e3f5, #322c4a) }
svg.diagram .cluster path { fill: none; stroke: light-dark(#b3bfcc, #4b5866) }
svg.diagram .edge path { fill: none }
svg.diagram .edge path, svg.diagram .edge polygon { stroke: light-dark(#66758a, #8b99ab) }
svg.diagram .edge polygon { fill: light-dark(#66758a, #8b99ab) }
</style>"""


def stamp(source: Path) -> str:
    """The comment by which a picture of ``source`` says what it was drawn from."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return f"<!-- drawn from {source.name}, SHA-256 {digest} -->"


def draw(source: Path) -> None:
    """Write the picture beside ``source``."""
    done = subprocess.run(["dot", "-Tsvg", source], capture_output=True, text=True, check=True)
    svg = done.stdout[done.stdout.index("<svg") :]
    # What the style says, names that would repeat in a page, and hints under the pointer.
    svg = re.sub(r"<!--.*?-->\n?|<title>.*?</title>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (id|fill|stroke|font-family)="[^"]*"', "", svg)
    svg = re.sub(r"<svg [^>]*?(viewBox=\"\S+ \S+ (\S+) (\S+)\")[^>]*>", _opening, svg, count=1)
    source.with_suffix(".svg").write_text(f"{stamp(source)}\n{svg}", encoding="utf-8")


def _opening(found: re.Match[str]) -> str:
    size = f'width="{found[2]}" height="{found[3]}" {found[1]}'
    return f'<svg class="diagram" xmlns="http://www.w3.org/2000/svg" {size}>\n{STYLE}'


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
