"""Names of one function's loops, with the CPU that it is for and what was decided about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..define import operand
from ..loops.ir import Stmt
from ..schedule.rules.cpu.machine import Machine
from .decisions import Decisions

__all__ = ["Anchor", "Scope"]


@dataclass(slots=True)
class Scope(operand.Scope):
    """decisions: about the anchor's loops.  taken: the same, and what the rules chose."""

    machine: Machine = field(default_factory=Machine)
    decisions: Decisions = field(default_factory=Decisions)
    taken: Decisions = field(default_factory=Decisions)


Anchor = Callable[[Any, Sequence[operand.Operand], Sequence[operand.Result], Scope], Stmt]
"""Of an operator with loops of its own: the statement that computes its results."""
