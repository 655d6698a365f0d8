"""The target ``vta``: an accelerator of one configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.errors import ConfigError
from dovetail.runtime.parts import Part
from dovetail.vta_sim.timing import time_program

from ...errors import ModelError, TargetError
from ...front.source import Imported, Source
from ...graph.partition import Piece, Placement, Plan, plan_parts
from ...options import CompileOptions
from ...pipeline.trace import Trace
from .accelerate import compile_accelerated, refuse

__all__ = ["DEFAULT_CONFIG", "Vta", "find_vta"]

DEFAULT_CONFIG = "zynq7020"


@dataclass(frozen=True, slots=True)
class Vta:
    """See ``Target``."""

    config: HardwareConfig

    @property
    def name(self) -> str:
        """ "vta:CONFIG"."""
        return f"vta:{self.config.name}"

    def load(self, model: Source, dims: Mapping[str, int]) -> Imported:
        """The graph for a batch of 1."""
        if dims:
            raise ModelError(f"dimensions {sorted(dims)} are bound; only target cpu has open ones")
        return model.to_graph_and_rest(batch=1)

    def plan(self, model: Imported) -> Plan:
        """The longest piece that consists of integer layers that the accelerator has."""
        refused = partial(refuse, lanes=self.config.block)
        plan = plan_parts(model.graph, model.kinds, refused)
        reason = "its shape, or that of what it reads, depends on data"
        late = (Placement(node, kind, "cpu", reason) for node, kind in model.late.items())
        return replace(plan, placements=(*plan.placements, *late))

    def compile(
        self, piece: Piece, kinds: Mapping[str, str], options: CompileOptions, trace: Trace
    ) -> Part:
        """As ``Target``."""
        assert piece.layers is not None
        return compile_accelerated(piece.layers, self.config, options, trace, time_program)

    def compile_open(self, model: Source, dims: Mapping[str, int], options: CompileOptions) -> Part:
        """Never asked for: ``load`` always gives a graph."""
        raise ModelError("the accelerator runs models of fixed sizes only")


def find_vta(which: str | HardwareConfig) -> Vta:
    """The target of a configuration, by its name or itself.

    Raises TargetError when there is none of this name.
    """
    if isinstance(which, HardwareConfig):
        return Vta(which)
    try:
        return Vta(find_config(which or DEFAULT_CONFIG))
    except ConfigError as error:
        raise TargetError(f"target 'vta:{which}': {error}") from None
