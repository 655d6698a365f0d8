"""Inputs from other libraries: by DLPack, without a copy."""

import sys
from typing import Any

import numpy as np
import pytest

from dovetail.runtime import Session, run
from dovetail.runtime.dlpack import capsule_of, take
from dovetail.runtime.errors import InputError
from dovetail.runtime.inputs import as_array

from .sample import SHAPE, copy_module


class Tensor:
    """A tensor that is no NumPy array and speaks DLPack."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Elsewhere(Tensor):
    """One in the memory of a GPU, which copies it where it is asked to, as CuPy does."""

    def __dlpack__(self, **options: Any) -> Any:
        if options.pop("dl_device", None) != (1, 0):
            raise BufferError("not in the CPU's memory")
        return self.array.copy().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return (2, 0)


class Unwilling(Elsewhere):
    """One that copies by its own method alone, as PyTorch does."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("cannot export to another device")


class Willing(Unwilling):
    def cpu(self) -> Tensor:
        return Tensor(self.array.copy())


def test_a_tensor_gives_what_its_array_gives() -> None:
    x = np.arange(48, dtype=np.int8).reshape(SHAPE)
    result = run(copy_module(), {"x": Tensor(x)}, device="sim")
    np.testing.assert_array_equal(result.outputs["y"], x)


def test_a_tensor_is_not_copied() -> None:
    x = np.zeros(SHAPE, np.int8)
    assert np.shares_memory(as_array("x", Tensor(x)), x)


def test_outputs_are_tensors_for_others() -> None:
    x = np.ones(SHAPE, np.int8)
    y = run(copy_module(), {"x": x}).outputs["y"]
    assert np.shares_memory(np.from_dlpack(Tensor(y)), y)


@pytest.mark.parametrize("kind", [Elsewhere, Willing])
def test_a_tensor_elsewhere_is_copied(kind: type[Tensor]) -> None:
    x = np.arange(48, dtype=np.int8).reshape(SHAPE)
    assert not np.shares_memory(as_array("x", kind(x)), x)
    np.testing.assert_array_equal(run(copy_module(), kind(x)).outputs["y"], x)


def test_a_tensor_that_cannot_be_copied_is_refused() -> None:
    with pytest.raises(InputError, match=r"'x' is a Unwilling .*can be copied to the CPU"):
        run(copy_module(), {"x": Unwilling(np.zeros(SHAPE, np.int8))})


def test_a_tensor_of_another_type_is_refused() -> None:
    with pytest.raises(InputError, match="float32"):
        run(copy_module(), {"x": Tensor(np.zeros(SHAPE, np.float32))})


def test_tensors_of_torch_are_read_in_place() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.arange(48, dtype=torch.int8).reshape(SHAPE)
    array = as_array("x", x)
    x[0, 0, 0, 0] = 99
    assert array[0, 0, 0, 0] == 99
    result = run(copy_module(), {"x": x})
    np.testing.assert_array_equal(result.outputs["y"], x.numpy())


class Exported:
    """An array that gives capsules of this project's."""

    def __init__(self, array: np.ndarray[Any, Any], versioned: bool) -> None:
        self.array, self.versioned = array, versioned

    def __dlpack_device__(self) -> Any:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        x = self.array
        return capsule_of(x.ctypes.data, x.shape, str(x.dtype), (1, 0), x, self.versioned)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", "bool"])
def test_numpy_takes_a_capsule_and_gives_the_memory_back(dtype: str, versioned: bool) -> None:
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    before = sys.getrefcount(x)
    y = np.from_dlpack(Exported(x, versioned))
    assert y.flags.writeable or not versioned, "a capsule of now says who may write"
    assert np.shares_memory(y, x)
    np.testing.assert_array_equal(y, x)
    del y
    capsule_of(x.ctypes.data, x.shape, dtype, (1, 0), x, versioned)
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}])
def test_a_capsule_of_numpy_is_taken_once(options: Any) -> None:
    x = np.arange(24, dtype=np.int32).reshape(4, 6)
    before = sys.getrefcount(x)
    capsule = x[1:].__dlpack__(**options)
    taken = take("x", capsule)
    assert (taken.address, taken.shape, taken.dtype) == (x.ctypes.data + 24, (3, 6), "int32")
    with pytest.raises(InputError, match="x gives no capsule of DLPack that is still to be taken"):
        take("x", capsule)
    del capsule, taken
    assert sys.getrefcount(x) == before


def test_tensors_that_no_kernel_reads_are_refused() -> None:
    x = np.zeros((4, 6), np.float32)
    for wrong in (x.T, x[:, 1:]):
        with pytest.raises(InputError, match="x has elements that do not follow each other"):
            take("x", wrong.__dlpack__())
    with pytest.raises(InputError, match="DLPack's type 5, 1 at a time"):
        take("x", x.astype(complex).__dlpack__())


def test_outputs_of_a_device_without_shared_memory_are_arrays() -> None:
    x = np.ones(SHAPE, np.int8)
    y = Session(copy_module()).run_on_device(x)["y"]
    np.testing.assert_array_equal(np.from_dlpack(Tensor(y)), x)
