"""The ``cpu`` device: machine code, and models that are compiled as they run."""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, InputError
from ..parts import Part
from ..result import RunResult
from .content import array_type, load_program
from .part import CpuPart

if TYPE_CHECKING:
    from ..device import PreparedPart

__all__ = ["CpuDevice"]

Array = NDArray[Any]

LOADED = 8
"""Parts that a device keeps ready to run."""


class CpuDevice:
    """Runs parts compiled for ``cpu``."""

    name = target_kind = "cpu"

    def __init__(self) -> None:
        self._loaded: OrderedDict[int, tuple[Part, PreparedPart]] = OrderedDict()

    def prepare(self, part: Part) -> "PreparedPart":
        """The part ready to run: from the last time, or loaded.

        Raises ModuleError when it cannot be read, DeviceError when this CPU cannot run it.
        """
        found = self._loaded.get(id(part))
        if found is None:
            with _loading:
                found = self._loaded.get(id(part))
                if found is None:
                    found = self._loaded[id(part)] = part, _load(part)
                    while len(self._loaded) > LOADED:
                        self._loaded.popitem(last=False)
        return found[1]

    def close(self) -> None:
        """There is nothing that others could not use at the same time."""


_loading = threading.Lock()
"""Held while a part is loaded: threads that ask for the same one get the same."""


def _forget_loading() -> None:
    """In a forked process, which has none of the threads that were loading."""
    global _loading
    _loading = threading.Lock()


os.register_at_fork(after_in_child=_forget_loading)


def _load(part: Part) -> "PreparedPart":
    if isinstance(part, CpuPart):
        return _Code(part)
    if part.kind == "model":
        try:
            compiler = import_module("dovetail.compiler.targets.cpu.native")
        except ImportError as error:
            raise DeviceError(
                f"the module has open shapes and is compiled as it runs, which needs {error.name}; "
                "install the extra: pip install 'dovetail[cpu]'"
            ) from None
        return _Model(part, compiler.load_specialising(part))
    raise DeviceError(f"'cpu' cannot run what was compiled for {part.target!r}")


class _Code:
    """Machine code."""

    def __init__(self, part: CpuPart) -> None:
        self._program = load_program(part)
        self._inputs = tuple(tensor.name for tensor in part.inputs)
        self._outputs = [(t.name, t.shape, array_type(t.dtype)) for t in part.outputs]
        self._numbers_only = part.numbers_only

    def run(self, inputs: Mapping[str, Array]) -> RunResult:
        """Raises InputError for NaN where the model quantises its input, WorkLimitError when a loop
        does not end.
        """
        begin = time.perf_counter()
        for name in self._numbers_only:
            _require_numbers(name, inputs[name])
        given = [np.asarray(inputs[name], order="C") for name in self._inputs]
        results = {name: np.empty(shape, dtype) for name, shape, dtype in self._outputs}
        self._program.run(given, list(results.values()))
        seconds = time.perf_counter() - begin
        return RunResult(results, "cpu", seconds, 0.0, seconds)


class _Model:
    """A model, with the compiler that runs it."""

    def __init__(self, part: Part, executor: Any) -> None:
        """executor: the compiler's."""
        self._inputs = tuple(tensor.name for tensor in part.inputs)
        self._executor = executor

    def run(self, inputs: Mapping[str, Array]) -> RunResult:
        """Raises what compiling raises, and WorkLimitError when a loop does not end."""
        begin = time.perf_counter()
        outputs = self._executor.run({name: inputs[name] for name in self._inputs})
        seconds = time.perf_counter() - begin
        return RunResult(outputs, "cpu", seconds, 0.0, seconds)


def _require_numbers(name: str, array: Array) -> None:
    with np.errstate(invalid="ignore"):
        least = array.min(initial=0)
    if np.isnan(least):
        missing = int(np.isnan(array).sum())
        raise InputError(
            f"input {name!r}: {missing} of {array.size} values are NaN; required numbers"
        )
