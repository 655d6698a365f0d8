"""The plan of a network on the accelerator: searched like a kernel, measured on the simulator.

A candidate is a plan record (``targets/vta/plan_record.py``); its cost is the simulator's cycles,
which do not vary.
"""

import hashlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.runtime.module import Module
from dovetail.runtime.session import run
from dovetail.vta_sim.timing import time_program

from ..errors import CompilerError
from ..front.integer import integer_graph
from ..front.stored import StoredModel
from ..front.table import open_model
from ..graph.ir import Graph
from ..options import CompileOptions
from ..pipeline.trace import Trace
from ..targets.vta.accelerate import accelerate_graph, prepare_graph
from ..targets.vta.emit import compile_partition
from ..targets.vta.layers.lower import lower
from ..targets.vta.layers.plan_activations import plan_activations
from ..targets.vta.passes.fuse import fuse
from ..targets.vta.place import NoRoomError
from ..targets.vta.plan import Ends, Plan
from ..targets.vta.plan_record import PlanRecords, recorded_plan, to_plan_record
from ..targets.vta.planner import Planner
from ..targets.vta.target import require_whole
from .problem import Candidate, Features, Measured
from .subject import JOB_SECONDS

__all__ = ["AcceleratorSubject", "PlanJob", "PlanProblem", "accelerator_subject"]

PRICES = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Prices of a cycle of DRAM, for plans that are made again."""
COMPILED = 6
"""Times that compiling the model takes, in which a worker measures its first candidate."""
LAYERS = 96
"""Layers that the features have room for; further ones count in the sums only."""


@frozen
class PlanJob:
    """See Job; plan: the candidate's text, None for the default."""

    model: StoredModel
    config: HardwareConfig
    key: str
    plan: str

    def run(self) -> Measured:
        """Cycles on the simulator; results are compared with the default's, byte by byte."""
        default = _default(self.model, self.config)
        module = _compiled(_graph(self.model, self.config), self.config, self.key, self.plan)
        cycles, outputs = _run(module)
        for name, array in outputs.items():
            if not np.array_equal(array, default[1][name]):
                return Measured(None, error=f"output {name} differs from the default's")
        return Measured(cycles, default[0])


@lru_cache(maxsize=2)
def _graph(model: StoredModel, config: HardwareConfig) -> Graph:
    layers, trace = integer_graph(open_model(model)), Trace(CompileOptions())
    require_whole(layers, config)
    return prepare_graph(layers, trace, config.block, act_words=config.act_depth)


@lru_cache(maxsize=2)
def _default(model: StoredModel, config: HardwareConfig) -> tuple[int, Mapping[str, NDArray[Any]]]:
    return _run(_compiled(_graph(model, config), config, "", ""))


def _compiled(graph: Graph, config: HardwareConfig, key: str, plan: str) -> Module:
    plans: PlanRecords = {key: Candidate(plan).record} if plan else {}
    options = CompileOptions()
    trace = Trace(options)
    part = accelerate_graph(graph, config, options, trace, time_program, plans)
    return Module.of_part(part)


def _run(module: Module) -> tuple[int, Mapping[str, NDArray[Any]]]:
    rng = np.random.default_rng(0)
    inputs = {}
    for each in module.inputs:
        if np.dtype(each.dtype).kind == "f":
            inputs[each.name] = rng.standard_normal(each.shape).astype(each.dtype)
        else:
            info = np.iinfo(each.dtype)
            inputs[each.name] = rng.integers(info.min, info.max, each.shape, each.dtype, True)
    result = run(module, inputs, device="sim")
    assert result.cycles is not None
    return result.cycles, result.outputs


