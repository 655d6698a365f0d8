"""Errors of the translation to machine code."""

from dovetail.isa.errors import DovetailError

__all__ = ["TranslationError"]


class TranslationError(DovetailError):
    """A native function uses something that the native language has not."""
