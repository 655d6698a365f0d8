"""The compiler: model file to runtime module."""

from .driver import compile_model as compile
from .options import CompileOptions

__all__ = ["CompileOptions", "compile"]
