"""The ``cpu`` device: machine code, and models that are specialised as they run."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.runtime.errors import InputError
from dovetail.runtime.module import Module

from .executor.executor import Executor
from .native import NativeModule, load_native

__all__ = ["CpuDevice"]

Array = NDArray[Any]

LOADED = 8
"""Modules that a device keeps ready to run."""


class CpuDevice:
    """Runs modules compiled for ``cpu``."""

    def __init__(self) -> None:
        self._loaded: dict[int, tuple[Module, NativeModule]] = {}

    def run(self, module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the module's code; outputs by name.

        Raises ModuleError when the module cannot be read, TargetError when this CPU cannot run it,
        InputError for NaN where the model quantises its input.
        """
        native = self._native(module)
        if isinstance(native, Executor):
            return native.run(inputs)
        arrays = {name: np.asarray(array, order="C") for name, array in inputs.items()}
        for name in module.details["numbers_only"]:
            missing = int(np.isnan(arrays[name]).sum())
            if missing:
                raise InputError(
                    f"input {name!r}: {missing} of {arrays[name].size} values are NaN; required "
                    "numbers"
                )
        results = native.run(arrays)
        return {each.name: array for each, array in zip(module.outputs, results, strict=True)}

    def _native(self, module: Module) -> NativeModule:
        """The module ready to run: from the last time, or loaded."""
        if id(module) not in self._loaded:
            if len(self._loaded) >= LOADED:
                self._loaded.pop(next(iter(self._loaded)))
            self._loaded[id(module)] = module, load_native(module)
        return self._loaded[id(module)][1]
