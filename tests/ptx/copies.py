"""Asynchronous copies: what they read is written no sooner than when a thread waits for it.

So a kernel that reads before finds what was there before.
Source: PTX ISA 8.5 (NVIDIA), 9.7.9.25.3: cp.async, commit_group, wait_group, wait_all.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .operations import UnknownInstructionError
from .text import Instruction

if TYPE_CHECKING:
    from .machine import Machine

__all__ = ["Copies"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Copy:
    """The bytes for places in memory, of some lanes, each in a group of its lane's."""

    lanes: Array
    groups: Array
    memory: Array
    rows: Array
    columns: Array
    data: Array


@dataclass(slots=True)
class Copies:
    """The copies of all lanes that have begun, and the groups that each lane has committed."""

    lanes: int
    pending: list[_Copy] = field(default_factory=list)
    groups: Array = field(init=False)

    def __post_init__(self) -> None:
        self.groups = np.zeros(self.lanes, np.int64)

    def step(self, machine: "Machine", instruction: Instruction, chosen: Array) -> None:
        """One instruction of some lanes.  Raises UnknownInstructionError."""
        name, operands = ".".join(instruction.words), instruction.operands
        match name:
            case "cp.async.cg.shared.global" if operands[2] == "16":
                self._begin(machine, operands, chosen)
            case "cp.async.commit_group":
                self.groups[chosen] += 1
            case "cp.async.wait_all":
                self._end(machine, chosen, self.groups[chosen] + 1)
            case "cp.async.wait_group":
                self._end(machine, chosen, self.groups[chosen] - int(operands[0]))
            case _:
                raise UnknownInstructionError(name)

    def _begin(self, machine: "Machine", operands: tuple[str, ...], chosen: Array) -> None:
        """A fourth operand is how many bytes are read; the others are zeros."""
        given = np.full(chosen.size, 16)
        if operands[3:]:
            given = machine.read(operands[3], np.dtype(np.int32), chosen)
        data = np.zeros((chosen.size, 16), np.uint8)
        for count in np.unique(given[given > 0]):
            own = given == count
            source = machine.places(operands[1], chosen)[own]
            memory, index = machine.memory_of(source, int(count), chosen[own])
            data[own, : int(count)] = memory[index].reshape(own.sum(), int(count))
        target = machine.places(operands[0], chosen)
        machine.require_multiples(target, 16)
        memory, (rows, columns) = machine.memory_of(target, 16, chosen)
        self.pending.append(_Copy(chosen, self.groups[chosen], memory, rows, columns, data))

    def _end(self, machine: "Machine", chosen: Array, below: Array) -> None:
        """Copies of groups of lanes below a number."""
        limits = np.full(self.lanes, np.iinfo(np.int64).min)
        limits[chosen] = below
        kept = []
        for copy in self.pending:
            ended = copy.groups < limits[copy.lanes]
            place = copy.rows[ended], copy.columns[ended]
            copy.memory[place] = copy.data[ended]
            machine.products.wrote(copy.memory, *place, copy.lanes[ended])
            rest = ~ended
            if rest.any():
                parts = (copy.lanes, copy.groups, copy.rows, copy.columns, copy.data)
                lanes, groups, rows, columns, data = (each[rest] for each in parts)
                kept.append(_Copy(lanes, groups, copy.memory, rows, columns, data))
        self.pending = kept
