"""Kernels in WGSL compute what loop programs mean."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings

from dovetail.compiler.define.definition import Definition, Kind
from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.runtime.device import Device

from ...loops.strategies import arrays_for, functions
from .browser import BrowserDevice
from .programs import run_function

TYPES = tuple(each for each in DType if each is not DType.FLOAT64)


@given(function=functions(dtypes=TYPES, max_size=9))
@settings(max_examples=20)
def test_random_programs_equal_the_interpreter(webgpu: Device, function: Function) -> None:
    compare(webgpu, function)


def test_random_programs_equal_the_interpreter_in_a_browser(browser: Any, tmp_path: Path) -> None:
    device = BrowserDevice(browser, tmp_path)

    @given(function=functions(dtypes=TYPES, max_size=9))
    @settings(max_examples=15)
    def equal(function: Function) -> None:
        compare(device, function)

    with closing(device):
        equal()


def compare(device: Device, function: Function) -> None:
    """The function, scheduled, gives the interpreter's results."""
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
