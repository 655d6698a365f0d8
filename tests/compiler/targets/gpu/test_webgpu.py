"""Kernels in WGSL compute what loop programs mean, by wgpu and in a browser."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import Buffer, Cast, Variable, as_index
from dovetail.compiler.loops.ir import For, Function, LoopKind, Store
from dovetail.runtime.device import Device

from ...loops.strategies import functions
from .browser import BrowserDevice
from .programs import compare_product, compare_with_interpreter, run_function

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
    compare_with_interpreter(device, function)


def test_a_product_in_tiles_of_shared_memory_is_numpys(device: Device) -> None:
    compare_product(device)


def test_bytes_of_more_blocks_than_one_dimension_has_are_all_stored(device: Device) -> None:
    """Four blocks at a time store to one word."""
    count = 70_001
    out = Buffer("out", (count,), DType.UINT8)
    index = Variable("i")
    store = Store(out, (index,), Cast(DType.UINT8, index * 7))
    function = Function("f", (), (out,), For("i", as_index(count), LoopKind.BLOCK, store))
    found = run_function(device, function, {})["out"]
    np.testing.assert_array_equal(found, (np.arange(count) * 7).astype(np.uint8))
