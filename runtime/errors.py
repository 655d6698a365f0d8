"""Errors of the runtime, by who must act."""

from dovetail.isa.errors import DovetailError

__all__ = [
    "DeviceError",
    "InputError",
    "ModuleError",
    "RunError",
    "WorkLimitError",
    "WorkspaceError",
]


class RunError(DovetailError):
    """A module could not be run."""


class ModuleError(RunError):
    """A module file is broken, or made for something else."""


class InputError(RunError):
    """An input tensor is not what the model takes."""


class DeviceError(RunError):
    """A device does not exist, or it stopped with an error."""


class WorkLimitError(RunError):
    """A run does more than the user allows."""


class WorkspaceError(RunError):
    """There is no memory for what machine code works on."""
