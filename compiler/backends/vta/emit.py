"""Partition to program: the backend's pipeline, one function."""

from dataclasses import dataclass

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Instruction, encode
from dovetail.isa.memories import Memory

from ...graph.fuse import Partition
from ...graph.ir import Graph
from ...schedule.defaults import Limits, default_schedule
from ...schedule.primitives import Schedule
from ...tensor.lower import Activation, LoweredLayer, lower, plan_activations
from .check import check
from .constants import DramMap
from .operations import Builder
from .order import order
from .place import place_activations
from .tokens import insert_tokens

__all__ = ["CompiledProgram", "compile_partition", "limits_of"]


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program and the DRAM it lives in, from address 0.

    image: constants and program; the input's and result's places are zeros.  layer_of: for each
    instruction, the number of its layer.
    """

    instructions: tuple[Instruction, ...]
    image: bytes
    program_address: int
    input_address: int
    source: Activation
    output_address: int
    result: Activation
    layers: tuple[LoweredLayer, ...]
    schedules: tuple[Schedule, ...]
    layer_of: tuple[int, ...]


def limits_of(config: HardwareConfig) -> Limits:
    """What the schedule may use: one bank of ACC a tile, and half of WGT, or all if need be."""
    return Limits(acc_words=config.bank_words(Memory.ACC), wgt_words=config.wgt_depth)


def compile_partition(
    graph: Graph, partition: Partition, config: HardwareConfig
) -> CompiledProgram:
    """Lower, schedule, place, order, synchronise, check and encode the layers of ``partition``.

    Raises DoesNotFitError, UnsupportedOperatorError, or CheckError (a fault of this backend).
    """
    activations = plan_activations(graph, partition, config.block)
    layers = tuple(lower(graph, layer, activations) for layer in partition.layers)
    schedules = tuple(default_schedule(layer.kernel, limits_of(config)) for layer in layers)
    source, result = activations[partition.source], activations[partition.result]
    places = place_activations(layers, source, config)

    dram = DramMap(config)
    builder = Builder(config, places, dram)
    input_address = dram.reserve(source.blocks * source.height * source.width * config.block)
    output_address = dram.reserve(result.blocks * result.height * result.width * config.block)
    builder.load_input(source, input_address)
    for number, (layer, schedule) in enumerate(zip(layers, schedules, strict=True)):
        builder.add_layer(number, layer, schedule)
    builder.store_output(result, output_address, len(layers) - 1)

    operations = order(builder.operations, config)
    plain = [operation.instruction for operation in operations]
    ordered = insert_tokens(plain, config, dram.size)
    program = tuple(with_bank_masks(instruction, config) for instruction in ordered)
    check(program, config)

    program_address = dram.reserve(len(program) * INSTRUCTION_BYTES)
    code = b"".join(encode(instruction) for instruction in program)
    image = dram.image()[:program_address] + code
    return CompiledProgram(
        program,
        image.ljust(dram.size, b"\0"),
        program_address,
        input_address,
        source,
        output_address,
        result,
        layers,
        schedules,
        tuple(operation.layer for operation in operations),
    )
