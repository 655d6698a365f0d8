"""Limits of a part for a GPU: the last numbers that are right, and the next."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.runtime.errors import ModuleError
from dovetail.runtime.gpu.part import GpuPart, KernelEntry, Launch, Place, Repeat, Space
from dovetail.runtime.native.content import pack_constants
from dovetail.runtime.tensors import TensorSignature

TENSOR = TensorSignature("x", (4,), "float32")
CONSTANTS, DATA = pack_constants([np.arange(4, dtype=np.int8)])
(CONSTANT,) = CONSTANTS


def launch(*places: tuple[Space, int, int], kernel: int = 0) -> Launch:
    return Launch(kernel, tuple(Place(*each, ()) for each in places))


STEP = launch((Space.INPUT, 0, 0), (Space.OUTPUT, 1, 0))
LOOP = Repeat(3, 2, 1, None, None, None, None, 5, "node")
PART = GpuPart(
    *("opencl", (TENSOR,), (TENSOR, TENSOR), b"source", (KernelEntry("k", 2, 32),)),
    *((LOOP, STEP, STEP, STEP, STEP), CONSTANTS, DATA, 64, 100, ()),
)


def steps(**changes: Any) -> dict[str, object]:
    return {"steps": (STEP, replace(LOOP, **changes), STEP, STEP, STEP)}


@pytest.mark.parametrize(
    "right",
    [
        *({"memory_bytes": 0}, {"most_work": 0}, {"kernels": (KernelEntry("k", 1, 1, 0),)}),
        {"constants": (CONSTANT._replace(offset=len(DATA) - CONSTANT.bytes),)},
        *(steps(count=0), steps(body=0), steps(body=3, last=0), steps(body=0, last=3)),
        *({"steps": (launch((space, 0, 0)),)} for space in Space),
    ],
)
def test_the_last_number_that_is_right_is_taken(right: dict[str, Any]) -> None:
    replace(PART, **right)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"memory_bytes": -1}, "kernels with -1 bytes, 100 work"),
        ({"most_work": -1}, "kernels with 64 bytes, -1 work"),
        ({"kernels": (KernelEntry("k", 0, 1),)}, "kernel k on 0 x 1"),
        ({"kernels": (KernelEntry("k", 1, 0),)}, "kernel k on 1 x 0"),
        ({"kernels": (KernelEntry("k", 1, 1, -1),)}, "kernel k on 1 x 1"),
        ({"constants": (CONSTANT._replace(offset=-1),)}, "a constant of 4 bytes at -1"),
        (
            {"constants": (CONSTANT._replace(offset=len(DATA) - CONSTANT.bytes + 1),)},
            f"a constant of 4 bytes at .* of {len(DATA)}",
        ),
        *(({"steps": (launch(kernel=n),)}, f"a launch of kernel {n} of 1") for n in (-1, 1)),
        (steps(count=-1), "a loop of 2 and 1 steps; 3 follow"),
        (steps(body=-1), "a loop of -1 and 1 steps; 3 follow"),
        (steps(last=-1), "a loop of 2 and -1 steps; 3 follow"),
        (steps(body=3), "a loop of 3 and 1 steps; 3 follow"),
        *(
            ({"steps": (launch((space, number, 0)),)}, f"a place in {space.value} {number}")
            for space, numbers in (
                *((Space.INPUT, (-1, 1)), (Space.OUTPUT, (-1, 2))),
                *((Space.CONSTANT, (-1, 1)), (Space.MEMORY, (-1, 1))),
            )
            for number in numbers
        ),
        ({"steps": (launch((Space.INPUT, 0, -1)),)}, "a place in input 0"),
        *(
            (steps(**{name: Place(Space.OUTPUT, 2, 0, ())}), "a place in output 2")
            for name in ("counter", "condition", "done", "guard")
        ),
    ],
)
def test_the_next_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        replace(PART, **wrong)
