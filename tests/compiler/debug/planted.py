"""Modules with one fault each."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.compiler.debug.debugger import Debugger
from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.encoding import encode
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.module import Module
from dovetail.runtime.profile.flows import Flow

__all__ = [
    "Subject",
    "changed_bytes",
    "changed_instruction",
    "scaled",
    "subject",
    "without_token",
]


class Subject:
    """A compiled model, sound, its program and inputs."""

    def __init__(self, path: Path, target: str) -> None:
        self.model = onnx.load(path)
        self.module = compile(path, target=target)
        self.part = accelerator_part(self.module)
        self.config, self.program = self.part.configuration, self.part.program
        self.inputs: dict[str, NDArray[Any]] = dict(random_inputs(self.module))
        self.layer_of = self.part.layer_of

    def debug(self, module: Module, device: str = "sim") -> Debugger:
        """A debugger of ``module``."""
        return Debugger(module, self.inputs, device, self.model)

    def of_layer(self, number: int, unit: Unit) -> list[int]:
        """Instructions of a layer."""
        return [
            index
            for index, each in enumerate(self.program)
            if self.layer_of[index] == number and each.unit is unit
        ]


@cache
def subject(path: Path, target: str = "vta:tiny") -> Subject:
    """The same one every time."""
    return Subject(path, target)


def changed_bytes(module: Module, address: int, data: bytes) -> Module:
    """``module`` with other bytes in its DRAM."""
    part = accelerator_part(module)
    dram = bytearray(part.dram)
    dram[address : address + len(data)] = data
    return replace(module, parts=(replace(part, dram=bytes(dram)),))


def changed_instruction(whole: Subject, index: int, **fields: Any) -> Module:
    """The module with other values in one instruction, and the bank masks they need."""
    instruction: Instruction = replace(whole.program[index], **fields)
    return _put(whole.module, index, with_bank_masks(instruction, whole.config))


def without_token(whole: Subject, flow: Flow) -> Module:
    """The module without one token: neither given nor waited for."""
    giver, taker = whole.program[flow.source], whole.program[flow.target]
    module = _put(whole.module, flow.source, replace(giver, post=giver.post - {taker.unit}))
    return _put(module, flow.target, replace(taker, wait=taker.wait - {giver.unit}))


def _put(module: Module, index: int, instruction: Instruction) -> Module:
    address = accelerator_part(module).program_address + index * INSTRUCTION_BYTES
    return changed_bytes(module, address, encode(instruction))


def scaled(data: bytes, factor: float) -> bytes:
    """One float32, times ``factor``."""
    value = np.frombuffer(data, np.float32) * np.float32(factor)
    return value.astype(np.float32).tobytes()
