"""The process in a sandbox: it reads a module, confines itself, and runs the module once.

Reads from standard input, writes to standard output, both raw: see ``sandbox.py``.
"""

import sys
from typing import BinaryIO

import numpy as np

from dovetail.isa.errors import DovetailError

from ..module import Module
from ..native.content import array_type
from ..session import Session, choose_device
from .confine import confine, limit

__all__ = ["main"]

HEAD_BYTES = 8
DONE, FAILED = b"\0", b"\1"


def main(source: BinaryIO, sink: BinaryIO) -> None:
    """Run the module that ``source`` holds, with what it holds besides."""
    try:
        outputs = _run(source)
    except (DovetailError, MemoryError, OSError, ImportError, ValueError) as error:
        sink.write(FAILED + (str(error) or type(error).__name__).encode("utf-8", "replace"))
    else:
        sink.write(DONE)
        for array in outputs:
            sink.write(np.ascontiguousarray(array).tobytes())
    sink.flush()


def _run(source: BinaryIO) -> list["np.typing.NDArray[np.generic]"]:
    def number() -> int:
        return int.from_bytes(source.read(HEAD_BYTES), "little")

    limit(number(), number())
    device = source.read(number()).decode()
    module = Module.from_bytes(source.read(number()))
    inputs = {}
    for tensor in module.inputs:
        data = np.frombuffer(source.read(number()), array_type(tensor.dtype))
        inputs[tensor.name] = data.reshape(tensor.shape)
    session = Session(module, device or None)
    _warm(module)
    confine()
    return [np.asarray(session.run(inputs).outputs[tensor.name]) for tensor in module.outputs]


def _warm(module: Module) -> None:
    """Run programs of the accelerator, which are data, on zeros: the simulator then has what it
    needs of files.
    """
    for part in module.parts:
        if part.kind == "accelerator":
            zeros = {
                each.name: np.zeros(each.shape, array_type(each.dtype)) for each in part.inputs
            }
            choose_device(module, part).prepare(part).run(zeros)


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
