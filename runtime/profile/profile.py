"""One run, explained: layers, their bounds, and what the program did."""

from dovetail.isa.assembly import disassemble
from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction

from ..accelerator.part import AcceleratorPart, accelerator_parts
from ..debug.layouts import read_record
from ..errors import DeviceError
from ..html import table
from ..module import Module
from ..result import RunResult, Timeline
from .breakdown import Breakdown, break_down, bus_cycles
from .explain import Explanation, explain
from .layers import LayerProfile, profile_layers
from .memory_map import Holding, memory_map

__all__ = ["Profile", "make_profile"]


@frozen
class PartNames:
    """The number of a program's instructions, and names of data.

    written: by instruction, the tensors that it writes or the constant that it loads, "" where the
    module does not say.  present: name, address and bytes of tensors that are in DRAM before it.
    """

    count: int
    written: tuple[str, ...]
    present: tuple[tuple[str, int, int], ...]


@frozen
class Profile:
    """A run of a module on an accelerator; several programs follow each other.

    model: a name for it.  assembly: one line an instruction.  roof_cycles: as in the module.
    parts: what each program is and names.  beside: how many parts ran on the CPU, and their
    products; none of the cycles are theirs.
    """

    model: str
    result: RunResult
    config: HardwareConfig
    program: tuple[Instruction, ...]
    assembly: tuple[str, ...]
    layers: tuple[LayerProfile, ...]
    roof_cycles: int = 0
    parts: tuple[PartNames, ...] = ()
    beside: tuple[int, int] = (0, 0)

    def __repr__(self) -> str:
        used = self.result.gemm_utilization or 0.0
        return (
            f"<Profile of {self.model} on {self.config.name}: {self.cycles:,} cycles, {used:.1%}>"
        )

    def _repr_html_(self) -> str:
        headings = ("layer", "operators", "cycles", "MACs", "utilisation", "DRAM bytes", "bound")
        rows = [
            (e.name, e.kind, e.cycles, e.macs, f"{e.utilization:.1%}", e.dram_bytes, e.bound)
            for e in self.layers
        ]
        return table(repr(self), headings, rows)

    @property
    def cycles(self) -> int:
        """Cycles of the whole run."""
        return self.result.cycles or 0

    @property
    def breakdowns(self) -> tuple[Breakdown, ...]:
        """Cause of each cycle of each layer."""
        macs = [layer.macs for layer in self.layers]
        return break_down(
            self.program, self.timeline, macs, self.config, self.cycles, self.result.ends
        )

    @property
    def slowest(self) -> tuple[str, Explanation] | None:
        """Name of the layer with most cycles that do no product, and why; None without cycles."""
        cells = self.config.macs_per_cycle
        lost = [layer.cycles - layer.macs // cells for layer in self.layers]
        number = max(range(len(lost)), key=lambda n: lost[n], default=None)
        if number is None or not self.cycles:
            return None
        layer, found = self.layers[number], self.breakdowns[number]
        bus = self.bus_cycles[number]
        return layer.name, explain(layer, found, bus, self.config, self.cycles)

    @property
    def bus_cycles(self) -> tuple[int, ...]:
        """Cycles of each layer in which the bus carried something, of whatever layer."""
        layers, ends = len(self.layers), self.result.ends
        return bus_cycles(self.program, self.timeline, layers, self.config, self.cycles, ends)

    @property
    def memory(self) -> dict[str, list[Holding]]:
        """Contents of the memories, by memory; of all programs, in order."""
        found: dict[str, list[Holding]] = {}
        first = begin = 0
        ends = (*(cycle for cycle, _ in self.result.ends), self.cycles)
        for part, end in zip(self.parts, ends, strict=True):
            mine = slice(first, first + part.count)
            entries = self.timeline[mine]
            held = memory_map(
                self.program[mine], entries, part.written, part.present, self.config, (begin, end)
            )
            for name, holdings in held.items():
                found.setdefault(name, []).extend(holdings)
            first, begin = first + part.count, end
        return found

    @property
    def timeline(self) -> Timeline:
        """One entry for each instruction."""
        return self.result.timeline


def make_profile(model: str, module: Module, result: RunResult) -> Profile:
    """``result`` is of a run of ``module`` on a device that gives a timeline.

    Raises DeviceError when it gave none.
    """
    parts = accelerator_parts(module)
    config = parts[0].configuration
    if not result.timeline:
        raise DeviceError(
            f"device {result.device!r} does not say when each instruction ran; profile on sim or "
            "rtl, where a board's program takes the same cycles"
        )
    program = tuple(instruction for part in parts for instruction in part.program)
    lines = [line for line in disassemble(program, config).splitlines() if line and line[0] != "#"]
    return Profile(
        model,
        result,
        config,
        program,
        tuple(lines),
        profile_layers(result, [layer for part in parts for layer in part.layers], config),
        sum(part.roof_cycles for part in parts),
        tuple(_names(part) for part in parts),
        (
            len(module.parts) - len(parts),
            sum(each.macs for each in module.placement if each.where == "cpu"),
        ),
    )


def _names(part: AcceleratorPart) -> PartNames:
    record = read_record(part)
    written = [""] * part.instruction_count
    for index, frames in record.frames.items():
        names = dict.fromkeys(record.tensors[frame.tensor].name for frame in frames)
        written[index] = ", ".join(names)
    for index, (name, _) in record.constants.items():
        written[index] = name
    present = tuple((each.tensor.name, each.address, each.layout.size) for each in part.sources)
    return PartNames(part.instruction_count, tuple(written), present)
