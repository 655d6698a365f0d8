"""Candidates are legal programs that compute what the default computes."""

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.ir import For, LoopKind
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.records import KernelRecord
from dovetail.compiler.schedule.steps.register_tile import RegisterTile
from dovetail.compiler.schedule.steps.strips import Strips
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.tune import kernel_job
from dovetail.compiler.tune.features import LENGTH
from dovetail.compiler.tune.kernel import Kernel, Setting
from dovetail.compiler.tune.kernel_job import record_of
from dovetail.compiler.tune.kernel_space import KernelProblem
from dovetail.compiler.tune.problem import Candidate
from dovetail.compiler.tune.variants import layers_of

from .models import small_model

SETTING = Setting()


@cache
def kernels() -> list[Kernel]:
    """Kernels of the small model, by tiles and directly."""
    return list(layers_of(small_model(), {}, True).kernels.values())


def results(kernel: Kernel, record: KernelRecord, setting: Setting) -> list[np.ndarray]:
    """Results of machine code for random inputs."""
    rng = np.random.default_rng(1)
    function = kernel.function(setting, record)
    verify(function)
    inputs = [rng.standard_normal(b.shape).astype(b.dtype.numpy) for b in function.inputs]
    code = compile_functions([function], LlvmOptions(threads=setting.threads, jobs=1))
    return code.run("kernel", inputs)


@cache
def expected(number: int, threads: int) -> list[np.ndarray]:
    """Results of the default."""
    return results(kernels()[number], KernelRecord(), Setting(threads=threads))


@settings(max_examples=8)
@given(st.integers(0, 2**32), st.booleans())
def test_candidates_compute_what_the_default_computes(seed: int, threaded: bool) -> None:
    rng = random.Random(seed)
    setting = Setting(threads=2) if threaded else SETTING
    number = rng.randrange(len(kernels()))
    kernel = kernels()[number]
    problem = KernelProblem(kernel, setting)
    one, other = problem.sample(rng), problem.sample(rng)
    candidate = problem.cross(problem.mutate(one, rng), other, rng)
    features = problem.features(candidate)
    if features is None:
        return
    assert features.shape == (LENGTH,)
    assert np.isfinite(features).all()
    found = results(kernel, record_of(candidate), setting)
    for a, b in zip(found, expected(number, setting.threads), strict=True):
        assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()


def test_a_candidate_is_the_same_after_its_text() -> None:
    rng = random.Random(3)
    problem = KernelProblem(kernels()[0], SETTING)
    for _ in range(20):
        candidate = problem.sample(rng)
        again = KernelProblem(kernels()[0], SETTING)
        mine, its = problem.features(candidate), again.features(Candidate(candidate.text))
        assert (mine is None) == (its is None)
        if mine is not None and its is not None:
            assert np.array_equal(mine, its)


def test_models_of_other_names_have_the_same_keys() -> None:
    model = small_model(seed=1)
    for node in model.proto.graph.node:
        node.name = f"other_{node.name}"
    keys = {kernel.key for kernel in layers_of(model, {}, True).kernels.values()}
    assert keys == {kernel.key for kernel in kernels()}
    other = layers_of(small_model(size=12), {}, True).kernels
    assert not keys & {key for key, kernel in other.items() if "Winograd" in kernel.title}


def test_the_job_measures_beside_the_default() -> None:
    kernel = next(each for each in kernels() if "WindowReduce" in each.title)
    problem = KernelProblem(kernel, SETTING)
    measured = problem.job(problem.default()).run()
    assert measured.error == ""
    assert measured.cost is not None
    assert measured.baseline is not None
    assert 0 < measured.cost < 1


def test_wrong_results_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = next(each for each in kernels() if "WindowReduce" in each.title)
    other = next(each for each in kernels() if "Contract" in each.title)
    job = KernelProblem(kernel, SETTING).job(KernelProblem(kernel, SETTING).default())
    assert job.run().cost is not None
    bench = kernel_job._bench(kernel.key, SETTING, None, kernel_job.Held(kernel))
    monkeypatch.setattr(bench, "expected", [each + 1 for each in bench.expected])
    measured = job.run()
    assert measured.cost is None
    assert "results differ from the default's" in measured.error
    assert other.key != kernel.key


@pytest.mark.parametrize(("cost", "runs"), [(3.5, 2), (2.5, 2 + 8), (1e-3, 2 + 30), (1e-9, 402)])
def test_a_candidate_far_behind_the_default_is_run_no_more(
    cost: float, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that counts is a lower quantile: other work on the machine only adds to it."""
    kernel = next(each for each in kernels() if "WindowReduce" in each.title)
    bench = kernel_job._bench(kernel.key, SETTING, None, kernel_job.Held(kernel))
    assert all(array.ctypes.data % 64 == 0 for given in bench.sets for array in given)
    default = min(cost, 1.0)
    done: dict[bool, int] = {True: 0, False: 0}

    def timed(code: object, number: int) -> float:
        own = code is not bench.default
        done[own] += 1
        late = done[own] % 4 == 0  # once in four runs
        return (cost if own else default) + 100.0 * late

    monkeypatch.setattr(kernel_job._Code, "time", timed)
    measured = bench.measure(KernelRecord())
    assert (measured.cost, measured.baseline) == (pytest.approx(cost), pytest.approx(default))
    assert done == {True: runs, False: runs}


TILE = {
    "step": "register_tile",
    "buffer": "acc0",
    "loops": ["o1", "o2", "o3", "o4"],
    "sums": [],
    "inner": [],
    "vector": "",
    "lanes": 1,
    "tiles": [],
    "staged": False,
}


@pytest.mark.parametrize(
    "record",
    [
        {"steps": [{**TILE, "tiles": [["o99", 2]]}]},
        {"steps": [{**TILE, "loops": ["o0", "o0"]}]},
        {"steps": [{**TILE, "lanes": "2"}]},
        {"steps": [{"step": "fuse", "outer": "a", "inner": "b", "name": ""}]},
        {"decisions": {}},
    ],
)
def test_records_that_do_not_suit_are_refused(record: dict[str, object]) -> None:
    kernel = next(each for each in kernels() if "Contract" in each.title)
    with pytest.raises(ScheduleError):
        kernel.recorded(SETTING, record_of(Candidate.of(record)))
    assert KernelProblem(kernel, SETTING).features(Candidate.of(record)) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_are_for_threads_where_there_are_several(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dovetail.compiler.schedule.steps.threads.LEAST_WORK", 1)
    function = kernels()[0].function(Setting(threads=threads), KernelRecord())
    found = [each.kind for each in walk(function.body) if isinstance(each, For)]
    assert (LoopKind.PARALLEL in found) == (threads > 1)


def test_every_register_tile_of_streamed_weights_is_a_legal_program() -> None:
    layers = layers_of(small_model(256, 7), {}, True)
    kernel = next(each for each in layers.kernels.values() if "Winograd2" in each.title)
    assert "Invoke" in repr(kernel.function(SETTING, KernelRecord()).body), "weights are asked for"
    for tiles in ([[0, 4], [2, 9]], [[0, 2]], [[1, 2], [0, 2], [2, 4]], []):
        steps = tuple(
            replace(each, tiles=tuple((f"o{label}", count) for label, count in tiles))
            if isinstance(each, RegisterTile) and each.buffer == "acc0"
            else each
            for each in kernel.ruled(SETTING).schedule.trace
            if isinstance(each, Strips | RegisterTile)
        )
        verify(kernel.ruled(SETTING, steps).function)
