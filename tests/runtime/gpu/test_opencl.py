"""The OpenCL device, with a stand-in for the package: its choice, and how kernels are called."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dovetail.runtime.errors import DeviceError
from dovetail.runtime.gpu.part import GpuPart, KernelEntry, Launch, Place, Space
from dovetail.runtime.native.part import Constant
from dovetail.runtime.tensors import TensorSignature

CPU, GPU = 2, 4
MODULE = "dovetail.runtime.gpu.opencl"


@dataclass
class Package(ModuleType):
    """The part of pyopencl that the device uses."""

    platforms: list[SimpleNamespace] = field(default_factory=list)
    device_type: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(GPU=GPU))
    broken: bool = False
    taken: str = ""
    mem_flags: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(READ_WRITE=1))
    done: list[tuple[Any, ...]] = field(default_factory=list)

    class Error(Exception):
        """As pyopencl's."""

    class LogicError(Error):
        """As pyopencl's, without a runtime."""

    class RuntimeError(Error):  # noqa: A001
        """As pyopencl's, of a kernel that is refused."""

    class CompilerWarning(UserWarning):
        """As pyopencl's."""

    Device = object

    class Buffer:
        """Bytes; more than 1,000 are refused."""

        def __init__(self, context: str, flags: int, size: int) -> None:
            assert (context, flags) == ("context", 1)
            if size > 1000:
                raise Package.Error("MEM_OBJECT_ALLOCATION_FAILURE")
            self.data = np.zeros(size, np.uint8)

    class Kernel:
        """Copies three bytes."""

        def __init__(self, program: SimpleNamespace, name: str) -> None:
            assert program.options is not None, "it was built"
            self.program, self.name = program, name

        def set_args(self, *arguments: Any) -> None:
            self.arguments = arguments

    def __post_init__(self) -> None:
        super().__init__("pyopencl")

    def get_platforms(self) -> list[SimpleNamespace]:
        if self.broken:
            raise self.LogicError("PLATFORM_NOT_FOUND_KHR")
        return self.platforms

    def add(self, platform: str, *devices: tuple[str, int, int]) -> None:
        """Devices: name, type, features of float64."""
        owner = SimpleNamespace(name=platform)
        found = [
            SimpleNamespace(name=name, type=kind, double_fp_config=double, platform=owner)
            for name, kind, double in devices
        ]
        self.platforms.append(SimpleNamespace(get_devices=lambda: found))

    def Context(self, devices: list[SimpleNamespace]) -> str:  # noqa: N802
        self.taken = devices[0].name
        return "context"

    def CommandQueue(self, context: str) -> str:  # noqa: N802
        assert context == "context"
        return "queue"

    def Program(self, context: str, text: str | bytes) -> SimpleNamespace:  # noqa: N802
        assert context == "context"
        found = SimpleNamespace(text=text, options=None)

        def build(options: list[str]) -> None:
            if "wrong" in str(text):
                raise self.RuntimeError("line 1")
            found.options = options

        found.build = build
        return found

    def enqueue_copy(self, queue: str, target: Any, source: Any, **given: Any) -> None:
        assert (queue, given.pop("is_blocking")) == ("queue", True)
        if isinstance(target, self.Buffer):
            start = given.pop("dst_offset")
            target.data[start : start + source.nbytes] = source.view(np.uint8)
        else:
            start = given.pop("src_offset")
            target.view(np.uint8)[:] = source.data[start : start + target.nbytes]
        assert not given

    def enqueue_nd_range_kernel(
        self, queue: str, kernel: Any, items: tuple[int, ...], group: tuple[int, ...]
    ) -> None:
        self.done.append((queue, kernel.name, items, group, kernel.program))
        source, start, target, end = kernel.arguments
        assert {type(start), type(end)} == {np.uint64}
        target.data[int(end) : int(end) + 3] = source.data[int(start) : int(start) + 3]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """A stand-in with a CPU and two GPUs."""
    made = Package()
    made.add("Some CPUs", ("cpu-1", CPU, 63))
    made.add("Some GPUs", ("gpu-1", GPU, 63), ("Gpu-2", GPU, 63), ("small", GPU, 0))
    monkeypatch.setitem(sys.modules, "pyopencl", made)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield made
    sys.modules.pop(MODULE, None)


