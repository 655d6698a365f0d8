"""Candidates that random steps make of a seed, and what a search knows of them: another step is as
legal, so it is seen here alone.
"""

import random
from collections.abc import Sequence
from pathlib import Path

from dovetail.compiler.targets.gpu.target import find_opencl
from dovetail.compiler.tune.accelerator import PlanProblem
from dovetail.compiler.tune.gpu_kernel import GpuKernelProblem
from dovetail.compiler.tune.kernel import Setting
from dovetail.compiler.tune.kernel_space import KernelProblem
from dovetail.compiler.tune.problem import Candidate
from dovetail.compiler.tune.variants import layers_of
from tests.kept import check_kept

from .models import small_model

MOST = 6
"""Kernels; the steps of further ones, Winograd's of 4x4 among them, take long."""
KEPT = Path(__file__).with_name("kept_candidates.json")
Problem = KernelProblem | GpuKernelProblem | PlanProblem


def steps(problem: Problem, count: int) -> list[Candidate]:
    """The default, and ``count`` rounds of samples, changes and crosses."""
    rng, found = random.Random(1), [problem.default()]
    for _ in range(count):
        found.append(problem.sample(rng))
        found.append(problem.mutate(found[-1], rng))
        found.append(problem.cross(found[-1], found[-3], rng))
    return found


def told(problem: Problem, candidate: Candidate) -> str:
    """The features in four digits, without zeros."""
    features = problem.features(candidate)
    if features is None:
        return "not legal"
    return " ".join(f"{n}:{each:.4g}" for n, each in enumerate(features) if each)


def texts(found: Sequence[Candidate]) -> list[str]:
    return [each.text.replace('"', "") for each in found]


def test_candidates_of_kernels() -> None:
    kernels = list(layers_of(small_model(), {}, True).kernels.values())
    for number, kernel in enumerate(kernels[:MOST]):
        problem = KernelProblem(kernel, Setting("avx512"))
        found = steps(problem, 3)
        check_kept(KEPT, f"cpu {number}", texts(found))
        check_kept(KEPT, f"cpu {number}, features", [told(problem, each) for each in found[:4]])
        choices = GpuKernelProblem(kernel, find_opencl(""), "device")
        check_kept(KEPT, f"opencl {number}", texts(steps(choices, 2)))
