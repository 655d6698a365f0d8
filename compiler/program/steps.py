"""Calls of functions on tensors, and the functions and constants that a program shares."""

from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from ..dtypes import DType
from ..loops.expressions import Buffer, Variable
from ..loops.ir import Function, Store, loops
from ..loops.text import to_text
from ..loops.work import work
from ..schedule.records import NO_RECORDS, Records
from ..schedule.rules.cpu.machine import Machine
from ..schedule.steps.threads import over_threads
from ..targets.cpu.llvm.intrinsics import INTRINSICS
from .ir import Origin, Place

__all__ = ["Shared", "Step", "copying"]


@dataclass(frozen=True, slots=True)
class Step:
    """A call of ``function`` on tensors; origins: the model's nodes it computes.

    repeated: in a loop, on tensors of its body.
    """

    function: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    origins: tuple[str, ...]
    repeated: bool = False


@dataclass(slots=True)
class Shared:
    """What all calls of a program share: functions by their text, constants, works by name.

    records: of schedules that were found by search.
    """

    machine: Machine
    threads: int
    records: Records = NO_RECORDS
    functions: dict[str, Function] = field(default_factory=dict)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)
    works: dict[str, int] = field(default_factory=dict)

    def function(self, function: Function) -> str:
        """The name of a function that is equal to ``function``, but for threads."""
        text = to_text(replace(function, name=""))
        if text not in self.functions:
            name = f"kernel{len(self.functions)}"
            self.works[name] = work(function)
            if self.threads > 1:
                function = over_threads(function, INTRINSICS)
            self.functions[text] = replace(function, name=name)
        return self.functions[text].name

    def constant(self, name: str, array: NDArray[Any]) -> Place:
        """The place of a constant; ``name`` is what it is called, if nothing else is."""
        while name in self.constants:
            name += "'"
        self.constants[name] = array
        return Place(Origin.CONSTANT, len(self.constants) - 1)


def copying(elements: int, dtype: DType) -> Function:
    """A function that copies a tensor."""
    source, target = Buffer("in0", (elements,), dtype), Buffer("out0", (elements,), dtype)
    i = Variable("i")
    body = loops((("i", elements),), Store(target, (i,), source[i]))
    return Function("copy", (source,), (target,), body)
