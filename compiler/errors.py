"""Errors of the compiler, by who must act."""

from dovetail.isa.errors import DovetailError
from dovetail.runtime.errors import WorkLimitError as RunLimitError

__all__ = [
    "CalibrationError",
    "CompileLimitError",
    "CompilerError",
    "DoesNotFitError",
    "ExploreError",
    "GraphError",
    "ModelError",
    "OptionError",
    "ScheduleError",
    "SpaceError",
    "TargetError",
    "TranslationError",
    "TuneError",
    "UnsupportedOperatorError",
    "WorkLimitError",
]


class CompilerError(DovetailError):
    """A model could not be compiled."""


class ModelError(CompilerError):
    """The model file is broken, or not of a kind this compiler takes."""


class CompileLimitError(CompilerError):
    """Compiling the model takes more work, time or memory than the user allows."""


class OptionError(CompilerError):
    """An option of the compiler, or of the environment, has a value that it cannot have."""


class CalibrationError(CompilerError):
    """The calibration data is missing, or does not fit the model."""


class UnsupportedOperatorError(CompilerError):
    """The model uses an operator, or a variant of one, that there is no code for."""


class GraphError(CompilerError):
    """A graph violates the rules of the graph IR."""


class ScheduleError(CompilerError):
    """A schedule primitive does not apply."""


class TargetError(CompilerError):
    """No such target."""


class TranslationError(CompilerError):
    """A program does not compute what its graph says, or it could not be found out."""


class DoesNotFitError(CompilerError):
    """A layer needs more of a scratchpad than the configuration has."""


class WorkLimitError(CompilerError, RunLimitError):
    """A model's machine code would do more than the user allows."""


class SpaceError(CompilerError):
    """A space of designs has no meaning, or a value that no design can have."""


class TuneError(CompilerError):
    """A search for schedules cannot begin or go on; the message says what is kept."""


class ExploreError(CompilerError):
    """An exploration cannot begin or go on; the message says what is kept."""
