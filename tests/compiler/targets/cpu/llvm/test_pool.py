"""On which CPUs the pool's threads run."""

import os
import subprocess
import sys

import numpy as np
import pytest
from llvmlite import binding

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import Buffer, Variable, as_index
from dovetail.compiler.loops.ir import For, Function, LoopKind, Store
from dovetail.compiler.targets.cpu.arch.arch import Arch
from dovetail.compiler.targets.cpu.arch.table import ARCHES
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.targets.cpu.llvm.pool_places import SWITCH
from dovetail.compiler.targets.cpu.llvm.pool_text import pool_text

COUNT = 4096

ENTRY = "from tests.compiler.targets.cpu.llvm.test_pool import report; report({cpus}, {threads})"


def report(cpus: int, threads: int) -> None:
    """Run on the first ``cpus`` CPUs, and print where the pool's threads may run, one a line."""
    allowed = sorted(os.sched_getaffinity(0))[:cpus]
    os.sched_setaffinity(0, allowed)
    before = set(os.listdir("/proc/self/task"))
    x, y = (Buffer(name, (COUNT,), DType.INT32) for name in "xy")
    i = Variable("i")
    loop = For("i", as_index(COUNT), LoopKind.PARALLEL, Store(y, (i,), x[i] * 3))
    module = compile_functions([Function("triple", (x,), (y,), loop)], LlvmOptions(threads=threads))
    given = np.arange(COUNT, dtype=np.int32)
    for _ in range(200):
        (found,) = module.run("triple", [given])
        np.testing.assert_array_equal(found, given * 3)
    for task in sorted(set(os.listdir("/proc/self/task")) - before):
        print(*sorted(os.sched_getaffinity(int(task))))


def masks(cpus: int, threads: int, settled: str = "1") -> list[list[int]]:
    """The output of ``report`` in a process of its own."""
    command = [sys.executable, "-c", ENTRY.format(cpus=cpus, threads=threads)]
    environment = {**os.environ, SWITCH: settled, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [[int(cpu) for cpu in line.split()] for line in done.stdout.splitlines()]


def two_cpus() -> list[int]:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("one CPU only")
    return allowed[:2]


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_keep_off_their_callers_cpu_and_within_what_is_allowed(threads: int) -> None:
    allowed = two_cpus()
    found = masks(2, threads)
    assert len(found) == threads - 1
    assert all(len(mask) == 1 and mask[0] in allowed for mask in found)


def test_threads_may_be_left_to_the_kernel() -> None:
    allowed = two_cpus()
    assert masks(2, 2, "0") == [allowed]


def test_a_process_on_one_cpu_runs_by_itself() -> None:
    found = masks(1, 3)
    assert found == [sorted(os.sched_getaffinity(0))[:1]] * 2


@pytest.mark.parametrize("arch", ARCHES, ids=lambda arch: arch.name)
def test_llvm_takes_the_pool_of_every_kind_of_cpu(arch: Arch) -> None:
    with binding.parse_assembly(pool_text(arch)) as module:
        module.verify()
        declared = {each.name: str(each.type) for each in module.functions if each.is_declaration}
    name, operands = arch.pause
    kinds = ", ".join(each.split()[0] for each in operands)
    assert f"@{name}({kinds})" in pool_text(arch)
    assert {name, "pthread_create", "pthread_join"} <= declared.keys()
