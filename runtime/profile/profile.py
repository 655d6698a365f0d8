"""One run, explained: layers, their bounds, and what the program did."""

from dataclasses import dataclass

from dovetail.isa.assembly import disassemble
from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Instruction

from ..accelerator.part import accelerator_parts
from ..errors import DeviceError
from ..html import table
from ..module import Module
from ..result import RunResult, Timeline
from .layers import LayerProfile, profile_layers

__all__ = ["Profile", "make_profile"]


@dataclass(frozen=True, slots=True)
class Profile:
    """A run of a module on an accelerator; several programs follow each other.

    model: a name for it.  assembly: one line an instruction.  roof_cycles: as in the module.
    """

    model: str
    result: RunResult
    config: HardwareConfig
    program: tuple[Instruction, ...]
    assembly: tuple[str, ...]
    layers: tuple[LayerProfile, ...]
    roof_cycles: int = 0

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
    lines = [line for line in disassemble(program).splitlines() if line and line[0] != "#"]
    return Profile(
        model,
        result,
        config,
        program,
        tuple(lines),
        profile_layers(result, [layer for part in parts for layer in part.layers], config),
        sum(part.roof_cycles for part in parts),
    )
