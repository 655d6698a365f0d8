"""Jobs for workers that end in every way a measurement can."""

import os
import time
from dataclasses import dataclass

from dovetail.compiler.tune.problem import Measured

__all__ = ["DoesNot"]


@dataclass(frozen=True)
class DoesNot:
    """how: ``end well``, ``raise``, ``return`` (the process crashes) or ``hang``."""

    how: str
    cost: float = 1.0

    def run(self) -> Measured:
        """As ``how`` says."""
        match self.how:
            case "raise":
                raise ValueError("planted")
            case "return":
                os.abort()
            case "hang":
                time.sleep(1000)
        return Measured(self.cost, 1.0)
