"""The ``cpu`` device: machine code, and models that are specialised as they run."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..module import Module
from ..targets import open_specialising
from .content import array_type, load_program
from .program import NativeProgram

__all__ = ["CpuDevice"]

Array = NDArray[Any]

LOADED = 8
"""Modules that a device keeps ready to run."""


class Specialising(Protocol):
    """A model that is compiled for what it is given."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name."""
        ...


class CpuDevice:
    """Runs modules compiled for ``cpu``."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[int, tuple[Module, NativeProgram | Specialising]] = OrderedDict()

    def run(self, module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the module's code; outputs by name.

        inputs: as the module's signatures say.
        Raises ModuleError when the module cannot be read, DeviceError when this CPU cannot run it,
        InputError for NaN where the model quantises its input, WorkLimitError when a loop does not
        end.
        """
        program = self._program(module)
        if not isinstance(program, NativeProgram):
            return program.run(inputs)
        arrays = {name: np.asarray(array, order="C") for name, array in inputs.items()}
        for name in module.details["numbers_only"]:
            with np.errstate(invalid="ignore"):
                least = arrays[name].min(initial=0)
            if np.isnan(least):
                missing = int(np.isnan(arrays[name]).sum())
                raise InputError(
                    f"input {name!r}: {missing} of {arrays[name].size} values are NaN; required "
                    "numbers"
                )
        results = {
            each.name: np.empty(each.shape, array_type(each.dtype)) for each in module.outputs
        }
        program.run([arrays[each.name] for each in module.inputs], list(results.values()))
        return results

    def _program(self, module: Module) -> NativeProgram | Specialising:
        """The module ready to run: from the last time, or loaded."""
        found = self._loaded.get(id(module))
        if found is None:
            opens = open_specialising if "model" in module.sections else load_program
            # Other threads may do the same: each step with what is shared is one of the dictionary.
            found = self._loaded[id(module)] = module, opens(module)
            while len(self._loaded) > LOADED:
                self._loaded.popitem(last=False)
        return found[1]
