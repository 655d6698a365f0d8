"""The source of all kernels of a program."""

from collections.abc import Mapping

from ..kernels import Kernel
from .dialect import Dialect
from .statements import kernel_text

__all__ = ["source_of"]


def source_of(kernels: Mapping[str, Kernel], dialect: Dialect) -> str:
    """One text: the functions that kernels need, and the kernels by their names.

    dialect: a new one.
    Raises GraphError for what the language cannot say.
    """
    texts = [kernel_text(name, kernel, dialect) for name, kernel in kernels.items()]
    return "\n\n".join((dialect.head(), dialect.text(), *texts)) + "\n"
