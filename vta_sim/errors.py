"""Errors of the simulator."""

from dovetail.isa.errors import DovetailError

__all__ = ["SimulationError"]


class SimulationError(DovetailError):
    """The program can never end, or the simulator was called with something that cannot be run."""
