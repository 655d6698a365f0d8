"""A loop program as PTX on the interpreter."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.compiler.loops.ir import Function
from dovetail.compiler.program.ir import Call, Operand, Origin, Place, Program
from dovetail.compiler.targets.gpu.llvm.module import ptx_of
from dovetail.compiler.targets.gpu.lower import launches_of
from dovetail.runtime.gpu.part import Launch, Space

from .machine import run_kernel
from .text import read_kernels

__all__ = ["program_of", "run_ptx"]


def program_of(function: Function) -> Program:
    """A program that calls ``function`` once."""
    arguments = [
        Operand(buffer.name, Place(origin, number))
        for origin, buffers in ((Origin.INPUT, function.inputs), (Origin.OUTPUT, function.outputs))
        for number, buffer in enumerate(buffers)
    ]
    call = Call(function.name, tuple(arguments))
    return Program((function,), (call,), function.inputs, function.outputs, {}, 0)


def run_ptx(
    function: Function, inputs: Mapping[str, NDArray[Any]], architecture: str = "sm_80"
) -> dict[str, NDArray[Any]]:
    """The outputs, by name.  Raises as ``run_kernel``."""
    launches = launches_of(program_of(function))
    kernels = read_kernels(ptx_of(launches.kernels, architecture))
    given = [np.ascontiguousarray(inputs[each.name]) for each in function.inputs]
    memories = {
        Space.INPUT: [each.reshape(-1).view(np.uint8).copy() for each in given],
        Space.OUTPUT: [
            np.zeros(each.elements * each.dtype.bytes, np.uint8) for each in function.outputs
        ],
        Space.MEMORY: [np.zeros(launches.memory_bytes, np.uint8)],
    }
    for step in launches.steps:
        assert isinstance(step, Launch)
        entry = launches.entries[step.kernel]
        buffers = [memories[place.space][place.number][place.offset :] for place in step.places]
        run_kernel(kernels[entry.name], entry.blocks, entry.threads, buffers, entry.shared_bytes)
    return {
        each.name: found.view(each.dtype.numpy).reshape(each.shape)
        for each, found in zip(function.outputs, memories[Space.OUTPUT], strict=True)
    }
