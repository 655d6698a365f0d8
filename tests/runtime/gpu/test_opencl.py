"""Choice of the OpenCL device, with a stand-in for the package."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType, SimpleNamespace

import pytest

from dovetail.runtime.errors import DeviceError

CPU, GPU = 2, 4
MODULE = "dovetail.runtime.gpu.opencl"


@dataclass
class Package(ModuleType):
    """The part of pyopencl that the device uses."""

    platforms: list[SimpleNamespace] = field(default_factory=list)
    device_type: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(GPU=GPU))
    broken: bool = False
    taken: str = ""

    class LogicError(Exception):
        """As pyopencl's, without a runtime."""

    Device = Kernel = Buffer = object

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

    def CommandQueue(self, context: str) -> None:  # noqa: N802
        assert context == "context"


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
