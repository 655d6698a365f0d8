"""Running a module for CPUs."""

import time
from collections.abc import Mapping
from typing import Any

from ..errors import DeviceError
from ..inputs import as_array, check_inputs
from ..module import Module
from ..result import RunResult
from ..targets import open_device, split_device

__all__ = ["execute_native"]


def execute_native(module: Module, inputs: Mapping[str, Any], device_name: str) -> RunResult:
    """Run ``module`` once on the device called ``device_name``, which must be this CPU.

    Raises InputError, ModuleError, DeviceError.
    """
    begin = time.perf_counter()
    kind, _ = split_device(device_name)
    arrays = {name: as_array(name, value) for name, value in inputs.items()}
    check_inputs(module, arrays)
    if kind != "cpu":
        raise DeviceError(
            f"the module was compiled for 'cpu' and cannot run on {device_name!r}; "
            "use --device cpu, or compile with --target vta:CONFIG"
        )
    outputs = open_device("cpu").run(module, arrays)
    seconds = time.perf_counter() - begin
    return RunResult(outputs, device_name, seconds, 0.0, seconds)
