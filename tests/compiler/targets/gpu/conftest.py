"""Fixtures that run kernels."""

import pytest

from dovetail.runtime.device import Device
from dovetail.runtime.devices import open_device
from dovetail.runtime.errors import DeviceError


@pytest.fixture(scope="session")
def opencl() -> Device:
    """An OpenCL device of any kind; skips when there is none."""
    cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    try:
        cl.get_platforms()
    except cl.LogicError:
        pytest.skip("no OpenCL runtime: pip install pocl-binary-distribution")
    return open_device("opencl")


@pytest.fixture(scope="session")
def webgpu() -> Device:
    """A device of WebGPU; skips when there is none."""
    pytest.importorskip("wgpu", reason="wgpu is not installed")
    try:
        return open_device("webgpu")
    except DeviceError as error:
        pytest.skip(str(error))
