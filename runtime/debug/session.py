"""A run that is looked into."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.assembly import disassemble
from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.registers import ErrorCode
from dovetail.isa.state import MachineState

from ..accelerator.device import prepare_launch
from ..accelerator.launch import find_launcher
from ..accelerator.part import AcceleratorPart, accelerator_part
from ..devices import split_device
from ..errors import DeviceError, InputError, ModuleError
from ..module import Module
from ..session import values_before
from .layouts import Record, read_record
from .machines import Machine, ReplayedMachine, SnapshotMachine, snapshot_device
from .moments import moments_of
from .shadow import Footprints, Shadow, Space
from .stops import Run, Watch
from .views import Constant, TensorView, Words, view_constant, view_tensor, view_words
from .waits import Issue, UnitStatus
from .walk import Walk, listed

__all__ = ["InstructionInfo", "Session", "Writer"]


@frozen
class InstructionInfo:
    """One instruction; cycles, -1 for what never was."""

    index: int
    unit: Unit
    layer: str
    assembly: str
    queued: int
    start: int
    end: int


@frozen
class Writer:
    """Who wrote a word last: None for nobody; and its element and tensor, where known."""

    instruction: InstructionInfo | None
    tensor: str | None
    element: tuple[int, int, int] | None
    """Block, row and column, the halo included."""
    loaded_from: int | None


class Session(Walk):
    """A run of one inference, from before its first cycle on.

    Attributes: ``part``, ``config``, ``program``, ``result`` (of the whole run), ``moments``,
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
        self.part: AcceleratorPart = accelerator_part(module)
        self.config: HardwareConfig = self.part.configuration
        self.device = device
        self.launch: Launch = prepare_launch(self.part, values_before(module, self.part, inputs))
        found = opened or find_launcher(device, self.config)
        replayed = opened is None and split_device(device)[0] == "sim"
        shown = None if replayed else snapshot_device(device, found)
        self._opened: Any = found
        program = self.part.program
        self.result: LaunchResult = found.run(self.launch)
        self.record: Record = read_record(self.part)
        self.footprints = Footprints(program, self.config)
        self.layer_of = self.part.layer_of
        super().__init__(
            Run(
                program,
                moments_of(program, self.result),
                tuple(layer.name for layer in self.part.layers),
                self.layer_of,
                self.footprints,
                self.config.block,
            )
        )
        self._replayed = ReplayedMachine(
            self.launch, self.program, self.moments, on_step=self._shadow_step
        )
        self._restart_shadow()
        self.machine: Machine = (
            self._replayed if shown is None else SnapshotMachine(self.launch, self.moments, shown)
        )

    @property
    def error(self) -> str | None:
        """The reason why the run was stopped; None when it ended normally."""
        if self.result.finished:
            return None
        code = ErrorCode(self.result.error_code).name
        return f"{code} at instruction {self.result.error_index}"

    @cached_property
    def assembly(self) -> tuple[str, ...]:
        """One line an instruction."""
        return tuple(disassemble(self.program, self.config).splitlines())

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
        """True if the device is the simulator."""
        return self.machine is self._replayed

    @property
    def shadow(self) -> Shadow:
        """Who wrote what, here."""
        self._replayed.state_at(self.position)
        return self._shadow

    def units(self) -> tuple[UnitStatus, ...]:
        """Work of each unit, its queue, and what it waits for."""
        issue = self._issue()
        return tuple(issue.status(unit) for unit in Unit)

    def tokens(self) -> dict[tuple[Unit, Unit], int]:
        """Tokens there are, by giver and taker."""
        return dict(self._issue().tokens)

    def registers(self) -> dict[str, int | str]:
        """Registers as the host would read them."""
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

        Raises InputError for words that do not exist.
        """
        return view_words(self.state, memory, address, count)

    def dram(self, address: int, count: int, dtype: str = "int8") -> NDArray[Any]:
        """``count`` elements of DRAM from byte ``address`` on.

        Raises InputError for an element type that does not exist, and bytes outside.
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
        """An activation of the model's graph as it is now on chip or in DRAM, in NHWC.

        Raises InputError for a name that does not exist, ModuleError when the module has no names.
        """
        self._require_record()
        number = self.record.number(name)
        if number is None:
            near = [n for n, t in enumerate(self.record.tensors) if t.name.endswith(name)]
            if len(near) != 1:
                names = [each.name for each in self.record.tensors]
                raise InputError(f"no tensor called {name!r}; there are: {listed(names)}")
            number = near[0]
        return view_tensor(self.record, number, self.state, self.shadow)

    def constant(self, layer: str, name: str) -> Constant:
        """A constant of a layer (weights, bias, taps, table, ...) in DRAM, and what is on chip.

        Raises InputError for a layer or constant that does not exist.
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
                "the module does not say where its tensors are: an older version compiled it; "
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
