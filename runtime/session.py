"""Running modules: a session keeps a module's parts ready on their devices."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, overload, runtime_checkable

from numpy.typing import NDArray

from .batches import join_batch, split_batch
from .devices import DEVICES, HOST, default_device, open_device
from .dlpack import Borrowed
from .errors import DeviceError, InputError, ModuleError
from .inputs import check_inputs, name_inputs
from .module import Module
from .parts import Part, target_kind
from .result import RunResult, join_results

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from .device import Device

__all__ = ["Session", "choose_device", "run", "values_before"]

Array = NDArray[Any]
Inputs = Mapping[str, Any] | Any
"""Arrays by name, or the only one: NumPy's, or of any library that speaks DLPack.  Those in the
CPU's memory are not copied."""
Asked: TypeAlias = "str | Device"
"""A device, or its name."""
CLOSED = "the session is closed; open another one"


@runtime_checkable
class _Sharing(Protocol):
    """A part that is ready on a device whose memory other libraries use."""

    def borrow(self, what: str, value: Any) -> Borrowed | None:
        """See ``Borrow``."""
        ...

    def run_on_device(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """See ``Session``."""
        ...


class Session:
    """A module, ready to run on a device as often as wanted.

    Attributes: ``module``, ``inputs`` and ``outputs`` (its signatures), ``device`` (as asked for).
    """

    def __init__(
        self,
        module: Module | Path | str,
        device: "Asked | Sequence[Asked] | None" = None,
        require_signature: Path | str | None = None,
        workers: int = 1,
    ) -> None:
        """module: or the path of its file.

        device: or its name; several for a module with parts of several targets; None for the first
        device of the table that each part can run on.  This CPU runs the parts that are for it
        besides those for the devices asked for.
        require_signature: a file with the public key that the module must be signed by.
        workers: threads of ``run_async`` and ``run_batch``, for devices that run in several:
        ``sim``, and also ``cpu``.
        Raises ModuleError, InputError for no workers, and DeviceError for a part that no device is
        for.
        """
        if workers < 1:
            raise InputError(f"{workers} workers; required 1 or more")
        self.module = _loaded(module, require_signature)
        self.inputs, self.outputs = self.module.inputs, self.module.outputs
        self._asked = _opened(device)
        devices = [choose_device(self.module, part, self._asked) for part in self.module.parts]
        self.device = ", ".join(dict.fromkeys(each.name for each in self._asked or devices))
        self._parts = [
            each.prepare(part) for part, each in zip(self.module.parts, devices, strict=True)
        ]
        self._workers = workers
        self._pool: ThreadPoolExecutor | None = None
        self._is_one = [part.outputs for part in self.module.parts] == [self.outputs]

    @overload
    def run(self, inputs: Inputs, /) -> RunResult: ...

    @overload
    def run(self, outputs: Sequence[str] | None, inputs: Inputs, /) -> list[Array]: ...

    def run(self, first: Any, second: Any = None, /) -> RunResult | list[Array]:
        """Run once.

        With inputs alone: everything that is known about the run.  With the names of outputs, or
        None for all, before them: those outputs, in this order, as ONNX Runtime gives them.
        Raises InputError for a wrong name, shape or type, DeviceError when a device stops with an
        error.
        """
        return self._ask(self._run, first, second)

    @overload
    def run_batch(self, inputs: Inputs, /) -> RunResult: ...

    @overload
    def run_batch(self, outputs: Sequence[str] | None, inputs: Inputs, /) -> list[Array]: ...

    def run_batch(self, first: Any, second: Any = None, /) -> RunResult | list[Array]:
        """As ``run``, of a batch through a module of one sample: once for each.

        Inputs and outputs have a sample for each index of their first dimension, which stands in
        place of a 1 or an open size, or before all others where there is neither.  Cycles and
        other figures are those of all samples together.
        Raises as ``run``, and InputError for different numbers of samples.
        """
        return self._ask(self._run_batch, first, second)

    @overload
    def run_async(self, inputs: Inputs, /) -> "Future[RunResult]": ...

    @overload
    def run_async(
        self, outputs: Sequence[str] | None, inputs: Inputs, /
    ) -> "Future[list[Array]]": ...

    def run_async(self, first: Any, second: Any = None, /) -> "Future[Any]":
        """As ``run``, which begins as soon as those asked for before it have: what is asked for
        first runs first.  Any number may be under way.

        Gives a future: ``result()`` waits and gives or raises what ``run`` does;
        ``asyncio.wrap_future`` makes it awaitable.  The inputs must not change until then.
        Raises DeviceError for a session that is closed.
        """
        return self._threads().submit(self._ask, self._run, first, second)

    def run_on_device(self, inputs: Inputs, /) -> Mapping[str, Any]:
        """Run once, and leave the outputs where the device has them.

        Gives tensors by name that speak DLPack: ``torch.from_dlpack`` takes them without a copy.
        On ``cuda`` they are ``DeviceTensor``, perhaps still being computed, and tensors of other
        libraries on that GPU are read where they are, as in ``run``; they must not change before
        the run is done.  Elsewhere they are arrays.
        Raises as ``run``.
        """
        if self._is_one and self._parts:
            ready = self._parts[0]
            if isinstance(ready, _Sharing):
                return ready.run_on_device(self._values(inputs))
        return self._run(inputs).outputs

    def close(self) -> None:
        """Let go of the parts, and of the devices where others may want them.

        Waits for what ``run_async`` was asked for.
        """
        if self._pool is not None:
            self._pool.shutdown()
        self._parts = []
        for each in self._asked:
            each.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, how: Callable[[Any], RunResult], first: Any, second: Any) -> Any:
        """Run with inputs alone, or with names of outputs before them."""
        if second is None:
            return how(first)
        names = [tensor.name for tensor in self.outputs] if first is None else list(first)
        for name in names:
            if all(name != tensor.name for tensor in self.outputs):
                known = ", ".join(tensor.name for tensor in self.outputs)
                raise InputError(f"the model has no output {name!r}; its outputs are: {known}")
        outputs = how(second).outputs
        return [outputs[name] for name in names]

    def _run_batch(self, inputs: Inputs) -> RunResult:
        begin = time.perf_counter()
        samples = split_batch(self.inputs, name_inputs(self.inputs, inputs))
        runs = self._threads().map if self._workers > 1 else map
        results = list(runs(self._run, samples))
        return join_batch(self.outputs, results, time.perf_counter() - begin)

    def _threads(self) -> "ThreadPoolExecutor":
        """Started when they are first needed."""
        if not self._parts:
            raise DeviceError(CLOSED)
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._workers, "dovetail")
        return self._pool

    def _values(self, inputs: Inputs) -> dict[str, Any]:
        """The inputs by name, as the only part takes them."""
        ready = self._parts[0] if self._is_one and self._parts else None
        borrow = ready.borrow if isinstance(ready, _Sharing) else None
        values = name_inputs(self.inputs, inputs, borrow)
        check_inputs(self.inputs, values)
        return values

    def _run(self, inputs: Inputs) -> RunResult:
        begin = time.perf_counter()
        values = self._values(inputs)
        if not self._parts:
            raise DeviceError(CLOSED)
        if self._is_one:
            return self._parts[0].run(values)
        results = []
        for ready in self._parts:
            results.append(ready.run(values))
            values |= results[-1].outputs
        outputs = {tensor.name: values[tensor.name] for tensor in self.outputs}
        return join_results(results, outputs, self.device, time.perf_counter() - begin)


