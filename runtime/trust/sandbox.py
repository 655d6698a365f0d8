"""Running a module in a process that can do nothing but compute.

The process is started again, with nothing of this one but two pipes.  It gets, each with its length
before it (8 bytes, little-endian): bytes of memory and seconds of processor time, the name of the
device, the module, and the inputs in the module's order.  It answers with a byte: 0 and the bytes
of all outputs in their order, or 1 and what went wrong.  The answer is taken for bytes alone, as
the code may have written it.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from math import prod
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..errors import DeviceError, RunError
from ..inputs import check_inputs, name_inputs
from ..module import Module
from ..native.content import array_type
from ..result import RunResult
from .child import DONE, HEAD_BYTES

__all__ = ["SandboxLimits", "run_sandboxed"]

Array = NDArray[Any]
MOST_TEXT = 2000
"""Characters of an error that are shown."""
DEVICES = ("", "sim", "cpu")
"""Devices that need neither programs nor ports of the system."""
KEPT = ("PATH", "LANG", "HOME", "DOVETAIL_CACHE", "LD_LIBRARY_PATH")
"""Environment variables of the process; none may be secret."""


@frozen
class SandboxLimits:
    """memory_bytes: address space, that of Python and NumPy included.  cpu_seconds: of all threads.

    wall_seconds: by the clock, waiting included.
    """

    memory_bytes: int = 8 << 30
    cpu_seconds: int = 600
    wall_seconds: float = 1200.0


def run_sandboxed(
    module: Module, inputs: Any, device: str = "", limits: SandboxLimits | None = None
) -> RunResult:
    """Run ``module`` once in a process of its own, on a device by its name, or the default one.

    Raises InputError as ``Session.run``; DeviceError when the process crashes or is stopped at one
    of its limits, and for a module that is compiled as it runs; RunError for what the run ends
    with, or where there is no sandbox.
    """
    limits, begin = limits or SandboxLimits(), time.perf_counter()
    values = name_inputs(module.inputs, inputs)
    check_inputs(module.inputs, values)
    opened = [each for each in (*module.inputs, *module.outputs) if -1 in each.shape]
    if opened or any(part.kind == "model" for part in module.parts):
        raise DeviceError(
            "a sandbox runs machine code; this module holds a model, which is compiled here as it "
            "runs; run it without --sandbox, or compile it with fixed sizes (--dim)"
        )
    pieces = [device.encode(), module.to_bytes()]
    pieces += [np.ascontiguousarray(values[tensor.name]).tobytes() for tensor in module.inputs]
    if device.partition(":")[0] not in DEVICES:
        raise DeviceError(f"device {device!r} in a sandbox; required {' or '.join(DEVICES[1:])}")
    given = _number(limits.memory_bytes) + _number(limits.cpu_seconds)
    given += b"".join(_number(len(each)) + each for each in pieces)
    answer = _answer(given, max(_size(module), MOST_TEXT) + 1, limits)
    outputs = _outputs(module, answer)
    seconds = time.perf_counter() - begin
    return RunResult(outputs, f"{device or 'default'} in a sandbox", seconds, 0.0, seconds)


def _size(module: Module) -> int:
    """Bytes of all outputs."""
    return sum(prod(each.shape) * array_type(each.dtype).itemsize for each in module.outputs)


def _number(value: int) -> bytes:
    return value.to_bytes(HEAD_BYTES, "little")


def _answer(given: bytes, most: int, limits: SandboxLimits) -> bytes:
    """The answer of the process, at most so many bytes of it."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    clock = threading.Timer(limits.wall_seconds, stop)
    writing = threading.Thread(target=_write, args=(process.stdin, given))
    answer = b""
    try:
        clock.start()
        writing.start()
        answer = process.stdout.read(most + 1)
    finally:
        if len(answer) > most:
            process.kill()
        process.wait()
        clock.cancel()
        writing.join()
        process.stdout.close()
    _require_ended(process.returncode, late.is_set(), limits)
    return answer


def _write(pipe: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), pipe:
        pipe.write(data)


def _require_ended(code: int, late: bool, limits: SandboxLimits) -> None:
    """Raises DeviceError unless the process ended normally."""
    if late:
        raise DeviceError(
            f"the sandbox was stopped after {limits.wall_seconds:g} s; check where the module "
            "comes from"
        )
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise DeviceError(
            f"the sandbox was stopped: its code took more than {limits.cpu_seconds} s of processor "
            "time, or more than it may; allow more (--sandbox-seconds), or check where the module "
            "comes from"
        )
    if code:
        raise DeviceError(
            f"the module's code ended its sandbox ({_ending(code)}); check where it comes from, or "
            "allow more memory (--sandbox-memory)"
        )


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _outputs(module: Module, answer: bytes) -> Mapping[str, Array]:
    if answer[:1] != DONE:
        said = answer[1:].decode("utf-8", "replace")[:MOST_TEXT]
        raise RunError(f"in the sandbox: {said or 'no answer'}")
    outputs: dict[str, Array] = {}
    place = 1
    for tensor in module.outputs:
        dtype = array_type(tensor.dtype)
        size = prod(tensor.shape) * dtype.itemsize
        piece = answer[place : place + size]
        if len(piece) < size:
            raise DeviceError(
                f"the sandbox returned {len(piece)} of {size} bytes of {tensor.name!r}"
            )
        outputs[tensor.name] = np.frombuffer(piece, dtype).reshape(tensor.shape)
        place += size
    return outputs
