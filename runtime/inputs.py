"""Input tensors as the user gives them: taken as arrays, and held to a module's signatures."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dlpack import Borrowed
from .errors import InputError
from .tensors import TensorSignature

__all__ = ["Borrow", "as_array", "check_inputs", "name_inputs"]

Arrays = Mapping[str, NDArray[Any]]
Borrow = Callable[[str, Any], Borrowed | None]
"""Takes a tensor, by what it is to the user, where a device's kernels read it; None elsewhere."""


CPU_MEMORY = (1, 3)
"""DLPack's numbers of devices whose memory this CPU reads: its own, and what is pinned for CUDA."""


def as_array(name: str, value: Any, borrow: Borrow | None = None) -> Any:
    """A tensor that speaks DLPack as an array; anything else as it is.

    Memory that the CPU reads is not copied, nor what ``borrow`` takes; that of other devices is, as
    PyTorch's ``cpu()`` does.
    Raises InputError for what can be neither read nor copied.
    """
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return value
    try:
        borrowed = borrow(f"input {name!r}", value) if borrow else None
        if borrowed is not None:
            return borrowed
        if value.__dlpack_device__()[0] in CPU_MEMORY:
            return np.from_dlpack(value)
        if hasattr(value, "cpu"):
            return np.from_dlpack(value.cpu())
        return np.from_dlpack(value, device="cpu")
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"input {name!r} is a {type(value).__name__} that NumPy cannot read by DLPack "
            f"({error}); required a tensor without gradients that can be copied to the CPU's memory"
        ) from None


def name_inputs(
    signatures: Sequence[TensorSignature], inputs: Any, borrow: Borrow | None = None
) -> dict[str, Any]:
    """Inputs by name; an array alone is the only input.  borrow: as of ``as_array``.

    Raises InputError for an array alone where there are other than one, and for a tensor that
    NumPy cannot read.
    """
    if not isinstance(inputs, Mapping):
        if len(signatures) != 1:
            names = ", ".join(tensor.name for tensor in signatures)
            raise InputError(f"one array for the inputs {names}; required a mapping by name")
        inputs = {signatures[0].name: inputs}
    return {name: as_array(name, value, borrow) for name, value in inputs.items()}


def check_inputs(signatures: Sequence[TensorSignature], inputs: Arrays) -> None:
    """Raises InputError unless these are the inputs with ``signatures``."""
    wanted = {tensor.name: tensor for tensor in signatures}
    for name in inputs:
        if name not in wanted:
            raise InputError(
                f"the model has no input {name!r}; its inputs are: {', '.join(wanted)}"
            )
    for name, tensor in wanted.items():
        if name not in inputs:
            raise InputError(f"input {name!r} is missing; required {tensor.kind}")
        found = inputs[name]
        if not isinstance(found, np.ndarray | Borrowed):
            kind = type(found).__name__
            raise InputError(f"input {name!r} is a {kind}; required an array, {tensor.kind}")
        if not tensor.fits(found):
            raise InputError(
                f"input {name!r} is {found.dtype}{list(found.shape)}; required {tensor.kind}"
            )
