"""The compiler: model file to runtime module.

What this gives is imported when it is first asked for: a process that compiles single kernels
needs little of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .driver import compile_model as compile
    from .options import CompileOptions, CpuOptions

__all__ = ["CompileOptions", "CpuOptions", "compile"]

_PLACES = {
    "compile": ("driver", "compile_model"),
    "CompileOptions": ("options", "CompileOptions"),
    "CpuOptions": ("options", "CpuOptions"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    module, attribute = _PLACES[name]
    return getattr(import_module(f".{module}", __name__), attribute)
