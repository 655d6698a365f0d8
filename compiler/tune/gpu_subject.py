"""The kernels of a model on one GPU, as a search takes them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from dovetail.isa.frozen import frozen
from dovetail.runtime.devices import open_device
from dovetail.runtime.parts import target_kind

from ..errors import TuneError
from ..front.stored import StoredModel
from ..front.table import open_model
from ..options import CompileOptions
from ..pipeline.trace import Trace
from ..schedule.steps.trace import to_record
from ..targets.gpu.records import KIND
from ..targets.gpu.target import Gpu
from .experience import Experience
from .gpu_kernel import GpuKernelProblem, choice_of, schedule_of
from .kernel import Kernel, kernels_of
from .problem import Candidate, Job
from .subject import JOB_SECONDS, Entry

__all__ = ["GpuSubject", "gpu_subject"]


@frozen
class GpuSubject:
    """kernels: by key.  calls: of each in one run.  hardware: what the driver calls the device."""

    kernels: Mapping[str, Kernel]
    calls: Mapping[str, int]
    target: Gpu
    device: str
    hardware: str
    job_seconds: float = JOB_SECONDS

    @property
    def setting(self) -> str:
        return f"{self.target.name} on {self.hardware}"

    def problems(self) -> list[GpuKernelProblem]:
        """All whose rule has a choice."""
        every = (GpuKernelProblem(each, self.target, self.device) for each in self.kernels.values())
        return [each for each in every if each.names]

    def experience(self) -> Experience | None:
        """The kernels that were measured before are those of CPUs."""
        return None

    def unit(self, cost: float) -> str:
        return f"{1e3 * cost:.3f} ms"

    def weights(self, costs: Mapping[str, float]) -> Mapping[str, float]:
        return {key: count * costs.get(key, 0.0) for key, count in self.calls.items()}

    def totals(
        self, defaults: Mapping[str, float], costs: Mapping[str, float]
    ) -> tuple[float, float]:
        known = {problem.key for problem in self.problems()}
        if not known <= set(defaults):
            return 0.0, 0.0
        first, best = (
            sum(self.calls[key] * each[key] for key in known) for each in (defaults, costs)
        )
        return first, best

    def worth(self) -> float:
        return 0.97

    def entries(
        self, accepted: Mapping[str, tuple[Candidate, float]], costs: Mapping[str, float]
    ) -> Sequence[Sequence[Entry]]:
        return [[self._entry(key, *accepted[key], costs)] for key in self.calls if key in accepted]

    def whole(self, before: Sequence[Entry], after: Sequence[Entry]) -> Job | None:
        """Nothing: kernels run one after the other, so gains add up."""
        return None

    def _entry(
        self, key: str, candidate: Candidate, ratio: float, costs: Mapping[str, float]
    ) -> Entry:
        kernel = self.kernels[key]
        return {
            "kind": KIND,
            "target": target_kind(self.target.name),
            "device": self.hardware,
            "key": key,
            "title": kernel.title,
            "steps": to_record(schedule_of(kernel, self.target, choice_of(candidate))),
            "seconds": float(f"{costs[key]:.4g}"),
            "default_seconds": float(f"{costs[key] / ratio:.4g}"),
        }


def gpu_subject(
    model: StoredModel,
    dims: Mapping[str, int],
    target: Gpu,
    device: str,
    options: CompileOptions | None = None,
) -> GpuSubject:
    """The kernels of a model of fixed shapes, once ``dims`` are bound, on a device by its name.

    Raises DeviceError for an unknown device, TuneError for a model whose shapes depend on data, and
    the errors of importing.
    """
    options = options or CompileOptions()
    hardware = open_device(device)
    imported = target.load(open_model(model), dims)
    if imported is None:
        raise TuneError("the model's shapes depend on data: the CPU compiles it as it runs")
    graph = target.prepared(imported.graph, imported.kinds, options, Trace(options))
    kernels: dict[str, Kernel] = {}
    calls: Counter[str] = Counter()
    for place in kernels_of(graph):
        kernels[place.kernel.key] = place.kernel
        calls[place.kernel.key] += place.calls
    name = str(getattr(hardware, "hardware", device))
    return GpuSubject(kernels, calls, target, device, name)
