"""The functions of ``functions.wgsl``, by name, and which of each other they call."""

import re
from functools import cache
from importlib.resources import files

__all__ = ["has_function", "needed"]

BEGIN = re.compile(r"^fn (dv_\w+)", re.MULTILINE)
CALLED = re.compile(r"\bdv_\w+(?=\()")
COMMENT = re.compile(r"^//.*\n", re.MULTILINE)


@cache
def _texts() -> dict[str, str]:
    whole = (files(__package__) / "functions.wgsl").read_text(encoding="utf-8")
    _, *parts = BEGIN.split(COMMENT.sub("", whole))
    return {
        name: f"fn {name}{text.rstrip()}"
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def has_function(name: str) -> bool:
    """True if the file has a function ``dv_`` + ``name``."""
    return f"dv_{name}" in _texts()


@cache
def needed(name: str) -> dict[str, str]:
    """The function ``dv_NAME`` and all that it calls, each after what it calls, by their names."""
    text = _texts()[f"dv_{name}"]
    found: dict[str, str] = {}
    for each in CALLED.findall(text):
        if each != f"dv_{name}":
            found |= needed(each.removeprefix("dv_"))
    return {**found, f"dv_{name}": text}
