"""A profile as one HTML page that needs nothing else.

The page's own text, style and scripts are the files of the folder ``web``.
"""

from html import escape
from importlib.resources import files

from dovetail.runtime.profile.profile import Profile

from .data import packed, report_data

__all__ = ["profile_page"]

SCRIPTS = (
    *("data", "view", "tooltip", "chart", "boxes", "layers_band", "units", "traffic", "memory"),
    *("roofline", "table", "detail", "compare", "summary", "main"),
)
"""In the order in which they define what others use."""


def profile_page(profile: Profile, against: Profile | None = None) -> str:
    """The page; ``against`` is another run to stand beside it."""
    return whole_page(
        f"{profile.model} on {profile.config.name}", packed(report_data(profile, against))
    )


def whole_page(title: str, data: str) -> str:
    """The page of that title; ``data``: as ``packed`` gives it."""
    folder = files(__package__) / "web"
    scripts = "\n".join((folder / f"{name}.js").read_text() for name in SCRIPTS)
    parts = {
        "TITLE": escape(title),
        "STYLE": (folder / "style.css").read_text(),
        "DATA": data,
        "SCRIPT": scripts,
    }
    text = (folder / "page.html").read_text()
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text
