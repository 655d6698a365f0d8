"""Tensors that stay on a GPU: taken from and given to other libraries by DLPack, on a driver that
interprets PTX.
"""

import ctypes
import gc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.runtime.dlpack import capsule_of, take
from dovetail.runtime.errors import InputError
from dovetail.runtime.gpu.cuda import LIBRARY, CudaDevice
from dovetail.runtime.gpu.tensor import DeviceTensor
from dovetail.runtime.module import Module
from dovetail.runtime.session import Session
from tests.ptx.driver import FakeDriver

SHAPE, SIDE_STREAM = (3, 6), 4711
WEIGHTS = np.random.default_rng(9).standard_normal((2, 6, 6)).astype(np.float32)
COPIES = ("cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2")


def rows(x: NDArray[np.float32]) -> NDArray[Any]:
    """The module's results: two products, so that it is two kernels."""
    return np.maximum(x @ WEIGHTS[0], 0) @ WEIGHTS[1]


@pytest.fixture(scope="module")
def compiled() -> Module:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "xy"]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w1"], ["y"]),
    ]
    weights = [numpy_helper.from_array(each, f"w{n}") for n, each in enumerate(WEIGHTS)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return compile(model, "cuda")


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver, real = FakeDriver(), ctypes.CDLL

    def load(name: str | None, **options: Any) -> Any:
        return driver if name == LIBRARY else real(name, **options)

    monkeypatch.setattr("ctypes.CDLL", load)
    return driver


class Tensor:
    """A tensor of another library in the driver's memory; streams: that asked for it."""

    def __init__(
        self, driver: FakeDriver, array: NDArray[Any], at: int = 0, plain: bool = False
    ) -> None:
        place = ctypes.c_uint64()
        driver.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(array.nbytes + at))
        self._driver, self._plain, self._array = driver, plain, array
        self.address = place.value + at
        self.streams: list[int] = []
        self.write(array)

    def write(self, array: NDArray[Any]) -> None:
        """Change it, without a copy that counts."""
        self._driver._at(self.address)[: array.nbytes] = array.reshape(-1).view(np.uint8)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, stream: int, **options: Any) -> Any:
        if self._plain and options:
            raise TypeError("an older library knows no max_version")
        self.streams.append(stream)
        shape, kind = self._array.shape, str(self._array.dtype)
        return capsule_of(self.address, shape, kind, (2, 0), self, not self._plain)


def image(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


@pytest.mark.parametrize("plain", [False, True])
def test_tensors_go_in_and_out_without_a_copy(
    plain: bool, driver: FakeDriver, compiled: Module
) -> None:
    session = Session(compiled, CudaDevice())
    x = Tensor(driver, image(0), plain=plain)
    before = len(driver.log)
    for seed in range(4):
        x.write(image(seed))
        (y,) = session.run_on_device(x).values()
        assert isinstance(y, DeviceTensor)
        if seed == 3:
            assert not set(COPIES) & set(driver.log[before:])
        want = rows(image(seed))
        taken = take("y", y.__dlpack__(stream=1, max_version=(1, 0)))
        assert (taken.shape, taken.dtype) == (want.shape, "float32")
        found = driver._at(taken.address)[: want.nbytes].view(np.float32).reshape(want.shape)
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    assert x.streams == [1] * 4
    assert driver.log[before:].count("cuGraphLaunch") > 0
    np.testing.assert_allclose(session.run(None, x)[0], want, rtol=1e-4, atol=1e-5)


def test_an_output_is_the_input_of_another_run(driver: FakeDriver, compiled: Module) -> None:
    session = Session(compiled, CudaDevice())
    (y,) = session.run_on_device(image(1)).values()
    (z,) = session.run_on_device(y).values()
    np.testing.assert_allclose(y.numpy(), rows(image(1)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(z.numpy(), rows(rows(image(1))), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(np.from_dlpack(z, device="cpu"), z.numpy())


def test_a_consumers_stream_waits_for_the_run(driver: FakeDriver, compiled: Module) -> None:
    session = Session(compiled, CudaDevice())
    (y,) = session.run_on_device(image(1)).values()
    assert y.__dlpack_device__() == (2, 0)
    for stream in (None, 1, -1, 2, SIDE_STREAM):
        y.__dlpack__(stream=stream)
    assert driver.waiting == [2, SIDE_STREAM]
    with pytest.raises(InputError, match="a stream of 0 could be either"):
        y.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="where it is"):
        y.__dlpack__(stream=1, dl_device=(2, 1))


def test_memory_is_used_again_when_its_tensor_and_capsules_are_gone(
    driver: FakeDriver, compiled: Module
) -> None:
    session = Session(compiled, CudaDevice())

    def address(stream: int) -> Any:
        (y,) = session.run_on_device(image(1)).values()
        return take("y", y.__dlpack__(stream=stream))

    first, second = address(1), address(1)
    assert first.address != second.address
    again = first.address
    del first
    third = address(SIDE_STREAM)
    assert third.address == again
    assert "cuCtxSynchronize" not in driver.log
    del third
    assert address(1).address == again
    assert "cuCtxSynchronize" in driver.log


def test_an_input_is_kept_until_the_gpu_has_read_it(driver: FakeDriver, compiled: Module) -> None:
    session = Session(compiled, CudaDevice())
    x = Tensor(driver, image(1))
    driver.busy = True
    session.run_on_device(x)
    kept = len(gc.get_referrers(x))
    session.run_on_device(image(2))
    assert len(gc.get_referrers(x)) == kept
    driver.busy = False
    session.run_on_device(image(2))
    assert len(gc.get_referrers(x)) < kept


def test_a_tensor_at_an_odd_address_is_copied_on_the_gpu(
    driver: FakeDriver, compiled: Module
) -> None:
    session = Session(compiled, CudaDevice())
    found = session.run(None, Tensor(driver, image(1), at=4))
    assert driver.log.count("cuMemcpyDtoD_v2") == 1
    np.testing.assert_array_equal(found[0], session.run(None, image(1))[0])


def test_a_tensor_of_another_shape_is_refused(driver: FakeDriver, compiled: Module) -> None:
    session = Session(compiled, CudaDevice())
    with pytest.raises(InputError, match=r"'x' is float32\[2, 9\]; required float32\[3, 6\]"):
        session.run_on_device(Tensor(driver, image(1).reshape(2, 9)))
