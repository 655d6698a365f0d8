"""Running modules: a session keeps a module's parts ready on their devices."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, overload

from numpy.typing import NDArray

from .device import Device, Ready
from .devices import DEVICES, HOST, default_device, open_device
from .errors import DeviceError, InputError
from .inputs import check_inputs, name_inputs
from .module import Module
from .parts import Part, target_kind
from .result import RunResult, join_results

__all__ = ["Session", "choose_device", "run", "values_before"]

Array = NDArray[Any]
Inputs = Mapping[str, Any] | Any
"""Arrays by name, or the only one: NumPy's, or of any library that speaks DLPack, in the CPU's
memory; they are not copied."""


class Session:
    """A module, ready to run on a device as often as wanted.

    Attributes: ``module``, ``inputs`` and ``outputs`` (its signatures), ``device`` (as asked for).
    """

    def __init__(self, module: Module | Path | str, device: str | Device | None = None) -> None:
        """module: or the path of its file.  device: or its name; None for the first device of the
        table that each part can run on.  Parts that are not for the device run on this CPU.

        Raises ModuleError, and DeviceError when no part is for the device.
        """
        self.module = module if isinstance(module, Module) else Module.load(Path(module))
        self.inputs, self.outputs = self.module.inputs, self.module.outputs
        asked = open_device(device) if isinstance(device, str) else device
        devices = [choose_device(self.module, part, asked) for part in self.module.parts]
        self.device = asked.name if asked else devices[0].name if devices else HOST
        self._asked = asked
        self._parts: list[tuple[Part, Ready]] = [
            (part, each.prepare(part))
            for part, each in zip(self.module.parts, devices, strict=True)
        ]

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
        if second is None:
            return self._run(first)
        names = [tensor.name for tensor in self.outputs] if first is None else list(first)
        for name in names:
            if all(name != tensor.name for tensor in self.outputs):
                known = ", ".join(tensor.name for tensor in self.outputs)
                raise InputError(f"the model has no output {name!r}; its outputs are: {known}")
        outputs = self._run(second).outputs
        return [outputs[name] for name in names]

    def close(self) -> None:
        """Let go of the module, and of the device where others may want it."""
        self._parts = []
        if self._asked is not None:
            self._asked.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, inputs: Inputs) -> RunResult:
        begin = time.perf_counter()
        values = name_inputs(self.inputs, inputs)
        check_inputs(self.inputs, values)
        if len(self._parts) == 1:
            return self._parts[0][1].run(values)
        if not self._parts:
            raise DeviceError("the session is closed; open another one")
        results = []
        for _, ready in self._parts:
            results.append(ready.run(values))
            values |= results[-1].outputs
        outputs = {tensor.name: values[tensor.name] for tensor in self.outputs}
        return join_results(results, outputs, self.device, time.perf_counter() - begin)


def run(module: Module, inputs: Inputs, device: str | Device | None = None) -> RunResult:
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
        values |= choose_device(module, each, None).prepare(each).run(values).outputs
    return values


def choose_device(module: Module, part: Part, asked: Device | None) -> Device:
    """The device for ``part``: the one asked for, this CPU beside it, or the default.

    Raises DeviceError when there is none, and when no part of ``module`` is for the one asked for.
    """
    kind = target_kind(part.target)
    if asked is not None and asked.target_kind == kind:
        return asked
    if asked is None:
        name = default_device(kind)
    else:
        others = any(target_kind(each.target) == asked.target_kind for each in module.parts)
        name = HOST if others and DEVICES[HOST].target_kind == kind else None
    if name is None:
        where = f" on {asked.name!r}" if asked else ""
        suited = [name for name, each in DEVICES.items() if each.target_kind == kind]
        raise DeviceError(
            f"what was compiled for {part.target!r} cannot run{where}; "
            f"use device {' or '.join(suited) or 'object'}, or compile for that device"
        )
    return open_device(name)
