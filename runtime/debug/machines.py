"""The memories of a run at any of its moments: replayed by the simulator, or seen on the RTL."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dovetail.isa.instructions import Instruction
from dovetail.isa.launch import Launch
from dovetail.isa.state import MachineState

from ..devices import open_launcher
from ..errors import DeviceError
from .moments import Moment, steps_of

__all__ = ["Machine", "ReplayedMachine", "SnapshotDevice", "SnapshotMachine"]

SETTLED = 2
"""Cycles from an event of the run to a snapshot that has what came with it."""


class SnapshotDevice(Protocol):
    """A device that shows its memories in the middle of a run."""

    def snapshots(self, launch: Launch, cycles: Sequence[int]) -> tuple[MachineState, ...]:
        """All memories as they are after so many cycles, ascending."""
        ...


class Machine(Protocol):
    """Memories before the moment ``position`` of a run."""

    def state_at(self, position: int) -> MachineState:
        """DRAM and scratchpads; not to be changed, and good until the next call."""
        ...


class ReplayedMachine:
    """The simulator's memories: instructions happen whole, in the order of their cycles.

    ``on_step`` is called before each step that is taken, after going back with -1.
    """

    def __init__(
        self,
        launch: Launch,
        program: Sequence[Instruction],
        moments: Sequence[Moment],
        on_step: Callable[[int], None] = lambda step: None,
    ) -> None:
        simulator: Any = open_launcher("sim")
        self._replayer: Any = simulator.replayer(launch)
        self._steps = [steps_of(moment, program[moment.index].unit) for moment in moments]
        self._position = 0
        self._on_step = on_step

    def state_at(self, position: int) -> MachineState:
        """As ``Machine`` says."""
        if position < self._position:
            self._replayer.restart()
            self._position = 0
            self._on_step(-1)
        steps = [step for each in self._steps[self._position : position] for step in each]
        for step in steps:
            self._on_step(step)
        self._replayer.apply(steps)
        self._position = position
        state: MachineState = self._replayer.state
        return state


class SnapshotMachine:
    """State as a device shows it; instructions under way have done part of their work."""

    def __init__(self, launch: Launch, moments: Sequence[Moment], device: SnapshotDevice) -> None:
        self._launch, self._moments, self._device = launch, moments, device
        self._known: tuple[int, MachineState] | None = None

    def state_at(self, position: int) -> MachineState:
        """As ``Machine`` says."""
        cycle = 0 if position == 0 else self._moments[position - 1].cycle + SETTLED
        if self._known is None or self._known[0] != cycle:
            self._known = cycle, self._device.snapshots(self._launch, [cycle])[0]
        return self._known[1]


def snapshot_device(name: str, device: Any) -> SnapshotDevice:
    """``device``, which must show its memories.

    Raises DeviceError when it does not.
    """
    if not hasattr(device, "snapshots"):
        raise DeviceError(f"device {name!r} does not show its memories; debug on sim or rtl")
    found: SnapshotDevice = device
    return found
