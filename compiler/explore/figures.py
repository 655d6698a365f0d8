"""The figures of a design: of each model, of each FPGA family, and together."""

from collections.abc import Mapping
from statistics import geometric_mean

from dovetail.isa.frozen import frozen

from .area import Area, AreaModel
from .clock import Clock, ClockModel
from .energy import Energy, estimate_energy
from .evaluate import Failure, Performance
from .space import Design

__all__ = ["DesignResult", "FamilyFigures", "Models", "evaluated", "slug"]

Outcomes = Mapping[str, Performance | Failure]


@frozen
class Models:
    """Models of areas and clocks, by family."""

    areas: Mapping[str, AreaModel]
    clocks: Mapping[str, ClockModel]


@frozen
class FamilyFigures:
    """A design in one family: latencies in seconds, by model, and their geometric mean."""

    area: Area
    clock: Clock
    latencies: Mapping[str, float]
    latency: float


@frozen
class DesignResult:
    """All that is known of a design.

    outcomes: by model.  families: empty, and energy None, unless every model ran.  energy:
    microjoules, the geometric mean of all models.
    """

    design: Design
    outcomes: Outcomes
    families: Mapping[str, FamilyFigures]
    energies: Mapping[str, Energy]
    energy: float | None

    @property
    def complete(self) -> bool:
        """Every model ran."""
        return self.energy is not None

    def objectives(self, family: str) -> tuple[float, float, float]:
        """Latency, share of the part, energy: the less the better."""
        found = self.families[family]
        assert self.energy is not None
        return found.latency, found.area.share, self.energy


def evaluated(design: Design, outcomes: Outcomes, models: Models) -> DesignResult:
    """Everything that follows from the outcomes of ``design``."""
    runs = {name: run for name, run in outcomes.items() if isinstance(run, Performance)}
    energies = {name: estimate_energy(run, design.config) for name, run in runs.items()}
    if len(runs) < len(outcomes):
        return DesignResult(design, outcomes, {}, energies, None)
    families = {}
    for name, model in models.areas.items():
        clock = models.clocks[name].clock(design.config)
        latencies = {each: run.cycles / clock.hz for each, run in runs.items()}
        area = model.area(design.config)
        latency = geometric_mean(latencies.values())
        families[name] = FamilyFigures(area, clock, latencies, latency)
    energy = geometric_mean(each.total for each in energies.values())
    return DesignResult(design, outcomes, families, energies, energy)


def slug(name: str) -> str:
    """A name as columns of tables have it."""
    return name.lower().replace(" ", "_")
