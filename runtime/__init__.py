"""Modules, the devices that run them, and what the host does around a launch.

What this gives is imported when it is first asked for: a device needs little of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .module import Module
    from .session import Session, run

__all__ = ["Module", "Session", "run"]

_PLACES = {"Module": "module", "Session": "session", "run": "session"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)