def run(
    module: Module, inputs: Inputs, device: "Asked | Sequence[Asked] | None" = None
) -> RunResult:
    """Run ``module`` once; a ``Session`` is faster for many runs.

    Raises as ``Session`` and its ``run``.
    """
    return Session(module, device).run(inputs)


def values_before(module: Module, part: Part, inputs: Inputs) -> dict[str, Array]:
    """The tensors there are when ``part`` of ``module`` begins: parts before it run.

    Raises as ``Session`` and its ``run``.
    """
    values = name_inputs(module.inputs, inputs)
    check_inputs(module.inputs, values)
    for each in module.parts:
        if each is part:
            break
        values |= choose_device(module, each).prepare(each).run(values).outputs
    return values


def _loaded(module: Module | Path | str, key: Path | str | None) -> Module:
    if isinstance(module, Module):
        if key is not None:
            raise ModuleError("a module in memory has no signature; required the path of its file")
        return module
    if key is None:
        return Module.load(Path(module))
    from .trust.signature import load_signed

    return load_signed(Path(module), Path(key))


def _opened(device: "Asked | Sequence[Asked] | None") -> "tuple[Device, ...]":
    several = device if isinstance(device, list | tuple) else () if device is None else (device,)
    return tuple(open_device(each) if isinstance(each, str) else each for each in several)


def choose_device(module: Module, part: Part, asked: "Sequence[Device]" = ()) -> "Device":
    """The device for ``part``: the first of those asked for that is for its target, this CPU beside
    them, or the default if none was asked for.

    Raises DeviceError when there is none, and when no part of ``module`` is for those asked for.
    """
    kind = target_kind(part.target)
    for device in asked:
        if device.target_kind == kind:
            return device
    if asked:
        wanted = {each.target_kind for each in asked}
        others = any(target_kind(each.target) in wanted for each in module.parts)
        name = HOST if others and DEVICES[HOST].target_kind == kind else None
    else:
        name = default_device(kind)
    if name is None:
        where = f" on {', '.join(repr(each.name) for each in asked)}" if asked else ""
        suited = [name for name, each in DEVICES.items() if each.target_kind == kind]
        hint = f"use device {' or '.join(suited)}" if suited else "give a device for it"
        raise DeviceError(
            f"what was compiled for {part.target!r} cannot run{where}; {hint}, or compile for "
            "another target"
        )
    return open_device(name)
