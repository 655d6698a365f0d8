"""Plans of the accelerator, searched on the simulator."""

import json
import random
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dovetail.compiler
from dovetail.compiler.__main__ import main
from dovetail.compiler.front.table import store_model
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.targets.vta.plan_files import read_plan_entries
from dovetail.compiler.targets.vta.plan_record import recorded_plan
from dovetail.compiler.tune.accelerator import (
    LAYERS,
    AcceleratorSubject,
    PlanJob,
    accelerator_subject,
)
from dovetail.compiler.tune.problem import Candidate
from dovetail.compiler.tune.subject import JOB_SECONDS
from dovetail.compiler.tune.tuning import RECORDS, Options, tune
from dovetail.isa.configs import find_config
from dovetail.runtime import run
from dovetail.runtime.module import Module
from tests.kept import check_kept

from .test_kept_candidates import KEPT, steps, told

TARGET = "vta:tiny"


@pytest.fixture(scope="module")
def subject(small_model: Path) -> AcceleratorSubject:
    return accelerator_subject(store_model(small_model), find_config(TARGET.partition(":")[2]))


def test_candidates_give_the_bytes_of_the_default(subject: AcceleratorSubject) -> None:
    rng, problem = random.Random(0), subject.problem
    baseline = problem.job(problem.default()).run().cost
    seen = set()
    for _ in range(4):
        candidate = problem.cross(problem.mutate(problem.sample(rng), rng), problem.default(), rng)
        assert problem.features(candidate) is not None
        measured = problem.job(candidate).run()
        assert measured.error == ""
        assert measured.baseline == baseline
        seen.add(candidate)
    assert len(seen) > 1


def test_a_plan_that_does_not_fit_is_no_candidate(subject: AcceleratorSubject) -> None:
    assert subject.problem.features(NO_PLAN) is None


def test_measuring_may_take_longer_than_compiling(subject: AcceleratorSubject) -> None:
    assert subject.job_seconds > JOB_SECONDS


NO_PLAN = Candidate.of({"streamed": [], "layers": []})


def test_a_cross_begins_as_one_plan_and_ends_as_the_other(subject: AcceleratorSubject) -> None:
    rng, problem = random.Random(2), subject.problem
    plans = [problem.default()]
    for _ in range(30):
        plans.append(problem.mutate(rng.choice(plans), rng))
    where = {each: json.dumps(each.record["streamed"]) for each in plans}
    made = set()
    for one, other in permutations(dict.fromkeys(plans), 2):
        if where[one] != where[other]:
            continue
        found = problem.cross(one, other, rng).record
        first, second, layers = (
            list(map(json.dumps, each["layers"]))  # type: ignore[call-overload]
            for each in (one.record, other.record, found)
        )
        same = [n for n in range(len(layers) + 1) if layers[:n] == first[:n]]
        assert any(layers[n:] == second[len(second) - len(layers) + n :] for n in same)
        assert found.get("placing") == one.record.get("placing")
        made.add(layers != first and layers != second)
    assert made == {True, False}


def test_what_is_no_plan_is_replaced(subject: AcceleratorSubject) -> None:
    problem = subject.problem
    assert problem.mutate(NO_PLAN, random.Random(0)) == problem.default()
    for seed in range(3):
        wanted = problem.mutate(problem.default(), random.Random(seed))
        assert problem.cross(problem.default(), NO_PLAN, random.Random(seed)) == wanted
        assert problem.cross(NO_PLAN, problem.default(), random.Random(seed)) == problem.default()


def test_random_steps_are_as_they_were(subject: AcceleratorSubject) -> None:
    found = steps(subject.problem, 6)
    check_kept(KEPT, "plans", [told(subject.problem, each) for each in found])


def test_features_say_where_cycles_go(subject: AcceleratorSubject) -> None:
    problem = subject.problem
    found = problem.features(problem.default())
    assert found is not None
    plan = recorded_plan(problem.planner, problem.default().record)
    sums, cycles, moved = np.split(found, [5, 5 + LAYERS])
    wanted = [plan.cycles, plan.wait_cycles, plan.dram, len(plan.choices), len(plan.gone)]
    assert sums.tolist() == wanted
    assert len(moved) == LAYERS
    assert {n: c for n, c in enumerate(cycles) if c} == {
        each.first: each.cycles for each in plan.choices
    }
    assert {n: c for n, c in enumerate(moved) if c} == {
        each.first: each.dram for each in plan.choices if each.dram
    }


def test_the_plan_that_compilation_chooses_is_the_first_candidate(
    subject: AcceleratorSubject, small_model: Path
) -> None:
    problem = subject.problem
    assert problem.features(problem.default()) is not None
    measured = PlanJob(problem.model, problem.config, problem.key, problem.default().text).run()
    assert measured.cost == measured.baseline
    module = dovetail.compiler.compile(small_model, TARGET)
    assert measured.cost == run(module, zeros(module), device="sim").cycles


def zeros(module: Module) -> dict[str, np.ndarray]:
    return {each.name: np.zeros(each.shape, each.dtype) for each in module.inputs}


def test_the_record_gives_the_cycles_that_were_measured(
    subject: AcceleratorSubject, small_model: Path, tmp_path: Path
) -> None:
    found = tune(subject, tmp_path, Options(None, 6))
    file = tmp_path / RECORDS
    options = CompileOptions(records=(file,))
    module = dovetail.compiler.compile(small_model, TARGET, options)
    rng = np.random.default_rng(0)
    inputs = {x.name: rng.standard_normal(x.shape).astype(x.dtype) for x in module.inputs}
    cycles = run(module, inputs, device="sim").cycles
    plain = run(dovetail.compiler.compile(small_model, TARGET), inputs, device="sim").cycles
    assert cycles == found.progress.best
    assert plain == found.progress.start
    for entry in found.entries:
        assert entry["cycles"] == cycles < plain == entry["default_cycles"]
    assert len(read_plan_entries((file,))) == len(found.entries)
    image = tmp_path / "image.npy"
    np.save(image, next(iter(inputs.values())))
    named = f"{next(iter(inputs))}={image}"
    started = ("run", small_model, "--input", named, "--output-dir", tmp_path)
    for command in (started, ("profile", small_model)):
        for given, expected in (((), plain), (("--records", file), cycles)):
            words = [*command, "--target", TARGET, *given, "--json"]
            done = CliRunner().invoke(main, [str(word) for word in words])
            assert done.exit_code == 0, done.output
            assert json.loads(done.stdout)["cycles"] == expected
