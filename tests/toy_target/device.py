"""Modules of the toy target, and the device that runs them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dovetail.runtime.errors import DeviceError
from dovetail.runtime.parts import Part
from dovetail.runtime.result import RunResult
from dovetail.runtime.tensors import TensorSignature

__all__ = ["SourceDevice", "SourcePart"]


@dataclass(frozen=True, slots=True)
class SourcePart:
    """See ``runtime/parts.py``."""

    kind: ClassVar[str] = "numpy source"

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    source: str

    @property
    def target(self) -> str:
        return "numpy"


@dataclass(frozen=True, slots=True)
class _Ready:
    part: SourcePart
    function: Callable[..., list[NDArray[Any]]]

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> RunResult:
        begin = time.perf_counter()
        given = [np.asarray(inputs[each.name]) for each in self.part.inputs]
        found = self.function(*given)
        outputs = dict(zip((each.name for each in self.part.outputs), found, strict=True))
        seconds = time.perf_counter() - begin
        return RunResult(outputs, "numpy", seconds, 0.0, seconds)


class SourceDevice:
    """See ``runtime/device.py``."""

    name = "numpy"
    target_kind = "numpy"

    def prepare(self, part: Part) -> _Ready:
        if not isinstance(part, SourcePart):
            raise DeviceError(f"numpy cannot run a part of kind {part.kind}")
        space: dict[str, Any] = {}
        exec(compile(part.source, "<module>", "exec"), space)
        return _Ready(part, space["run"])

    def close(self) -> None:
        pass