@pytest.mark.parametrize(
    ("which", "taken"),
    [
        (None, "gpu-1"), ("", "gpu-1"), ("gpu-2", "Gpu-2"), ("CPU", "cpu-1"), ("some", "gpu-1"),
        ("cpus", "cpu-1"), ("gpus", "gpu-1"),
    ],
)  # fmt: skip
def test_a_device_is_found_by_name_and_a_gpu_first(
    package: Package, which: str | None, taken: str
) -> None:
    device = import_module(MODULE).OpenClDevice(which)
    assert package.taken == taken
    assert device.name == (f"opencl:{which}" if which else "opencl")


def test_what_is_not_found_is_told_with_what_there_is(package: Package) -> None:
    make = import_module(MODULE).OpenClDevice
    with pytest.raises(DeviceError) as raised:
        make("abacus")
    names = "'cpu-1', 'gpu-1', 'Gpu-2', 'small'"
    assert str(raised.value) == f"no OpenCL device is called 'abacus'; there are: {names}"
    with pytest.raises(DeviceError, match="'small' has no float64"):
        make("small")
    package.platforms.clear()
    with pytest.raises(DeviceError, match=r"there are: none$"):
        make()
    package.broken = True
    with pytest.raises(DeviceError, match=r"no OpenCL runtime \(PLATFORM_NOT_FOUND_KHR\)"):
        make()


def copying(source: str = "text", size: int = 0, target: str = "opencl", **more: Any) -> GpuPart:
    """A part that copies three bytes of its constants to its output."""
    places = Place(Space.CONSTANT, 0, 1, ()), Place(Space.OUTPUT, 0, 0, ())
    output = TensorSignature("y", (3,), "uint8")
    constant = Constant("uint8", (4,), 0)
    return GpuPart(
        target,
        (),
        (output,),
        source.encode(),
        (KernelEntry("copy", 2, 32),),
        (Launch(0, places),),
        (constant,),
        bytes([5, 6, 7, 8]),
        size,
        0,
        (),
        **more,
    )


def test_kernels_get_memories_and_offsets(package: Package) -> None:
    module = import_module(MODULE)
    device = module.OpenClDevice()
    assert device.hardware == "gpu-1"
    ready = device.prepare(copying())
    assert ready.run({}).outputs["y"].tolist() == [6, 7, 8]
    ((*called, program),) = package.done
    assert called == ["queue", "copy", (64,), (32,)]
    assert (program.text, program.options) == ("text", module.OPTIONS)
    with pytest.raises(DeviceError, match="'gpu-1' refuses a kernel: line 1"):
        device.prepare(copying("wrong"))
    with pytest.raises(DeviceError, match=r"'gpu-1' has no 1,024 bytes of memory"):
        device.prepare(copying(size=1024)).run({})
    with pytest.raises(DeviceError, match="'opencl' cannot run what was compiled for 'cuda'"):
        device.prepare(copying(target="cuda"))
    assert module.found()[1] == ("opencl:gpu-1", "gpu-1, Some GPUs")


@pytest.mark.parametrize("version", ["SPIR-V_1.2", ""])
def test_spirv_is_taken_by_runtimes_that_know_it(package: Package, version: str) -> None:
    device = import_module(MODULE).OpenClDevice()
    device._machine._device.il_version = version
    part = copying(binary=b"spirv")
    if version:
        device.prepare(part).run({})
    else:
        with pytest.warns(UserWarning, match="'gpu-1' takes no SPIR-V"):
            device.prepare(part).run({})
    program = package.done[0][-1]
    assert (program.text, bool(program.options)) == (
        (b"spirv", False) if version else ("text", True)
    )
