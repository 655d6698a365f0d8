"""One loop program as a part for a device."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.compiler.define.definition import Definition, Kind
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.targets.gpu.lower import launches_of
from dovetail.compiler.targets.gpu.target import find_opencl, find_webgpu
from dovetail.runtime.device import Device
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.tensors import TensorSignature
from tests.compiler.loops.strategies import arrays_for
from tests.compiler.schedule.rules.gpu.products import product
from tests.ptx.running import program_of

__all__ = ["compare_product", "compare_with_interpreter", "part_of", "run_function"]


TARGETS = {each.name: each for each in (find_opencl(""), find_webgpu(""))}


def run_function(
    device: Device, function: Function, inputs: Mapping[str, NDArray[Any]]
) -> Mapping[str, NDArray[Any]]:
    """The outputs of ``function`` on a device of OpenCL or WebGPU."""
    part = part_of(function, device.target_kind)
    return device.prepare(part).run(inputs).outputs


def compare_with_interpreter(device: Device, function: Function) -> None:
    """Hold the scheduled ``function`` on a device to what the interpreter makes of it."""
    inputs = arrays_for(function)
    expected = interpret(function, inputs)
    definition = Definition(function, (), (), Kind.ELEMENTS)
    found = run_function(device, schedule_group(definition).function, inputs)
    for buffer in function.outputs:
        array, want = found[buffer.name], expected[buffer.name]
        if buffer.dtype.is_float:
            np.testing.assert_allclose(
                array.astype(float), want.astype(float), rtol=2e-5, atol=1e-5, equal_nan=True
            )
        else:
            np.testing.assert_array_equal(array, want)


def compare_product(device: Device) -> None:
    """Hold a product in tiles of shared memory to NumPy's."""
    function = schedule_group(product(64, 128, 48)).function
    rng = np.random.default_rng(7)
    a, b, bias = (rng.integers(-9, 9, shape) for shape in ((64, 48), (48, 128), (128,)))
    given = {f"in{n}": each.astype(np.float32) for n, each in enumerate((a, b, bias))}
    np.testing.assert_array_equal(run_function(device, function, given)["out0"], a @ b + bias)


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
