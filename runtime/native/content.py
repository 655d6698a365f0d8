"""What a module for CPUs holds: machine code and constants, and how they are found again."""

import mmap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModuleError
from ..module import Module
from .host import require_flags
from .image import Image
from .pool import PoolCode
from .program import ALIGNMENT, NativeProgram, ProgramCode

__all__ = ["array_type", "load_program", "to_content"]

Array = NDArray[Any]

PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def to_content(
    code: ProgramCode, constants: Sequence[Array], cpu: str, flags: Iterable[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Details and sections; cpu, flags: of the CPU that the code is for."""
    starts = [0]
    for array in constants:
        starts.append(starts[-1] + -(-array.nbytes // ALIGNMENT) * ALIGNMENT)
    size = max(-(-starts[-1] // mmap.PAGESIZE), 1) * mmap.PAGESIZE
    data = np.frombuffer(mmap.mmap(-1, size, PRIVATE), np.uint8)
    for start, array in zip(starts, constants, strict=False):
        data[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)
    places = [
        [str(array.dtype), list(array.shape), start]
        for start, array in zip(starts, constants, strict=False)
    ]
    details = {
        "constants": places,
        "cpu": cpu,
        "flags": list(flags),
        "imports": list(code.image.imports),
        "main": code.main,
        "memory_bytes": code.memory_bytes,
        "most_work": code.most_work,
        "pool": None if code.pool is None else asdict(code.pool),
        "stops": list(code.stops),
        "symbols": dict(code.image.symbols),
        "threads": code.threads,
    }
    return details, {"constants": data.data, "code": code.image.code}


def load_program(module: Module) -> NativeProgram:
    """The program of a module, ready to run; its constants stay in the module's memory.

    Raises ModuleError when it cannot be read, DeviceError when this CPU cannot run its code.
    """
    try:
        details = module.details
        require_flags(details["flags"], details["cpu"])
        code = ProgramCode(
            Image(module.sections["code"], details["symbols"], tuple(details["imports"])),
            details["main"],
            details["memory_bytes"],
            details["threads"],
            None if details["pool"] is None else PoolCode(**details["pool"]),
            details["most_work"],
            tuple(details["stops"]),
        )
        return NativeProgram(code, list(_constants(details, module.sections["constants"])))
    except (KeyError, ValueError, TypeError) as error:
        problem = f"no entry {error}" if isinstance(error, KeyError) else error
        raise ModuleError(
            f"the module's machine code cannot be read: {problem}; compile it again"
        ) from None


def _constants(details: Mapping[str, Any], data: bytes | memoryview) -> Iterable[Array]:
    for dtype, shape, offset in details["constants"]:
        kind = array_type(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        yield np.frombuffer(data, kind, count, offset).reshape(shape)


def array_type(name: str) -> np.dtype[Any]:
    """NumPy's type of that name."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)
