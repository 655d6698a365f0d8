"""Diagrams inside pages, where they follow the page's colour scheme, whatever the browser's is."""

from html import escape
from pathlib import Path

from docutils import nodes

__all__ = ["inline_diagrams"]

FOLLOWS_BROWSER = "svg.diagram { color-scheme: light dark }\n"


def inline_diagrams(doctree: nodes.document, folder: Path) -> None:
    """Put the SVG in place of each image of ``folder``."""
    for image in list(doctree.findall(nodes.image)):
        path = folder / Path(image["uri"]).name
        if path.suffix == ".svg" and path.is_file() and path.parent.name in image["uri"]:
            svg = path.read_text(encoding="utf-8").partition("\n")[2]
            label = f'role="img" aria-label="{escape(image.get("alt", ""))}"'
            svg = svg.replace(FOLLOWS_BROWSER, "").replace("<svg ", f"<svg {label} ", 1)
            image.replace_self(
                nodes.raw("", f'<figure class="diagram">{svg}</figure>', format="html")
            )
