"""Cost of float layers on an accelerator."""

from dataclasses import asdict
from typing import Any

from dovetail.isa.frozen import frozen

__all__ = ["Cost", "cost_of"]


@frozen
class Cost:
    """cycles: that the planner expects on the accelerator.  accelerator, cpu: MACs on each.

    parts: how often the model is cut, and one.
    """

    cycles: int
    accelerator: int
    cpu: int
    parts: int

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        share = self.cpu / max(self.cpu + self.accelerator, 1)
        more = f", {self.cpu:,} MACs ({share:.1%}) on the CPU" if self.cpu else ""
        return f"{self.cycles:,} cycles, {self.parts} part{'s' * (self.parts > 1)}{more}"


def cost_of(model: Any, target: str) -> Cost:
    """Compile the model for ``target``, an accelerator.  Raises what compiling raises."""
    from dovetail.runtime.accelerator.part import accelerator_parts

    from ...driver import compile_model
    from ...options import CompileOptions

    module = compile_model(model, target, CompileOptions.from_environment())
    cpu = sum(each.macs for each in module.placement if each.where == "cpu")
    return Cost(
        sum(part.expected_cycles for part in accelerator_parts(module)),
        sum(each.macs for each in module.placement) - cpu,
        cpu,
        len(module.parts),
    )
