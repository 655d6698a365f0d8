"""A run that is looked into: going to places in it, and what is there."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.assembly import disassemble
from dovetail.isa.config import HardwareConfig
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.registers import ErrorCode
from dovetail.isa.state import MachineState

from ..errors import DeviceError, InputError, ModuleError
from ..executor import config_of, prepare_launch, reach_accelerator
from ..launch import find_device
from ..module import Module
from ..profile.profile import program_of
from ..targets import split_device
from .layouts import Record, read_record
from .machines import Machine, ReplayedMachine, SnapshotMachine, snapshot_device
from .moments import Event, Moment, moments_of
from .shadow import Footprints, Shadow, Space
from .stops import AtCycle, AtInstruction, AtLayer, AtToken, Run, Stop, Watch, positions
from .views import Constant, TensorView, Words, view_constant, view_tensor, view_words
from .waits import Issue, UnitStatus

__all__ = ["InstructionInfo", "Place", "Session", "Writer"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands.

    cycle: of the last thing that happened, -1 before the first.  reasons: the stops that apply.
    next: what happens next, None at the end.
    """

    cycle: int
    position: int
    reasons: tuple[str, ...]
    next: Moment | None


@dataclass(frozen=True, slots=True)
class InstructionInfo:
    """One instruction; cycles, -1 for what never was."""

    index: int
    unit: Unit
    layer: str
    assembly: str
    queued: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Writer:
    """Who wrote a word last: None for nobody; and what of which tensor it is, where known."""

    instruction: InstructionInfo | None
    tensor: str | None
    element: tuple[int, int, int] | None
    """Block, row and column, the halo included."""
    loaded_from: int | None


