"""A small module made by hand: it copies its input through the accelerator's ACT memory."""

import numpy as np

from dovetail.isa.assembly import assemble
from dovetail.isa.configs import find_config
from dovetail.isa.program import program_to_bytes
from dovetail.runtime.accelerator.part import (
    AcceleratorPart,
    Blocks,
    LayerFigures,
    PartInput,
    PartOutput,
)
from dovetail.runtime.module import Module
from dovetail.runtime.tensors import TensorSignature

__all__ = ["SHAPE", "copy_module"]

SHAPE = (1, 2, 3, 8)
"""NHWC: two blocks of four channels, 12 words in all."""

WORDS = 12
INPUT, OUTPUT, PROGRAM, SIZE = 0, 64, 128, 256

COPY = f"""
load  memory=act sram_address=0 dram_address={INPUT} count_x={WORDS} post=store
store sram_address=0 dram_address={OUTPUT} count_x={WORDS} wait=load
"""


def copy_module(program: str = COPY, *, code: bytes | None = None) -> Module:
    """The module, for configuration ``tiny``; ``code`` stands in for the bytes of ``program``."""
    config = find_config("tiny")
    code = program_to_bytes(assemble(program, config)) if code is None else code
    dram = np.zeros(SIZE, np.uint8)
    dram[PROGRAM : PROGRAM + len(code)] = np.frombuffer(code, np.uint8)
    tensors = [TensorSignature(name, SHAPE, "int8") for name in "xy"]
    blocks = Blocks(2, 2, 3, 4)
    part = AcceleratorPart(
        configuration=config,
        fingerprint=config.fingerprint,
        dram=dram.tobytes(),
        program_address=PROGRAM,
        program_bytes=len(code),
        sources=(PartInput(tensors[0], (), INPUT, blocks),),
        results=(PartOutput(tensors[1], OUTPUT, blocks, SHAPE, (), 24),),
        layers=(LayerFigures("copy", "Copy", macs=0, dram_bytes=96),),
        layer_of=(0,) * (len(code) // 64),
    )
    return Module("vta:tiny", part.inputs, part.outputs, (part,))
