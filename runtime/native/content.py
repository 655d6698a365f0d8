"""Contents of a part for CPUs: machine code and constants, and how they are found."""

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..manifest import Content
from .host import require_flags
from .part import Constant, CpuPart
from .program import ALIGNMENT, NativeProgram

__all__ = ["array_type", "load_program", "pack_constants"]

Array = NDArray[Any]

PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def pack_constants(constants: Sequence[Array]) -> tuple[tuple[Constant, ...], Content]:
    """Places of arrays, and the bytes of all, each at a multiple of ``ALIGNMENT``."""
    starts = [0]
    for array in constants:
        starts.append(starts[-1] + -(-array.nbytes // ALIGNMENT) * ALIGNMENT)
    size = max(-(-starts[-1] // mmap.PAGESIZE), 1) * mmap.PAGESIZE
    data = np.frombuffer(mmap.mmap(-1, size, PRIVATE), np.uint8)
    places = []
    for start, array in zip(starts, constants, strict=False):
        data[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)
        places.append(Constant(str(array.dtype), array.shape, start))
    return tuple(places), data.data


def load_program(part: CpuPart) -> NativeProgram:
    """The program of a part, ready to run; its constants stay in the part's memory.

    Raises ModuleError when it cannot be loaded, DeviceError when this CPU cannot run its code.
    """
    require_flags(part.flags, part.cpu)
    return NativeProgram(part.program, [_array(each, part.data) for each in part.constants])


def _array(place: Constant, data: Content) -> Array:
    count = int(np.prod(place.shape, dtype=np.int64))
    kind = array_type(place.dtype)
    return np.frombuffer(data, kind, count, place.offset).reshape(place.shape)


def array_type(name: str) -> np.dtype[Any]:
    """NumPy's type of that name."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)
