"""Errors of the runtime, by who must act."""

from dovetail.isa.errors import DovetailError

__all__ = ["DeviceError", "InputError", "ModuleError", "RuntimeFault"]


class RuntimeFault(DovetailError):
    """A module could not be run."""


class ModuleError(RuntimeFault):
    """A module file is broken, or made for something else."""


class InputError(RuntimeFault):
    """An input tensor is not what the model takes."""


class DeviceError(RuntimeFault):
    """A device does not exist, or it stopped with an error."""
