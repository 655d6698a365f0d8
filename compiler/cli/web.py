"""Pages that need nothing else: a template with its style, scripts and data in it."""

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

__all__ = ["filled", "packed", "read"]


def read(package: str, name: str) -> str:
    """A file of the folder ``web`` in a neighbouring package."""
    return (files(f"{__package__}.{package}") / "web" / name).read_text(encoding="utf-8")


def packed(data: Mapping[str, Any]) -> str:
    """As compressed JSON (zlib, RFC 1950) in base64."""
    text = json.dumps(data, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def filled(template: str, title: str, parts: Mapping[str, str]) -> str:
    """``template`` with the title and ``parts`` in place of their marks, ``{{NAME}}``."""
    for mark, part in {"TITLE": escape(title), **parts}.items():
        template = template.replace(f"{{{{{mark}}}}}", part)
    return template