@dataclass(slots=True)
class PlanProblem:
    """See Problem."""

    planner: Planner
    key: str
    title: str
    model: StoredModel
    config: HardwareConfig
    known: Candidate
    """The plan that the compiler chooses."""
    _plans: dict[Candidate, Plan | None] = field(default_factory=dict)

    def default(self) -> Candidate:
        return self.known

    def sample(self, rng: random.Random) -> Candidate:
        candidate = self.default()
        for _ in range(rng.randint(1, 4)):
            candidate = self.mutate(candidate, rng)
        return candidate

    def mutate(self, candidate: Candidate, rng: random.Random) -> Candidate:
        plan = self._plan(candidate)
        if plan is None:
            return self.default()
        try:
            if rng.random() < 0.3:
                neighbours = list(self.planner.neighbours(plan.gone)) or [plan.gone]
                gone = rng.choice(neighbours)
                return self._candidate(self.planner.plan(gone, rng.choice(PRICES)))
            return self._candidate(self._changed(plan, rng))
        except (NoRoomError, CompilerError):
            return candidate

    def cross(self, one: Candidate, other: Candidate, rng: random.Random) -> Candidate:
        first, second = self._plan(one), self._plan(other)
        if first is None or second is None or first.gone != second.gone:
            return self.mutate(one, rng)
        ends = {choice.first for choice in first.choices} & {c.first for c in second.choices}
        cut = rng.choice(sorted(ends))
        choices = [c for c in first.choices if c.first < cut]
        choices += [c for c in second.choices if c.first >= cut]
        try:
            return self._candidate(self.planner.built(choices, first.gone, first.placing))
        except (NoRoomError, CompilerError):
            return one

    def features(self, candidate: Candidate) -> Features | None:
        plan = self._plan(candidate)
        if plan is None:
            return None
        cycles, moved = np.zeros(LAYERS), np.zeros(LAYERS)
        for choice in plan.choices:
            if choice.first < LAYERS:
                cycles[choice.first], moved[choice.first] = choice.cycles, choice.dram
        sums = [plan.cycles, plan.wait_cycles, plan.dram, len(plan.choices), len(plan.gone)]
        return np.array([*sums, *cycles, *moved], np.float32)

    def program(self, candidate: Candidate) -> str:
        return candidate.text

    def job(self, candidate: Candidate) -> PlanJob:
        plan = "" if candidate == self.default() else candidate.text
        return PlanJob(self.model, self.config, self.key, plan)

    def _changed(self, plan: Plan, rng: random.Random) -> Plan:
        """With some layers run in another way, together or separately."""
        choices = list(plan.choices)
        place = rng.randrange(len(choices))
        first = choices[place].first
        taken = min(rng.choice((1, 1, 1, 2, 3)), len(choices) - place)
        end = choices[place + taken - 1].first + choices[place + taken - 1].count
        found, number = [], first
        while number < end:
            count = rng.randint(1, end - number)
            ways = list(self.planner.options(number, count, plan.gone))
            if not ways and count == 1:
                return plan
            if ways:
                # The cheaper ones are likelier.
                ways.sort(key=lambda choice: choice.cycles)
                found.append(ways[min(int(rng.expovariate(0.5)), len(ways) - 1)])
                number += count
        changed = [*choices[:place], *found, *choices[place + taken :]]
        return self.planner.built(changed, plan.gone, plan.placing)

    def _candidate(self, plan: Plan) -> Candidate:
        candidate = Candidate.of(to_plan_record(self.planner, plan, 0))
        self._plans[candidate] = plan
        return candidate

    def _plan(self, candidate: Candidate) -> Plan | None:
        """None when it does not fit."""
        if candidate not in self._plans:
            try:
                self._plans[candidate] = recorded_plan(self.planner, candidate.record)
            except CompilerError:
                self._plans[candidate] = None
        return self._plans[candidate]


@frozen
class AcceleratorSubject:
    """The plan of one network."""

    problem: PlanProblem
    setting: str
    job_seconds: float = JOB_SECONDS

    def problems(self) -> Sequence[PlanProblem]:
        return [self.problem]

    def experience(self) -> None:
        return None

    def unit(self, cost: float) -> str:
        return f"{cost:,.0f} cycles"

    def weights(self, costs: Mapping[str, float]) -> Mapping[str, float]:
        return {self.problem.key: 1.0}

    def totals(
        self, defaults: Mapping[str, float], costs: Mapping[str, float]
    ) -> tuple[float, float]:
        key = self.problem.key
        return defaults.get(key, 0.0), costs.get(key, 0.0)

    def worth(self) -> float:
        return 1 - 1e-9

    def whole(
        self, before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]
    ) -> None:
        return None

    def entries(
        self, accepted: Mapping[str, tuple[Candidate, float]], costs: Mapping[str, float]
    ) -> Sequence[Sequence[Mapping[str, object]]]:
        found = []
        for key, (candidate, ratio) in accepted.items():
            cycles = round(costs[key])
            plan = {**candidate.record, "cycles": cycles}
            named = {"kind": "plan", "key": key, "title": self.problem.title, "plan": plan}
            found.append({**named, "cycles": cycles, "default_cycles": round(cycles / ratio)})
        return [found]


def accelerator_subject(model: StoredModel, config: HardwareConfig) -> AcceleratorSubject:
    """The plan of a model that can run on the accelerator as a whole.

    Raises ModelError, UnsupportedOperatorError, DoesNotFitError as compilation does.
    """
    options = CompileOptions()
    graph = _graph(model, config)
    begin = time.monotonic()
    partition = fuse(graph)
    activations = plan_activations(graph, partition, config.block, config)
    raises = config.short_constants
    layers = tuple(lower(graph, each, activations, raises=raises) for each in partition.layers)
    sources = tuple(activations[chain.last] for chain in partition.sources)
    planner = Planner(layers, Ends(sources, partition.result_roots), config, options.overlap)
    plans: PlanRecords = {}
    compile_partition(graph, partition, config, time_program, overlap=options.overlap, plans=plans)
    ((key, record),) = plans.items()
    known = Candidate.of({**record, "cycles": 0})
    digest = hashlib.sha256(model.content).hexdigest()[:12]
    name = getattr(open_model(model), "name", "") or "network"
    title = f"{name} on vta:{config.name}"
    problem = PlanProblem(planner, key, title, model, config, known)
    # A worker compiles the default too, before its first candidate; others may work beside it.
    seconds = JOB_SECONDS + COMPILED * (time.monotonic() - begin)
    return AcceleratorSubject(problem, f"vta:{config.name}, model {digest}", seconds)
