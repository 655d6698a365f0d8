"""Kernels through LLVM for machines other than NVIDIA's: SPIR-V runs, AMD's code is assembled."""

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.front.table import open_model
from dovetail.compiler.targets.gpu.kernels import Kernel
from dovetail.compiler.targets.gpu.llvm.module import AMD_ARCHITECTURES, amd_object
from dovetail.compiler.targets.gpu.lower import GPU_PASSES, launches_of, lower_graph
from dovetail.runtime.device import Device
from dovetail.runtime.devices import open_device
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.module import Module
from dovetail.runtime.session import Session

from .test_precision import network

AMDGPU = 224
"""The machine's number in ELF."""


def kernels_of_model(path: Path) -> Mapping[str, Kernel]:
    graph = GPU_PASSES.run(open_model(path).to_graph().graph)
    return launches_of(lower_graph(graph, 10**15, lambda where: None)).kernels


def check_object(kernels: Mapping[str, Kernel], architecture: str) -> None:
    found = amd_object(kernels, architecture)
    assert found[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", found, 18) == (AMDGPU,)
    # The descriptor, from which a kernel is launched.
    assert all(f"\0{name}.kd\0".encode() in found for name in kernels)


@pytest.mark.parametrize("architecture", AMD_ARCHITECTURES)
def test_every_kernel_of_a_float_network_gives_an_amd_object(
    architecture: str, tmp_path: Path
) -> None:
    network(tmp_path / "network.onnx")
    kernels = kernels_of_model(tmp_path / "network.onnx")
    assert any(each.geometry.threads > 1 for each in kernels.values())
    check_object(kernels, architecture)


def test_every_kernel_of_digits_gives_an_amd_object(digits_model: Path) -> None:
    check_object(kernels_of_model(digits_model), AMD_ARCHITECTURES[0])


@pytest.fixture(scope="module")
def spirv(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Module:
    """Digits with its kernels in SPIR-V, written and read."""
    path = tmp_path_factory.mktemp("spirv") / "digits.dvt"
    compile(digits_model, "opencl:spirv").save(path)
    return Module.load(path)


def agrees(module: Module, device: Device, digits_model: Path) -> None:
    """With the CPU's bytes."""
    rng = np.random.default_rng(7)
    session, reference = Session(module, device), Session(compile(digits_model, "cpu"))
    for _ in range(3):
        x = rng.standard_normal((1, 1, 8, 8)).astype(np.float32)
        for found, want in zip(session.run(None, x), reference.run(None, x), strict=True):
            np.testing.assert_array_equal(found, want)


def test_a_module_holds_spirv_beside_the_text(spirv: Module) -> None:
    (part,) = spirv.parts
    assert isinstance(part, GpuPart)
    binary = bytes(part.binary)
    assert struct.unpack_from("<I", binary) == (0x07230203,)
    assert all(f"{each.name}\0".encode() in binary for each in part.kernels)
    assert all(f"void {each.name}(" in bytes(part.source).decode() for each in part.kernels)


def test_spirv_runs_where_a_runtime_takes_it(
    spirv: Module, opencl: Device, digits_model: Path, recwarn: pytest.WarningsRecorder
) -> None:
    import pyopencl as cl

    every = [each for platform in cl.get_platforms() for each in platform.get_devices()]
    names = [each.platform.name for each in every if "SPIR-V" in each.il_version]
    if not names:
        pytest.skip("no OpenCL runtime takes SPIR-V: pip install intel-opencl-rt (240 MB)")
    agrees(spirv, open_device(f"opencl:{names[0]}"), digits_model)
    assert not [each for each in recwarn if "SPIR-V" in str(each.message)]


def test_other_runtimes_compile_the_text_and_say_so(
    spirv: Module, opencl: Device, digits_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "dovetail.runtime.gpu.opencl._intermediate_languages", lambda device: "other_1.0"
    )
    with pytest.warns(UserWarning, match="takes no SPIR-V; it compiles the module's OpenCL C"):
        agrees(spirv, opencl, digits_model)
