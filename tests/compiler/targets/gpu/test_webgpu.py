"""Kernels in WGSL compute what loop programs mean, by wgpu and in a browser."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from dovetail.compiler.define.definition import Definition, Kind
from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import Buffer, Cast, Variable, as_index
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, Function, LoopKind, Store
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.runtime.device import Device

from ...loops.strategies import arrays_for, functions
from ...schedule.rules.gpu.products import product
from .browser import BrowserDevice
from .programs import run_function

TYPES = tuple(each for each in DType if each is not DType.FLOAT64)


@pytest.fixture(scope="module", params=["wgpu", "browser"])
def device(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """Both that run WGSL."""
    if request.param == "wgpu":
        yield request.getfixturevalue("webgpu")
        return
    page = BrowserDevice(request.getfixturevalue("browser"), tmp_path_factory.mktemp("page"))
    yield page
    page.close()


@given(function=functions(dtypes=TYPES, max_size=9))
@settings(max_examples=15)
def test_random_programs_equal_the_interpreter(device: Device, function: Function) -> None:
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


def test_a_product_in_tiles_of_shared_memory_is_numpys(device: Device) -> None:
    function = schedule_group(product(64, 128, 48)).function
    rng = np.random.default_rng(7)
    a, b, bias = (rng.integers(-9, 9, shape) for shape in ((64, 48), (48, 128), (128,)))
    given = {f"in{n}": each.astype(np.float32) for n, each in enumerate((a, b, bias))}
    np.testing.assert_array_equal(run_function(device, function, given)["out0"], a @ b + bias)


def test_bytes_of_more_blocks_than_one_dimension_has_are_all_stored(device: Device) -> None:
    """Four blocks at a time store to one word."""
    count = 70_001
    out = Buffer("out", (count,), DType.UINT8)
    index = Variable("i")
    store = Store(out, (index,), Cast(DType.UINT8, index * 7))
    function = Function("f", (), (out,), For("i", as_index(count), LoopKind.BLOCK, store))
    found = run_function(device, function, {})["out"]
    np.testing.assert_array_equal(found, (np.arange(count) * 7).astype(np.uint8))
