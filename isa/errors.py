"""The root of Dovetail's error tree, and the errors of the instruction set.

Owns the base class every package derives from, so that a caller can catch all of Dovetail's errors
by one name.  Each message says what was found, what was required, where, and what to try.
"""

__all__ = [
    "AssemblyError",
    "ConfigError",
    "DovetailError",
    "EncodingError",
    "IsaError",
    "ProgramError",
]


class DovetailError(Exception):
    """Any error that Dovetail reports to its user on purpose."""


class IsaError(DovetailError):
    """An error about instructions, programs or configurations."""


class ConfigError(IsaError):
    """A hardware configuration contradicts itself or cannot be built."""


class EncodingError(IsaError):
    """A value does not fit its field, or a word is not a legal instruction."""


class AssemblyError(IsaError):
    """Assembly text that cannot be read; the message names the line."""


class ProgramError(IsaError):
    """A legal instruction that this configuration or memory cannot execute; names its index."""
