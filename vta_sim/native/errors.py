"""Errors of the translation to machine code."""

from dovetail.isa.errors import DovetailError

__all__ = ["MissingCodeError", "TranslationError"]


class TranslationError(DovetailError):
    """A native function uses something that the native language has not."""


class MissingCodeError(DovetailError):
    """There is no machine code of the simulator for this processor, and nothing to make it."""
