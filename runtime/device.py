"""What a device that runs accelerator programs does."""

from typing import Protocol

from dovetail.isa.launch import Launch, LaunchResult

__all__ = ["Device"]


class Device(Protocol):
    """Runs accelerator programs; satisfied structurally."""

    def run(self, launch: Launch) -> LaunchResult:
        """Run to the end, or to an error; the launch is not changed."""
        ...
