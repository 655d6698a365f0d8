"""A small module made by hand: it copies its input through the accelerator's ACT memory."""

import numpy as np

from dovetail.isa.assembly import assemble
from dovetail.isa.configs import find_config
from dovetail.isa.program import program_to_bytes
from dovetail.runtime.module import Module, TensorSignature

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
    count = len(code) // 64
    return Module(
        target="vta:tiny",
        inputs=(TensorSignature("x", SHAPE, "int8"),),
        outputs=(TensorSignature("y", SHAPE, "int8"),),
        details={
            "config": "tiny",
            "fingerprint": config.fingerprint,
            "program_address": PROGRAM,
            "program_bytes": len(code),
            "input_address": INPUT,
            "output_address": OUTPUT,
            "output_blocked_shape": [2, 2, 3, 4],
            "output_shape": list(SHAPE),
            "prefix": [],
            "suffix": [],
            "layers": [{"name": "copy", "kind": "Copy", "macs": 0, "dram_bytes": 96}],
            "layer_of": [0] * count,
        },
        sections={"dram": dram.tobytes()},
    )
