"""Inputs from other libraries: by DLPack, without a copy."""

from typing import Any

import numpy as np
import pytest

from dovetail.runtime import run
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
