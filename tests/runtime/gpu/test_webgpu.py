"""The WebGPU device, with a stand-in for the package: its choice, its buffer, and submissions."""

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dovetail.runtime.errors import DeviceError
from dovetail.runtime.gpu.part import GpuPart, KernelEntry, Launch, Place, Space
from dovetail.runtime.native.part import Constant
from dovetail.runtime.tensors import TensorSignature

MODULE = "dovetail.runtime.gpu.webgpu"
LIMITS = {
    "max-storage-buffer-binding-size": 4096,
    "max-buffer-size": 5000,
    "max-compute-workgroup-storage-size": 64,
    "max-bind-groups": 4,
}
STORAGE, COPY_DST, COPY_SRC, UNIFORM, COMPUTE = 1, 2, 4, 8, 4


class RefusedError(Exception):
    """As wgpu's errors."""


class Gpu:
    """Buffers are arrays; a pipeline copies four bytes from its first place to its second."""

    def __init__(self) -> None:
        self.passes: list[list[tuple[Any, ...]]] = []
        self.given: list[tuple[Any, ...]] = []
        self.usages: list[tuple[Any, int]] = []
        self.queue = SimpleNamespace(
            write_buffer=self.write, read_buffer=self.read, submit=self.submit
        )
        self.create_compute_pipeline = lambda **given: given

    def create_buffer(self, size: int, usage: int) -> Any:
        self.usages.append((np.zeros(size, np.uint8), usage))
        return self.usages[-1][0]

    def may(self, buffer: Any, usage: int) -> bool:
        """True if a buffer was made for a usage."""
        return any(each is buffer and made & usage for each, made in self.usages)

    def create_bind_group_layout(self, entries: list[Any]) -> dict[int, Any]:
        assert all(each["visibility"] == COMPUTE for each in entries)
        return {each["binding"]: each["buffer"] for each in entries}

    def create_pipeline_layout(self, bind_group_layouts: list[Any]) -> list[Any]:
        return bind_group_layouts

    def create_bind_group(self, layout: dict[int, Any], entries: list[Any]) -> list[Any]:
        """As WebGPU requires: what the layout names, of buffers that are made for it."""
        found = {each["binding"]: each["resource"] for each in entries}
        assert found.keys() == layout.keys()
        parts = []
        for binding, kind in sorted(layout.items()):
            buffer, start, size = (found[binding][name] for name in ("buffer", "offset", "size"))
            assert self.may(buffer, {"storage": STORAGE, "uniform": UNIFORM}[kind["type"]])
            moves = kind.get("has_dynamic_offset", False)
            assert start + size == (256 if moves else len(buffer))
            parts.append((buffer[start:], moves, size))
        return parts

    def create_shader_module(self, code: str) -> str:
        if code == "wrong":
            raise RefusedError("line 1")
        return code

    def write(self, buffer: Any, start: int, array: Any) -> None:
        assert start % 4 == array.nbytes % 4 == 0
        assert self.may(buffer, COPY_DST)
        buffer[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)

    def read(self, buffer: Any, start: int, size: int) -> bytes:
        assert start % 4 == size % 4 == 0
        assert self.may(buffer, COPY_SRC)
        return bytes(buffer[start : start + size])

    def create_command_encoder(self) -> SimpleNamespace:
        self.given = []
        add = self.given.append
        work = SimpleNamespace(
            set_pipeline=lambda pipeline: add(("pipeline", pipeline)),
            set_bind_group=lambda number, group, offsets: add((number, group, offsets)),
            dispatch_workgroups=lambda *grid: add(("grid", *grid)),
            end=lambda: None,
        )
        return SimpleNamespace(begin_compute_pass=lambda: work, finish=lambda: self.given)

    def submit(self, commands: list[Any]) -> None:
        ((*given,),) = commands
        self.passes.append(given)
        for pipeline, (number, group, (offset,)) in zip(given[::3], given[1::3], strict=True):
            assert len(pipeline[1]["layout"]) == number + 1
            (memory, fixed, _), (places, moves, size) = group
            assert (fixed, moves) == (False, True)
            source, target = places[offset : offset + size][:8].view(np.uint32)
            memory[target : target + 4] = memory[source : source + 4]