class Session:
    """A run of one inference, from before its first cycle on.

    What a run does when is known beforehand, so it can be gone through in both directions.
    Attributes: ``module``, ``config``, ``program``, ``result`` (of the whole run), ``moments``,
    ``record``, ``breakpoints``.
    """

    def __init__(
        self,
        module: Module,
        inputs: Mapping[str, NDArray[Any]],
        device: str = "sim",
        *,
        opened: Any = None,
    ) -> None:
        """Run ``module`` once, to its end or an error.

        opened: the device itself, instead of the one called ``device``.
        Raises InputError, ModuleError, or DeviceError for a device that shows nothing of a run.
        """
        self.module, given = reach_accelerator(module, inputs)
        self.config: HardwareConfig = config_of(self.module)
        self.device = device
        self.launch: Launch = prepare_launch(self.module, self.config, given)
        found = opened or find_device(device, self.config)
        replayed = opened is None and split_device(device)[0] == "sim"
        shown = None if replayed else snapshot_device(device, found)
        self._opened: Any = found
        self.program = program_of(self.module)
        self.result: LaunchResult = found.run(self.launch)
        self.moments = moments_of(self.program, self.result)
        self.record: Record = read_record(self.module, self.config.block)
        self.breakpoints: dict[int, Stop] = {}
        self._made = 0
        self.footprints = Footprints(self.program, self.config)
        self.layers = tuple(layer["name"] for layer in self.module.details["layers"])
        self.layer_of = tuple(self.module.details["layer_of"])
        self.run = Run(
            self.program,
            self.moments,
            self.layers,
            self.layer_of,
            self.footprints,
            self.config.block,
        )
        self.position = 0
        self._replayed = ReplayedMachine(
            self.launch, self.program, self.moments, on_step=self._shadow_step
        )
        self._restart_shadow()
        self.machine: Machine = (
            self._replayed if shown is None else SnapshotMachine(self.launch, self.moments, shown)
        )

    # Where it stands.

    @property
    def cycle(self) -> int:
        """Of the last thing that happened; -1 before the first."""
        return self.moments[self.position - 1].cycle if self.position else -1

    @property
    def ended(self) -> bool:
        """Whether nothing happens any more."""
        return self.position == len(self.moments)

    @property
    def error(self) -> str | None:
        """Why the run was stopped; None when it ended by itself."""
        if self.result.finished:
            return None
        code = ErrorCode(self.result.error_code).name
        return f"{code} at instruction {self.result.error_index}"

    def where(self) -> Place:
        """The cycle, what stops here, and what comes next."""
        here = self.position
        reasons = [str(s) for s in self.breakpoints.values() if here in positions(s, self.run)]
        return Place(self.cycle, here, tuple(reasons), None if self.ended else self.moments[here])

    @cached_property
    def assembly(self) -> tuple[str, ...]:
        """One line an instruction."""
        return tuple(disassemble(self.program).splitlines())

    def instruction(self, index: int) -> InstructionInfo:
        """Instruction ``index`` of the program.

        Raises InputError when there is none.
        """
        if not 0 <= index < len(self.program):
            raise InputError(
                f"no instruction {index}; the program has {len(self.program)}, from 0 on"
            )
        done = self.result
        assert done.dispatched is not None
        assert done.accepted is not None
        assert done.ended is not None
        return InstructionInfo(
            index,
            self.program[index].unit,
            self.layers[self.layer_of[index]],
            self.assembly[index],
            int(done.dispatched[index]),
            int(done.accepted[index]),
            int(done.ended[index]),
        )

    def layer(self, name: str) -> int:
        """The number of the layer called ``name``, of the only one that ends so, or so numbered.

        Raises InputError when there is none.
        """
        if name.isdecimal() and int(name) < len(self.layers):
            return int(name)
        found = [n for n, each in enumerate(self.layers) if each == name]
        found = found or [n for n, each in enumerate(self.layers) if each.endswith(name)]
        if len(found) != 1:
            problem = "no layer" if not found else f"{len(found)} layers"
            raise InputError(
                f"{problem} called {name!r}; there are: {_listed(self.layers)}; or a number"
            )
        return found[0]

    # Going.

    def go_to(self, stop: Stop) -> Place:
        """To the next place at which ``stop`` stops, or, when all have passed, back to the last.

        Raises InputError when there is none.
        """
        found = positions(stop, self.run)
        if not found:
            raise InputError(f"the run never comes to {stop}")
        self.position = next((p for p in found if p >= self.position), found[-1])
        return self.where()

    def run_to_instruction(self, index: int, event: Event = Event.STARTED) -> Place:
        """To where instruction ``index`` is about to start, or has ended."""
        return self.go_to(AtInstruction(index, event))

    def run_to_cycle(self, cycle: int) -> Place:
        """To after everything in ``cycle``."""
        return self.go_to(AtCycle(cycle))

    def run_to_layer(self, name: str, *, end: bool = False) -> Place:
        """To before the first instruction of a layer starts, or after the last one ended."""
        return self.go_to(AtLayer(self.layer(name), end))

    def run_to_token(self, giver: Unit, taker: Unit, count: int | None = None) -> Place:
        """To after a token was given: the next one, or that of number ``count``, from 1 on."""
        stop = AtToken(giver, taker, count)
        if count is None:
            self.position = self._after(positions(stop, self.run))
            return self.where()
        return self.go_to(stop)

    def step(self, unit: Unit | None = None, count: int = 1) -> Place:
        """To after ``count`` more instructions, of ``unit`` or of any, ended."""
        for _ in range(count):
            places = (
                place + 1
                for place in range(self.position, len(self.moments))
                if self.moments[place].event is Event.ENDED
                and unit in (None, self.program[self.moments[place].index].unit)
            )
            self.position = next(places, len(self.moments))
        return self.where()

    def back(self, unit: Unit | None = None, count: int = 1) -> Place:
        """To before ``count`` instructions, of ``unit`` or of any, ended, last one first."""
        for _ in range(count):
            places = (
                place
                for place in reversed(range(self.position))
                if self.moments[place].event is Event.ENDED
                and unit in (None, self.program[self.moments[place].index].unit)
            )
            self.position = next(places, 0)
        return self.where()

    def resume(self) -> Place:
        """On to the next breakpoint, or to the end."""
        found = [p for stop in self.breakpoints.values() for p in positions(stop, self.run)]
        self.position = self._after(sorted(found))
        return self.where()

    def reverse(self) -> Place:
        """Back to the breakpoint before, or to the beginning."""
        found = [p for stop in self.breakpoints.values() for p in positions(stop, self.run)]
        self.position = max((p for p in found if p < self.position), default=0)
        return self.where()

    def restart(self) -> Place:
        """To before the first cycle."""
        self.position = 0
        return self.where()

    def _after(self, found: list[int]) -> int:
        return next((p for p in found if p > self.position), len(self.moments))

    # Stops.

    def add_stop(self, stop: Stop) -> int:
        """Stop there from now on; the stop's number.

        Raises InputError for a stop that names what there is not.
        """
        positions(stop, self.run)
        self._made += 1
        self.breakpoints[self._made] = stop
        return self._made

    def watch(
        self, space: Space, first: int, last: int, *, reads: bool = True, writes: bool = True
    ) -> int:
        """Stop when words of a scratchpad, or bytes of DRAM (None), are read or written.

        Raises InputError for a range outside the memory.
        """
        size = self.launch.dram.size if space is None else self.config.depth(space)
        name = "dram" if space is None else space.value
        if not 0 <= first <= last < size:
            raise InputError(f"{name} {first} to {last}; required within 0 to {size - 1}")
        return self.add_stop(Watch(space, first, last, reads, writes))

    def delete_stop(self, number: int) -> None:
        """Stop there no more.

        Raises InputError when there is no such stop.
        """
        if number not in self.breakpoints:
            known = ", ".join(map(str, self.breakpoints)) or "none"
            raise InputError(f"no breakpoint {number}; there are: {known}")
        del self.breakpoints[number]

    # Looking.

    @property
    def state(self) -> MachineState:
        """All memories, here; not to be changed."""
        return self.machine.state_at(self.position)

    @property
    def replayed_state(self) -> MachineState:
        """All memories, here, as the simulator has them, whatever the device."""
        return self._replayed.state_at(self.position)

    @property
    def is_replayed(self) -> bool:
        """Whether the device is the simulator."""
        return self.machine is self._replayed

    @property
    def shadow(self) -> Shadow:
        """Who wrote what, here."""
        self._replayed.state_at(self.position)
        return self._shadow

    def units(self) -> tuple[UnitStatus, ...]:
        """What each unit does, its queue, and what it waits for."""
        issue = self._issue()
        return tuple(issue.status(unit) for unit in Unit)

    def tokens(self) -> dict[tuple[Unit, Unit], int]:
        """Tokens there are, by giver and taker."""
        return dict(self._issue().tokens)

    def registers(self) -> dict[str, int | str]:
        """What the host would read."""
        stopped = self.ended and not self.result.finished
        status = "ERROR" if stopped else "DONE" if self.ended else "BUSY"
        return {
            "STATUS": status,
            "ERROR_CODE": ErrorCode(self.result.error_code if stopped else 0).name,
            "ERROR_INDEX": self.result.error_index if stopped else 0,
            "PROGRAM_ADDRESS": self.launch.program_address,
            "PROGRAM_COUNT": self.launch.program_count,
            "WINDOW_BASE": 0,
            "WINDOW_LIMIT": self.launch.dram.size - 1,
            "WATCHDOG": self.launch.watchdog,
            "CYCLES": self.cycle + 1,
            "INSTRUCTIONS": self._issue().ended,
        }

    def words(self, memory: Memory, address: int, count: int = 1) -> Words:
        """Words of a scratchpad, typed.

        Raises InputError for words that there are not.
        """
        return view_words(self.state, memory, address, count)

    def dram(self, address: int, count: int, dtype: str = "int8") -> NDArray[Any]:
        """``count`` elements of DRAM from byte ``address`` on.

        Raises InputError for an element type that there is not, and bytes outside.
        """
        try:
            kind = np.dtype(dtype)
        except TypeError:
            raise InputError(f"no element type {dtype!r}; try int8, int32, float32") from None
        size, end = kind.itemsize * count, self.launch.dram.size
        if kind.hasobject or count < 1 or not 0 <= address <= end - size:
            raise InputError(
                f"{count} elements of {dtype} at {address:#x}; DRAM is 0x0 to {end - 1:#x}"
            )
        return self.state.dram[address : address + size].copy().view(kind)

    def tensor(self, name: str) -> TensorView:
        """An activation of the model's graph as it lies now on chip or in DRAM, in NHWC.

        Raises InputError for a name there is not, ModuleError when the module has no names.
        """
        self._require_record()
        number = self.record.number(name)
        if number is None:
            near = [n for n, t in enumerate(self.record.tensors) if t.name.endswith(name)]
            if len(near) != 1:
                names = [each.name for each in self.record.tensors]
                raise InputError(f"no tensor called {name!r}; there are: {_listed(names)}")
            number = near[0]
        return view_tensor(self.record, number, self.state, self.shadow)

    def constant(self, layer: str, name: str) -> Constant:
        """A constant of a layer (weights, bias, taps, table, ...) in DRAM, and what is on chip.

        Raises InputError for a layer or constant there is not.
        """
        self._require_record()
        number = self.layer(layer)
        parts = {
            index: place
            for index, (each, place) in self.record.constants.items()
            if each == name and self.layer_of[index] == number
        }
        if not parts:
            names = {n for i, (n, _) in self.record.constants.items() if self.layer_of[i] == number}
            raise InputError(
                f"layer {self.layers[number]!r} has no constant {name!r}; "
                f"it has: {', '.join(sorted(names)) or 'none'}"
            )
        shape = self.record.weights[number] if name == "weights" else None
        return view_constant(name, parts, shape, self.program, self.state, self.shadow)

    def writer(self, space: Space, address: int) -> Writer:
        """Who wrote a word of a scratchpad, or byte of DRAM, last.

        Raises InputError when there is no such word.
        """
        size = self.launch.dram.size if space is None else self.config.depth(space)
        if not 0 <= address < size:
            name = "dram" if space is None else space.value
            raise InputError(f"{name} {address}; required 0 to {size - 1}")
        shadow = self.shadow
        index = int(shadow.writers[space][address // (self.config.block if space is None else 1)])
        info = self.instruction(index) if index >= 0 else None
        source = -1 if space is None else int(shadow.sources[space][address])
        tensor = element = None
        if space is Memory.ACT and shadow.tensor[address] >= 0:
            tensor = self.record.tensors[shadow.tensor[address]].name
            block, row, column = (int(each) for each in shadow.place[address])
            element = block, row, column
        return Writer(info, tensor, element, source if source >= 0 else None)

    def waves(self, path: Path, first: int, last: int) -> None:
        """Write the RTL's waveforms of cycles ``first`` to ``last``: FILE.fst or FILE.vcd.

        Raises DeviceError on a device without, InputError for another kind of file, HardwareError
        when the simulation cannot be built.
        """
        if path.suffix not in (".fst", ".vcd"):
            raise InputError(f"waveforms to {path}; required FILE.fst or FILE.vcd")
        if not path.absolute().parent.is_dir():
            raise InputError(f"folder {path.parent} of {path.name} does not exist")
        if not hasattr(self._opened, "waves"):
            raise DeviceError(f"{self.device!r} has no waveforms; use --device rtl")
        self._opened.waves(self.launch, path, max(first, 0), last)

    def _require_record(self) -> None:
        if not self.record.tensors:
            raise ModuleError(
                "the module does not say where its tensors lie: an older version compiled it; "
                "compile it again"
            )

    def _issue(self) -> Issue:
        issue = Issue(self.program, self.config)
        for moment in self.moments[: self.position]:
            issue.apply(moment)
        return issue

    def _restart_shadow(self) -> None:
        size = self.launch.dram.size
        self._shadow = Shadow(self.program, self.config, size, self.record, self.footprints)

    def _shadow_step(self, step: int) -> None:
        if step < 0:
            self._restart_shadow()
        else:
            self._shadow.apply(step)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    """The first names of many."""
    most = 8
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
