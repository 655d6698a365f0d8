"""A part of kernels on a machine that launches them."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import WorkLimitError
from ..native.content import array_type
from ..result import RunResult
from .arena import size_of
from .part import GpuPart, KernelEntry, Launch, Place, Repeat, Space

__all__ = ["Machine", "Prepared", "ReadyPart"]

Array = NDArray[Any]
Prepared = tuple[Any, KernelEntry, Sequence[tuple[Any, int]]]
"""Arguments of ``Machine.launch``."""


class Machine(Protocol):
    """Operations of a kind of GPU; steps run in the order in which they are asked for."""

    def compile(self, part: GpuPart) -> Sequence[Any]:
        """The kernels of a part, in order.  Raises DeviceError when they cannot be compiled."""
        ...

    def allocate(self, size: int) -> Any:
        """A memory of ``size`` bytes.  Raises DeviceError when there is not so much."""
        ...

    def write(self, memory: Any, offset: int, array: Array) -> None:
        """Copy a contiguous array to the device."""
        ...

    def read(self, memory: Any, offset: int, array: Array) -> None:
        """Copy from the device, after all that was launched, into a contiguous array."""
        ...

    def launch(self, kernel: Any, entry: KernelEntry, places: Sequence[tuple[Any, int]]) -> None:
        """Run a kernel; places: memories and offsets in bytes, one for each parameter."""
        ...

    def gather(self, launches: Sequence[Prepared]) -> Callable[[], None] | None:
        """A function that runs all launches, in order, at the cost of about one; None without such
        a way.
        """
        ...


class ReadyPart:
    """A part whose kernels are compiled and whose constants are on the device."""

    def __init__(self, name: str, machine: Machine, part: GpuPart) -> None:
        """name: of the device, for results."""
        self._name, self._machine, self._part = name, machine, part
        self._kernels = machine.compile(part)
        data = np.frombuffer(part.data, np.uint8)
        self._data = machine.allocate(max(data.size, 1))
        if data.size:
            machine.write(self._data, 0, data)
        self._memory = machine.allocate(max(part.memory_bytes, 1))
        self._inputs = [machine.allocate(max(size_of(each), 1)) for each in part.inputs]
        self._outputs = [machine.allocate(max(size_of(each), 1)) for each in part.outputs]
        self._whole = self._gathered()
        self._rest = 0
        self._lock = threading.Lock()

    def run(self, inputs: Mapping[str, Array]) -> RunResult:
        """One run.  Raises WorkLimitError when a loop does not end."""
        with self._lock:
            return self._run(inputs)

    def _gathered(self) -> Callable[[], None] | None:
        """All launches as one, where there are no loops around any: their places never change."""
        steps = [each for each in self._part.steps if isinstance(each, Launch)]
        if len(steps) < max(len(self._part.steps), 2):
            return None
        return self._machine.gather([self._prepared(each, ()) for each in steps])

    def _prepared(self, step: Launch, indices: tuple[int, ...]) -> Prepared:
        places = [self._where(place, indices) for place in step.places]
        return self._kernels[step.kernel], self._part.kernels[step.kernel], places

    def time(self, runs: int) -> float:
        """Seconds of a run on the device, without copies, after one with inputs."""
        with self._lock:
            nothing = np.empty(1, np.uint8)
            begin = time.perf_counter()
            for _ in range(runs):
                self._all()
            self._machine.read(self._outputs[0], 0, nothing)
            return (time.perf_counter() - begin) / runs

    def _run(self, inputs: Mapping[str, Array]) -> RunResult:
        begin = time.perf_counter()
        self._launched(inputs)
        results = {}
        for signature, memory in zip(self._part.outputs, self._outputs, strict=True):
            found = np.empty(signature.shape, array_type(signature.dtype))
            if found.nbytes:
                self._machine.read(memory, 0, found.reshape(-1).view(np.uint8))
            results[signature.name] = found
        seconds = time.perf_counter() - begin
        return RunResult(results, self._name, seconds, 0.0, seconds)

    def _launched(self, inputs: Mapping[str, Any]) -> None:
        """Give the device the inputs, and launch all."""
        for signature, memory in zip(self._part.inputs, self._inputs, strict=True):
            self._write(memory, inputs[signature.name])
        self._all()

    def _write(self, memory: Any, value: Array) -> None:
        given = np.ascontiguousarray(value)
        if given.nbytes:
            self._machine.write(memory, 0, given.reshape(-1).view(np.uint8))

    def _all(self) -> None:
        """All launches."""
        if self._whole is not None:
            self._whole()
            return
        self._rest = self._part.most_work
        self._steps(0, len(self._part.steps), ())

    def _steps(self, start: int, end: int, indices: tuple[int, ...]) -> None:
        """The steps from ``start`` to before ``end``; indices: the iterations of loops around."""
        while start < end:
            step = self._part.steps[start]
            start += 1
            if isinstance(step, Launch):
                self._machine.launch(*self._prepared(step, indices))
            else:
                self._loop(step, start, indices)
                start += step.body + step.last

    def _loop(self, loop: Repeat, start: int, indices: tuple[int, ...]) -> None:
        done = 0
        again = loop.count > 0 and (loop.guard is None or self._holds(loop.guard, indices))
        while again:
            if loop.counter is not None:
                self._set(loop.counter, done, indices)
            self._steps(start, start + loop.body, (*indices, done))
            done += 1
            again = done < loop.count
            if loop.condition is not None:
                again = self._holds(loop.condition, indices) and again
                self._rest -= max(loop.work, 1)
                if again and self._rest < 0:
                    raise WorkLimitError(
                        f"node {loop.origin!r}: its loop has not ended after "
                        f"{self._part.most_work:.2g} reads and writes of elements, as many as are "
                        "allowed; allow more (--most-work, DOVETAIL_MOST_WORK) or check its "
                        "condition"
                    )
        if loop.done is not None:
            self._set(loop.done, done, indices)
        self._steps(start + loop.body, start + loop.body + loop.last, (*indices, done))

    def _where(self, place: Place, indices: tuple[int, ...]) -> tuple[Any, int]:
        offset = place.offset
        for depth, size, alternating in place.strides:
            offset += size * (indices[depth] % 2 if alternating else indices[depth])
        match place.space:
            case Space.INPUT:
                return self._inputs[place.number], offset
            case Space.OUTPUT:
                return self._outputs[place.number], offset
            case Space.CONSTANT:
                return self._data, self._part.constants[place.number].offset + offset
            case Space.MEMORY:
                return self._memory, offset

    def _holds(self, place: Place, indices: tuple[int, ...]) -> bool:
        found = np.empty(1, np.uint8)
        self._machine.read(*self._where(place, indices), found)
        return bool(found[0])

    def _set(self, place: Place, value: int, indices: tuple[int, ...]) -> None:
        number = np.array([value], np.int64).view(np.uint8)
        self._machine.write(*self._where(place, indices), number)