def adapter(name: str, kind: str, backend: str = "Vulkan") -> SimpleNamespace:
    made, gpu = SimpleNamespace(limits=LIMITS, asked=None), Gpu()

    def request(required_limits: dict[str, int]) -> Gpu:
        made.asked = required_limits
        return gpu

    made.request_device_sync = request
    made.info = {"device": name, "adapter_type": kind, "backend_type": backend}
    return made


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[SimpleNamespace]]:
    found = [
        adapter("Slow", "CPU"),
        adapter("Small one", "IntegratedGPU"),
        adapter("Big one", "DiscreteGPU"),
        adapter("Old", "DiscreteGPU", "OpenGL"),
    ]
    package: Any = ModuleType("wgpu")
    package.gpu = SimpleNamespace(enumerate_adapters_sync=lambda: found)
    usages = {"STORAGE": STORAGE, "COPY_DST": COPY_DST, "COPY_SRC": COPY_SRC, "UNIFORM": UNIFORM}
    package.BufferUsage = SimpleNamespace(**usages)
    package.ShaderStage = SimpleNamespace(COMPUTE=COMPUTE)
    package.GPUError, package.GPUAdapter, package.GPUDevice = RefusedError, object, object
    monkeypatch.setitem(sys.modules, "wgpu", package)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield found
    sys.modules.pop(MODULE, None)


def copying(count: int = 1, source: str = "text", size: int = 0, target: str = "webgpu") -> GpuPart:
    """A part that copies four bytes of its constants to its output, some times."""
    places = Place(Space.CONSTANT, 0, 4, ()), Place(Space.OUTPUT, 0, 0, ())
    output = TensorSignature("y", (3,), "uint8")
    data = bytes(range(10, 19))
    kernel, constant = KernelEntry("copy", 70_000, 32), Constant("uint8", (9,), 0)
    steps = (Launch(0, places),) * count
    code = source.encode()
    return GpuPart(target, (), (output,), code, (kernel,), steps, (constant,), data, size, 0, ())


@pytest.mark.parametrize(
    ("which", "taken"), [(None, "Big one"), ("small", "Small one"), ("slow", "Slow")]
)
def test_the_fastest_adapter_is_taken(
    adapters: list[SimpleNamespace], which: str | None, taken: str
) -> None:
    device = import_module(MODULE).WebGpuDevice(which)
    assert device.hardware == taken
    assert device.name == (f"webgpu:{which}" if which else "webgpu")
    (asked,) = [each.asked for each in adapters if each.asked]
    assert asked == dict(list(LIMITS.items())[:3])


def test_what_is_not_there_is_told(adapters: list[SimpleNamespace]) -> None:
    module = import_module(MODULE)
    assert module.found()[0] == ("webgpu:Slow", "Slow, Vulkan")
    names = "'Slow', 'Small one', 'Big one'"
    with pytest.raises(DeviceError, match=f"no adapter of WebGPU is called 'old'; .*are: {names};"):
        module.WebGpuDevice("old")
    adapters.clear()
    with pytest.raises(DeviceError, match="no adapter of WebGPU; there are: none; install"):
        module.WebGpuDevice()


@pytest.mark.parametrize("count", [1, 256, 257])
def test_launches_are_submitted_together(adapters: list[SimpleNamespace], count: int) -> None:
    device = import_module(MODULE).WebGpuDevice()
    found = device.prepare(copying(count)).run({})
    assert found.outputs["y"].tolist() == [14, 15, 16]
    gpu = adapters[2].request_device_sync({})
    assert [len(each) for each in gpu.passes] == [
        3 * n for n in (min(count, 256), count - 256) if n > 0
    ]
    (_, pipeline), (number, _, offsets), grid = gpu.passes[-1][-3:]
    assert pipeline["compute"] == {"module": "text", "entry_point": "copy"}
    assert (number, offsets) == (0, [256 * ((count - 1) % 256)])
    assert grid[0] == "grid"
    assert np.prod(grid[1:]) >= 70_000


def test_what_a_device_cannot_run_is_refused(adapters: list[SimpleNamespace]) -> None:
    device = import_module(MODULE).WebGpuDevice()
    for part, said in (
        (copying(target="opencl"), "'webgpu' cannot run what was compiled for 'opencl'"),
        (copying(size=4000), "needs 4,608 bytes in one buffer; 4,096 are allowed"),
        (copying(source="wrong"), "WebGPU refuses a kernel: line 1"),
    ):
        with pytest.raises(DeviceError, match=said):
            device.prepare(part)
