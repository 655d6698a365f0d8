"""A session compared with the model: what is wrong, and whose fault it is."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from dovetail.isa.frozen import frozen
from dovetail.runtime.debug.compare import (
    Finding,
    differences,
    first_difference,
    require_same_model,
)
from dovetail.runtime.debug.faults import Fault, first_fault, first_late
from dovetail.runtime.debug.machines import SETTLED
from dovetail.runtime.debug.moments import Event
from dovetail.runtime.debug.session import Session
from dovetail.runtime.errors import InputError
from dovetail.runtime.module import Module

from ..targets.vta.check import CheckError
from ..targets.vta.check import check as prove
from .expected import Reference, reference
from .explain import Cause, explain

__all__ = ["CheckResult", "Debugger"]


@frozen
class CheckResult:
    """Result of a check; all None when the run agrees with the model.

    compared: bytes of each layer's result that agree, as far as the check came.
    finding, cause: the first byte that the program makes wrong, and why.  fault: the first word
    that the machine leaves wrong; then ``finding`` is the first wrong byte after it.
    late: what the machine does in another cycle than the simulator.  unproved: why the program is
    not free of races and deadlock, though no byte is wrong in this run.
    """

    compared: Mapping[str, int]
    finding: Finding | None = None
    cause: Cause | None = None
    fault: Fault | None = None
    late: str | None = None
    unproved: str | None = None

    @property
    def passes(self) -> bool:
        """True if nothing was found."""
        found = (self.finding, self.cause, self.fault, self.late, self.unproved)
        return all(each is None for each in found)


class Debugger(Session):
    """A ``Session`` that knows the model its module was compiled from."""

    def __init__(
        self,
        module: Module,
        inputs: Mapping[str, NDArray[Any]],
        device: str = "sim",
        model: object = None,
        *,
        opened: Any = None,
    ) -> None:
        """As ``Session``; ``model``: what ``check`` compares with."""
        super().__init__(module, inputs, device, opened=opened)
        self._model, self._inputs = model, inputs

    @cached_property
    def reference(self) -> Reference:
        """The graph and what each of its tensors ought to be.

        Raises InputError without a model, or with another one than the module's, and what importing
        and interpreting it raise.
        """
        if self._model is None:
            raise InputError(
                "to compare with the graph interpreter, give the model that the module was "
                "compiled from: --model MODEL"
            )
        self._require_record()
        found = reference(self._model, self._inputs, self.config)
        require_same_model(self, found.values)
        names = tuple(layer.name for layer in found.partition.layers)
        if names != self.layers:
            raise InputError(
                f"the model has {len(names)} layers, the module {len(self.layers)}, or others; "
                "required the model that the module was compiled from"
            )
        return found

    def check(self) -> CheckResult:
        """Compare every byte of every activation, from the first cycle on, with the model's.

        The first that differs is explained, and the session stands just after it was written; it
        stands at the end when none does.  On another device than the simulator, its memories are
        held against the simulator's too.
        Raises as ``reference``.
        """
        values, compared = self.reference.values, dict[int, int]()
        self.position = 0
        finding = first_difference(self, values, compared, self.reference.makers)
        if finding is not None:
            cause = explain(self, self.reference, finding)
            self.position = finding.position
            return CheckResult(self._named(compared), finding, cause)
        fault, late, end = None, None, self.position
        if not self.is_replayed:
            late = first_late(self)
            fault = first_fault(self, self._opened)
        if fault is not None:
            finding = self._after_fault(fault)
            end = finding.position if finding else fault.position
        self.position = end
        return CheckResult(
            self._named(compared), finding, fault=fault, late=late, unproved=self._unproved()
        )

    def _unproved(self) -> str | None:
        try:
            prove(self.program, self.config)
        except CheckError as error:
            return str(error)
        return None

    def _named(self, compared: Mapping[int, int]) -> dict[str, int]:
        """By the layer's name; equal names are numbered."""
        return {
            name if name not in self.layers[:number] else f"{name} ({number})": compared[number]
            for number, name in enumerate(self.layers)
            if number in compared
        }

    def _after_fault(self, fault: Fault) -> Finding | None:
        """The first byte of an activation that the device has wrong, from ``fault`` on."""
        start = self._written(fault)
        for position in range(start, len(self.moments)):
            moment = self.moments[position]
            if moment.event is not Event.ENDED or moment.index not in self.record.frames:
                continue
            self.position = position + 1
            (state,) = self._opened.snapshots(self.launch, [moment.cycle + SETTLED])
            for found in differences(self, self.reference.values, moment.index, state):
                if found.wrong:
                    return replace(found, position=position + 1)
        return None

    def _written(self, fault: Fault) -> int:
        """The position just before the instruction at fault ended."""
        index = fault.instruction.index
        ends = (
            place
            for place, moment in enumerate(self.moments)
            if moment.index == index and moment.event is Event.ENDED
        )
        return min(next(ends, fault.position), fault.position)
