"""One loop program as a part for a device."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.compiler.loops.ir import Function
from dovetail.compiler.targets.gpu.lower import launches_of
from dovetail.compiler.targets.gpu.target import find_opencl, find_webgpu
from dovetail.runtime.device import Device
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.tensors import TensorSignature
from tests.ptx.running import program_of

__all__ = ["part_of", "run_function"]


TARGETS = {each.name: each for each in (find_opencl(""), find_webgpu(""))}


def run_function(
    device: Device, function: Function, inputs: Mapping[str, NDArray[Any]]
) -> Mapping[str, NDArray[Any]]:
    """The outputs of ``function`` on a device of OpenCL or WebGPU."""
    part = part_of(function, device.target_kind)
    return device.prepare(part).run(inputs).outputs


def part_of(function: Function, target: str) -> GpuPart:
    """The kernels of ``function``, and their launches."""
    launches = launches_of(program_of(function))
    given, found = (
        tuple(TensorSignature(b.name, b.shape, str(b.dtype)) for b in buffers)
        for buffers in (function.inputs, function.outputs)
    )
    return GpuPart(
        target,
        given,
        found,
        TARGETS[target].backend.source(launches).encode(),
        launches.entries,
        launches.steps,
        (),
        np.zeros(0, np.uint8).data,
        launches.memory_bytes,
        0,
        (),
    )
