"""Kernels in PTX: NVIDIA's assembler takes them, and says what they take."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from dovetail.compiler import compile
from dovetail.compiler.define.definition import Definition, Kind
from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import TargetError
from dovetail.compiler.front.table import open_model
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.targets.gpu.kernels import Kernel
from dovetail.compiler.targets.gpu.llvm.module import ARCHITECTURES, ptx_of
from dovetail.compiler.targets.gpu.lower import TENSOR_CORE_PASSES, launches_of, lower_graph
from dovetail.compiler.targets.gpu.tensor_cores import INTRINSICS
from dovetail.runtime.errors import DeviceError
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.session import Session
from tests.ptx.assembler import PACKAGE, assemble, find_ptxas
from tests.ptx.running import program_of

from ...loops.strategies import functions
from ...schedule.rules.gpu.products import product


@pytest.fixture(scope="module")
def ptxas() -> Path:
    found = find_ptxas()
    if found is None:
        pytest.skip(f"no ptxas: pip install {PACKAGE} (47 MB)")
    return found


def kernels_of_model(path: Path) -> dict[str, Kernel]:
    graph = TENSOR_CORE_PASSES.run(open_model(path).to_graph().graph)
    return dict(launches_of(lower_graph(graph, 10**15, lambda where: None, INTRINSICS)).kernels)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_kernel_of_digits_is_assembled(
    architecture: str, digits_model: Path, ptxas: Path
) -> None:
    kernels = kernels_of_model(digits_model)
    found = assemble(ptxas, ptx_of(kernels, architecture), architecture)
    assert found.keys() == kernels.keys()
    assert max(spilled for _, spilled in found.values()) == 0


@given(function=functions(dtypes=tuple(DType), max_size=9))
@settings(max_examples=8)
def test_random_programs_are_assembled(ptxas: Path, function: Function) -> None:
    scheduled = schedule_group(Definition(function, (), (), Kind.ELEMENTS)).function
    kernels = dict(launches_of(program_of(scheduled)).kernels)
    assert assemble(ptxas, ptx_of(kernels, "sm_80"), "sm_80").keys() == kernels.keys()


def test_a_product_in_tiles_has_sums_in_registers(ptxas: Path) -> None:
    scheduled = schedule_group(product(64, 64, 64)).function
    text = ptx_of(launches_of(program_of(scheduled)).kernels, "sm_80")
    assert text.count("bar.sync") == 2
    assert ".local" not in text
    ((registers, spilled),) = assemble(ptxas, text, "sm_80").values()
    assert registers > 16
    assert spilled == 0


def test_what_the_assembler_refuses_is_an_error(ptxas: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        assemble(ptxas, ".version 8.0\n.target sm_80\n.visible .entry k() { add; }\n", "sm_80")


def test_a_module_for_cuda_holds_ptx_and_says_that_there_is_no_driver(digits_model: Path) -> None:
    module = compile(digits_model, "cuda")
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    assert b".target sm_80" in bytes(part.source)
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        with pytest.raises(DeviceError, match="no NVIDIA driver"):
            Session(module, "cuda")
    else:
        session, reference = Session(module, "cuda"), Session(compile(digits_model, "cpu"))
        image = np.random.default_rng(6).standard_normal((1, 1, 8, 8)).astype(np.float32)
        for found, want in zip(session.run(None, image), reference.run(None, image), strict=True):
            np.testing.assert_array_equal(found, want)


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(TargetError, match="no architecture is called 'sm_20'; there are: sm_80"):
        ptx_of({}, "sm_20")
