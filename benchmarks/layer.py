"""One large convolution as a program written by hand, in strips of rows that are loaded, computed
and stored.

int8 ``size x size x channels`` to the same, 3x3, padding 1, for the configuration ``zynq7020``: the
activations do not fit on chip whole.
"""

from dataclasses import dataclass

import numpy as np

from dovetail.compiler.targets.vta.check import check
from dovetail.compiler.targets.vta.tokens import insert_tokens
from dovetail.isa.config import HardwareConfig
from dovetail.isa.encoding import encode
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Finish, Gemm, Instruction, Load, Store, Vector
from dovetail.isa.launch import Launch
from dovetail.isa.memories import Memory

__all__ = ["LayerProgram", "convolution_launch"]

KERNEL = 3
ROWS = 7
"""Output rows of a strip."""


@dataclass(frozen=True, slots=True)
class LayerProgram:
    """The launch, and the multiply-accumulates of the layer."""

    launch: Launch
    macs: int


def convolution_launch(config: HardwareConfig, size: int, channels: int) -> LayerProgram:
    """The layer with random weights and input; ``ROWS`` divides ``size``, ``block`` divides
    ``channels``.
    """
    rng = np.random.default_rng(0)
    lanes, blocks = config.block, channels // config.block
    tiles = blocks * KERNEL * KERNEL
    word, tile = config.word_bytes(Memory.ACT), config.word_bytes(Memory.WGT)
    plane = size * size * word
    input_at, output_at = 0, blocks * plane
    weights_at = output_at + blocks * plane
    parameters_at = weights_at + blocks * tiles * tile
    program_at = parameters_at + blocks * config.word_bytes(Memory.PAR)

    padded = size + 2
    strip_in, strip_out = (ROWS + 2) * padded * blocks, ROWS * size * blocks
    half_acc = config.acc_depth // 2
    program: list[Instruction] = [
        Load(memory=Memory.PAR, sram_address=0, dram_address=parameters_at, count_x=blocks),
        Load(memory=Memory.WGT, sram_address=0, dram_address=weights_at, count_x=blocks * tiles),
    ]
    turn = 0
    strips: list[list[Instruction]] = []
    for strip in range(size // ROWS):
        source = (strip % 2) * strip_in
        target = 2 * strip_in + (strip % 2) * strip_out
        first = max(strip * ROWS - 1, 0)
        last = min(strip * ROWS + ROWS, size - 1)
        work: list[Instruction] = [
            Load(
                memory=Memory.ACT,
                sram_address=source,
                dram_address=input_at + first * size * word,
                count_x=size,
                count_y=last - first + 1,
                count_z=blocks,
                dram_stride_y=size * word,
                dram_stride_z=plane,
                sram_stride_y=padded,
                sram_stride_z=(ROWS + 2) * padded,
                pad_x_before=1,
                pad_x_after=1,
                pad_y_before=int(strip == 0),
                pad_y_after=int(strip == size // ROWS - 1),
            )
        ]
        for block in range(blocks):
            acc = (turn % 2) * half_acc
            turn += 1
            work.append(
                Gemm(
                    act_address=source,
                    wgt_address=block * tiles,
                    acc_address=acc,
                    extent=(KERNEL, KERNEL, blocks, size, ROWS, 1),
                    act_stride=(1, padded, (ROWS + 2) * padded, 1, padded, 0),
                    wgt_stride=(1, KERNEL, KERNEL * KERNEL, 0, 0, 0),
                    acc_stride=(0, 0, 0, 1, size, 0),
                    reduction=0b111,
                )
            )
            work.append(
                Vector(
                    source=Memory.ACC,
                    destination=Memory.ACT,
                    source_address=acc,
                    destination_address=target + block * ROWS * size,
                    extent=(1, ROWS * size, 1, 1, 1),
                    source_stride=(0, 1, 0, 0, 0),
                    destination_stride=(1, 0, 0, 0),
                    finish=Finish.REQUANTIZE,
                    par_address=block,
                )
            )
        work.append(
            Store(
                dram_address=output_at + strip * ROWS * size * word,
                sram_address=target,
                count_x=ROWS * size,
                count_z=blocks,
                dram_stride_z=plane,
                sram_stride_z=ROWS * size,
            )
        )
        strips.append(work)
    # Each strip's input is loaded before the work of the strip before it.
    for number, work in enumerate(strips):
        program += work[:1] if number == 0 else []
        program += strips[number + 1][:1] if number + 1 < len(strips) else []
        program += work[1:]
    ordered = insert_tokens(program, config)
    final = [with_bank_masks(instruction, config) for instruction in ordered]
    check(final, config)

    code = b"".join(encode(instruction) for instruction in final)
    dram = np.zeros(program_at + len(code), np.uint8)
    dram[:output_at] = rng.integers(0, 256, output_at, dtype=np.uint8)
    dram[weights_at:parameters_at] = rng.integers(0, 256, parameters_at - weights_at, np.uint8)
    bias = rng.integers(-1000, 1000, (blocks, lanes)).astype(np.int32)
    scale = rng.uniform(1e-4, 1e-3, (blocks, lanes)).astype(np.float32)
    parameters = np.concatenate([bias.view(np.uint8), scale.view(np.uint8)], axis=1)
    dram[parameters_at:program_at] = parameters.reshape(-1)
    dram[program_at:] = np.frombuffer(code, np.uint8)
    launch = Launch(config, dram, program_at, len(final))
    return LayerProgram(launch, size * size * channels * channels * KERNEL * KERNEL)
