"""Subjects of tuning: a model's kernels on a CPU, or a network's plan on the accelerator."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from dovetail.isa.frozen import frozen

from ..front.stored import StoredModel
from ..front.table import open_model
from .experience import Experience, shipped_experience
from .kernel import Setting
from .kernel_job import record_of
from .kernel_space import KernelProblem
from .problem import Candidate, Job, Problem
from .variants import Layers, layers_of
from .whole import WholeJob

__all__ = ["JOB_SECONDS", "CpuSubject", "Entry", "Subject", "cpu_subject"]

Entry = Mapping[str, object]

JOB_SECONDS = 20.0
"""Time that measuring a candidate may take, at the least."""

CLOSE = 1.3
"""Cost of a convolution's kernels over the best way's, up to which a way is searched further."""


class Subject(Protocol):
    """A set of problems, and what their costs mean together."""

    @property
    def setting(self) -> str:
        """Where results hold: the CPU and threads, or the configuration."""
        ...

    @property
    def job_seconds(self) -> float:
        """Time that measuring a candidate may take; then it has failed."""
        ...

    def problems(self) -> Sequence[Problem]:
        """All of them."""
        ...

    def experience(self) -> Experience | None:
        """Earlier measurements of any kernels, for the cost model."""
        ...

    def unit(self, cost: float) -> str:
        """A cost for people."""
        ...

    def weights(self, costs: Mapping[str, float]) -> Mapping[str, float]:
        """Time of a run in each, given the best costs so far; 0 when it is not worth it."""
        ...

    def totals(
        self, defaults: Mapping[str, float], costs: Mapping[str, float]
    ) -> tuple[float, float]:
        """Cost of a run by the defaults, and by the best so far."""
        ...

    def worth(self) -> float:
        """The largest ratio to the default that is recorded: what is nearer to 1 may be noise."""
        ...

    def entries(
        self, accepted: Mapping[str, tuple[Candidate, float]], costs: Mapping[str, float]
    ) -> Sequence[Sequence[Entry]]:
        """Records of what was accepted, with its ratio to the default, in groups that belong
        together; those that promise most come first.
        """
        ...

    def whole(self, before: Sequence[Entry], after: Sequence[Entry]) -> Job | None:
        """The job that measures everything with these records, and with those before; None when the
        gain is known already.
        """
        ...


@frozen
class CpuSubject:
    """The kernels of a model."""

    layers: Layers
    where: Setting
    network: WholeJob
    job_seconds: float = JOB_SECONDS

    @property
    def setting(self) -> str:
        return self.where.title

    def experience(self) -> Experience | None:
        return shipped_experience()

    def unit(self, cost: float) -> str:
        return f"{1e3 * cost:.3f} ms"

    def problems(self) -> list[KernelProblem]:
        return [KernelProblem(kernel, self.where) for kernel in self.layers.kernels.values()]

    def weights(self, costs: Mapping[str, float]) -> Mapping[str, float]:
        layers = self.layers
        found = {key: count * costs.get(key, 0.0) for key, count in layers.rest.items()}
        for tiles in layers.choices.values():
            known = {
                tile: sum(n * costs[key] for key, n in calls.items())
                for tile, calls in tiles.items()
                if all(key in costs for key in calls)
            }
            least = min(known.values(), default=0.0)
            for tile, total in known.items():
                if total <= CLOSE * least:
                    for key, count in tiles[tile].items():
                        found[key] = found.get(key, 0.0) + count * costs[key]
        return found

    def totals(
        self, defaults: Mapping[str, float], costs: Mapping[str, float]
    ) -> tuple[float, float]:
        layers = self.layers
        calls = layers.calls(layers.default)
        if not all(key in defaults for key in calls):
            return 0.0, 0.0
        return (layers.total(defaults, layers.default), layers.total(costs, layers.chosen(costs)))

    def worth(self) -> float:
        return 0.985

    def whole(self, before: Sequence[Entry], after: Sequence[Entry]) -> Job:
        return replace(self.network, before=tuple(before), after=tuple(after))

    def entries(
        self, accepted: Mapping[str, tuple[Candidate, float]], costs: Mapping[str, float]
    ) -> Sequence[Sequence[Entry]]:
        layers = self.layers
        chosen = layers.chosen(costs)
        groups = []
        for key, tile in chosen.items():
            calls = dict(layers.choices[key][tile])
            group = [
                self._kernel(each, *accepted[each], costs) for each in calls if each in accepted
            ]
            if tile != layers.default[key]:
                group.insert(0, {"kind": "convolution", **self._where, "key": key, "tile": tile})
            groups.append((self._gain(calls, accepted, costs), group))
        for key, count in layers.rest.items():
            if key in accepted:
                group = [self._kernel(key, *accepted[key], costs)]
                groups.append((self._gain({key: count}, accepted, costs), group))
        groups.sort(key=lambda each: each[0], reverse=True)
        return [group for _, group in groups if group]

    @property
    def _where(self) -> Entry:
        return {"cpu": self.where.cpu, "threads": self.where.threads}

    def _gain(
        self,
        calls: Mapping[str, int],
        accepted: Mapping[str, tuple[Candidate, float]],
        costs: Mapping[str, float],
    ) -> float:
        """Seconds of a run, by the kernels' own."""
        return sum(
            count * costs[key] * (1 / accepted[key][1] - 1)
            for key, count in calls.items()
            if key in accepted and key in costs
        )

    def _kernel(
        self, key: str, candidate: Candidate, ratio: float, costs: Mapping[str, float]
    ) -> Entry:
        kernel, record = self.layers.kernels[key], record_of(candidate)
        return {
            "kind": "kernel",
            **self._where,
            "key": key,
            "title": kernel.title,
            "steps": list(record.steps),
            "seconds": float(f"{costs[key]:.4g}"),
            "default_seconds": float(f"{costs[key] / ratio:.4g}"),
        }


def cpu_subject(
    model: StoredModel, dims: Mapping[str, int], setting: Setting, winograd: bool
) -> CpuSubject:
    """The kernels of a model of fixed shapes, once ``dims`` are bound.

    Raises ModelError for one whose shapes stay open, and what importing raises.
    """
    layers = layers_of(open_model(model), dims, winograd)
    network = WholeJob(model, dims, setting, winograd)
    return CpuSubject(layers, replace(setting, constant_bytes=layers.constant_bytes), network)
