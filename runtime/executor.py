"""Running a module: host steps, one launch, host steps."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.launch import Launch

from .errors import DeviceError, ModuleError
from .host import pack, pack_rows, run_steps, unpack
from .inputs import as_array, check_inputs
from .launch import account, find_device, run_launch
from .module import Module
from .native.execute import execute_native
from .parts import merge_results, parts_of
from .result import RunResult
from .targets import split_device

__all__ = ["config_of", "execute", "prepare_launch", "reach_accelerator"]

Arrays = Mapping[str, NDArray[Any]]


def execute(module: Module, inputs: Mapping[str, Any], device_name: str) -> RunResult:
    """Run ``module`` once on the device called ``device_name``.

    The name may pin a configuration ("sim:tiny").  Raises InputError, ModuleError, DeviceError.
    """
    if module.target == "cpu":
        return execute_native(module, inputs, device_name)
    begin = time.perf_counter()
    split_device(device_name)
    inputs = {name: as_array(name, value) for name, value in inputs.items()}
    check_inputs(module, inputs)
    if "parts" in module.details:
        return _run_parts(module, inputs, device_name, begin)
    return _accelerate(module, config_of(module), inputs, device_name, begin)


def _run_parts(module: Module, inputs: Arrays, device_name: str, begin: float) -> RunResult:
    """The parts of a module, one after the other: the accelerator's on the device, others here."""
    find_device(device_name, config_of(module))
    values, results = dict(inputs), []
    for part in parts_of(module):
        given = {tensor.name: values[tensor.name] for tensor in part.module.inputs}
        result = execute(part.module, given, device_name if part.on_accelerator else "cpu")
        values |= result.outputs
        results.append((part, result))
    return merge_results(results, module, time.perf_counter() - begin)


def reach_accelerator(module: Module, inputs: Arrays) -> tuple[Module, dict[str, NDArray[Any]]]:
    """The part of ``module`` for the accelerator, itself if it has none, and its inputs: the parts
    before it run on the CPU.

    Raises InputError for inputs that are not the module's, DeviceError when no part is for the
    accelerator.
    """
    check_inputs(module, inputs)
    values = dict(inputs)
    for part in parts_of(module):
        given = {tensor.name: values[tensor.name] for tensor in part.module.inputs}
        if part.on_accelerator:
            return part.module, given
        values |= execute(part.module, given, "cpu").outputs
    raise DeviceError(f"the module was compiled for {module.target!r}; required one for vta:CONFIG")


def config_of(module: Module) -> HardwareConfig:
    """The configuration an accelerator module is for.

    Raises ModuleError when this version's configuration of that name is another one.
    """
    name = str(module.details["config"])
    config = find_config(name)
    if config.fingerprint != module.details["fingerprint"]:
        raise ModuleError(
            f"the module was compiled for another configuration {name!r}: fingerprint "
            f"{module.details['fingerprint']:#010x}, this version's is {config.fingerprint:#010x}; "
            "compile it again"
        )
    return config


def prepare_launch(module: Module, config: HardwareConfig, inputs: Arrays) -> Launch:
    """The launch of one inference: the module's DRAM with the input in its place."""
    details = module.details
    dram = np.frombuffer(module.sections["dram"], np.uint8).copy()
    x = run_steps(details["prefix"], np.asarray(inputs[module.inputs[0].name]))
    image = details.get("input_image")
    placed = pack_rows(x, image["pitch"], image["transposed"]) if image else pack(x, config.block)
    packed = placed.reshape(-1).view(np.uint8)
    dram[details["input_address"] : details["input_address"] + packed.size] = packed
    count = details["program_bytes"] // INSTRUCTION_BYTES
    result = (details["output_address"], int(np.prod(details["output_blocked_shape"])))
    return Launch(config, dram, details["program_address"], count, reads=(result,))


def _accelerate(
    module: Module, config: HardwareConfig, inputs: Arrays, device_name: str, begin: float
) -> RunResult:
    """One inference on an accelerator; ``begin`` is when it was asked for."""
    details = module.details
    device = find_device(device_name, config)
    launch = prepare_launch(module, config, inputs)
    started = time.perf_counter()
    done = run_launch(launch, device, device_name)
    ended = time.perf_counter()
    shape, place = details["output_blocked_shape"], details["output_address"]
    raw = done.dram[place : place + int(np.prod(shape))].view(np.int8).reshape(shape)
    output = run_steps(details["suffix"], unpack(raw, details["output_shape"]))
    finish = time.perf_counter()
    return account(
        launch,
        done,
        outputs={module.outputs[0].name: output},
        device_name=device_name,
        layer_of=details["layer_of"],
        macs=sum(layer["macs"] for layer in details["layers"]),
        wall_seconds=finish - begin,
        host_seconds=(started - begin) + (finish - ended),
    )
