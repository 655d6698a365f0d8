"""A profile as one HTML page that needs nothing else.

The page's own text, style and scripts are the files of the folder ``web``.
"""

from dovetail.runtime.profile.cpu import CpuProfile
from dovetail.runtime.profile.profile import Profile

from ..web import filled, packed, read
from .data import cpu_data, report_data

__all__ = ["cpu_page", "profile_page"]

BASE = ("data", "view", "tooltip", "chart", "boxes", "begin", "layers_band", "table")
SCRIPTS = {
    "page": (
        *(*BASE, "units", "traffic", "memory", "axes", "roofline", "detail", "compare", "summary"),
        "main",
    ),
    "cpu": (*BASE, "cpu"),
}
"""Scripts of each page, in the order in which they define what others use."""


def profile_page(profile: Profile, against: Profile | None = None) -> str:
    """The page; ``against`` is another run to compare with."""
    title = f"{profile.model} on {profile.config.name}"
    return _page("page", title, packed(report_data(profile, against)))


def cpu_page(profile: CpuProfile) -> str:
    """The page of a model on a CPU."""
    return _page("cpu", f"{profile.model} on {profile.cpu}", packed(cpu_data(profile)))


def _page(name: str, title: str, data: str) -> str:
    scripts = "\n".join(read("profile", f"{each}.js") for each in SCRIPTS[name])
    parts = {"STYLE": read("profile", "style.css"), "DATA": data, "SCRIPT": scripts}
    return filled(read("profile", f"{name}.html"), title, parts)
