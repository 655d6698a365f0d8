"""Jobs for workers that end in every way a measurement can."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from dovetail.compiler.tune.problem import Measured

__all__ = ["DoesNot"]


@dataclass(frozen=True)
class DoesNot:
    """how: ``well``, ``raise``, ``return`` (the process crashes), ``hang``, or ``kill``: the first
    time, until ``mark`` exists, the process that waits for this one dies.
    """

    how: str
    cost: float = 1.0
    mark: str = ""

    def run(self) -> Measured:
        """As ``how`` says."""
        match self.how:
            case "raise":
                raise ValueError("planted")
            case "return":
                os.abort()
            case "hang":
                time.sleep(1000)
            case "kill" if not Path(self.mark).exists():
                Path(self.mark).touch()
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(1000)
        return Measured(self.cost, 1.0)
