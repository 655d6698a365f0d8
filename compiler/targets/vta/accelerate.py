"""From integer layers to the accelerator's part of a module, top to bottom."""

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.footprint import dram_rows
from dovetail.isa.instructions import Load, Store
from dovetail.runtime.accelerator.host_steps import Reshape, Select
from dovetail.runtime.accelerator.part import (
    AcceleratorPart,
    Blocks,
    LayerFigures,
    PartInput,
    PartOutput,
    Rows,
)
from dovetail.runtime.profile.shares import share_cycles
from dovetail.runtime.result import Timeline, TimelineEntry
from dovetail.runtime.tensors import TensorSignature

from ...graph.ir import Graph
from ...graph.partition import Refusal
from ...graph.passes.eliminate_dead import EliminateDead
from ...graph.passes.simplify import simplify
from ...graph.text import to_text
from ...graph.verify import verify
from ...options import CompileOptions
from ...pipeline.collection import paused_collection
from ...pipeline.passes import Pass, Pipeline
from ...pipeline.trace import Trace
from ...schedule.steps.trace import to_record
from .batch import batch_graph
from .cut import Chain, cut_graph
from .emit import CompiledProgram, compile_partition
from .host_steps import host_steps
from .passes.across_channels import ACROSS_CHANNELS
from .passes.align_channels import AlignChannels
from .passes.cached_attention import CachedAttention
from .passes.channel_tables import ChannelTables
from .passes.constant_channels import CONSTANT_CHANNELS
from .passes.dense_to_conv import DenseToConv
from .passes.differences import DIFFERENCES
from .passes.drop_taps import DROP_TAPS
from .passes.exact_sums import EXACT_SUMS
from .passes.fixed_averages import FIXED_AVERAGES
from .passes.fuse import Partition, fuse
from .passes.grouped_rows import GroupedRows
from .passes.halves import TwoHalves
from .passes.head_lanes import HeadLanes
from .passes.long_windows import LongWindows
from .passes.move_pixels import MovePixels
from .passes.narrow_limits import NarrowLimits
from .passes.own_borders import OwnBorders
from .passes.own_channels import OwnChannels
from .passes.own_operands import OwnOperands
from .passes.own_parts import OwnParts
from .passes.own_rows import OwnRows
from .passes.pad_pixels import PAD_PIXELS
from .passes.raise_transposes import RaiseTransposes
from .passes.real_finishes import REAL_FINISHES
from .passes.rows_to_pixels import ROWS_TO_PIXELS
from .passes.select_channels import SelectChannels
from .passes.shared_heads import SHARED_HEADS
from .passes.shared_rows import SharedRows
from .passes.split_bands import SplitBands
from .passes.split_groups import SplitGroups
from .passes.split_products import SplitProducts
from .passes.turned_rows import ANY, TurnedRows
from .plan_files import read_plan_entries, read_plans, write_plans
from .plan_record import PlanRecords
from .row_problems import lane_fill, longest_row
from .timing import Timing

__all__ = ["accelerate_graph", "compile_accelerated", "prepare_graph", "refuse", "shaped_graph"]


def compile_accelerated(
    layers: Graph,
    config: HardwareConfig,
    options: CompileOptions,
    trace: Trace,
    timing: Timing,
    plans: PlanRecords | None = None,
) -> AcceleratorPart:
    """Compile a graph of integer operators that all run on the accelerator, except chains of host
    steps: from its inputs to what layers read, and from what layers make to its outputs.

    Several chains may begin with one input, or with what one layer makes.
    timing: tells when instructions start and end.  plans: as of ``accelerate_graph``.
    Raises ModelError, UnsupportedOperatorError, DoesNotFitError.
    """
    trace.step("integer_layers", lambda: to_text(layers))
    verify(layers)
    words = config.act_depth
    graph = prepare_graph(layers, trace, config.block, options.passes, act_words=words)
    if options.batch > 1:
        graph = Pipeline(_shapes(config.block)).run(batch_graph(graph, options.batch))
        trace.step("batch", lambda: to_text(graph))
    return accelerate_graph(graph, config, options, trace, timing, plans)


def shaped_graph(graph: Graph, lanes: int, row_words: int) -> Graph:
    """A graph of integer operators and others, with all layers in the form that the accelerator
    takes.

    lanes: of a block.  row_words: of PAR, 0 in a configuration without row_parameters.
    """
    return Pipeline(_shapes(lanes, longest=longest_row(lanes, row_words))).run(simplify(graph))


def _shapes(lanes: int, act_words: int = 0, longest: int = ANY) -> tuple[Pass[Graph], ...]:
    """Passes that give layers the form that the accelerator takes.

    act_words: as of ``prepare_graph``.  longest: channels of a row that is normalised, at most;
    the CPU normalises longer ones, and moves what it reads and makes for them.

    After all of them none has anything left to do, so a piece of a graph may go through them again.
    """
    return (
        *(FIXED_AVERAGES, REAL_FINISHES, EXACT_SUMS, CONSTANT_CHANNELS),
        *(RaiseTransposes(), ACROSS_CHANNELS, SplitBands(lanes), DROP_TAPS, PAD_PIXELS),
        LongWindows(lanes),
        *(SHARED_HEADS, CachedAttention(lanes), DIFFERENCES, SplitProducts(lanes)),
        *(TurnedRows(lanes, longest), GroupedRows(lanes), ROWS_TO_PIXELS, ChannelTables(lanes)),
        *(DenseToConv(), MovePixels(longest), HeadLanes(lanes), SharedRows()),
        *(OwnChannels(lanes), SplitGroups(lanes), TwoHalves(lanes, act_words)),
        *(OwnRows(lanes, act_words), OwnParts(lanes), AlignChannels(lanes)),
        *(SelectChannels(lanes), OwnOperands(), OwnBorders(), NarrowLimits(), EliminateDead()),
    )


def prepare_graph(
    imported: Graph,
    trace: Trace,
    lanes: int,
    passes: tuple[Pass[Graph], ...] = (),
    *,
    act_words: int = 0,
) -> Graph:
    """The graph of a model as the accelerator's backend takes it, with blocks of ``lanes``.

    passes: the user's, which come before those that only graphs for the accelerator go through.
    act_words: of ACT; without them, no halves of an image share words.
    """
    graph = simplify(imported, trace.observers)
    graph = Pipeline((*passes, *_shapes(lanes, act_words)), trace.observers).run(graph)
    verify(graph)
    return graph


def accelerate_graph(
    graph: Graph,
    config: HardwareConfig,
    options: CompileOptions,
    trace: Trace,
    timing: Timing,
    plans: PlanRecords | None = None,
) -> AcceleratorPart:
    """The part of a module for a graph that ``prepare_graph`` made.

    timing: tells when instructions start and end.  plans: those to use where they suit, before
    those of the options' files; this one is added.
    """
    trace.start()
    partition = fuse(graph)
    trace.step("fuse", lambda: _partition_text(partition))
    kept = read_plans(options.plans) if options.plans else {}
    known = {**read_plan_entries(options.records), **kept, **(plans or {})}
    with paused_collection():
        program = compile_partition(
            graph,
            partition,
            config,
            timing,
            trace.step,
            options.overlap,
            options.effort,
            options.verify,
            known,
            trace.check,
        )
    if options.plans:
        write_plans(options.plans, known)
    if plans is not None:
        plans.update(known)
    return _part(graph, partition, program, config)


def refuse(layers: Graph, lanes: int) -> Refusal | None:
    """Why an accelerator with blocks of ``lanes`` does not run a graph of integer operators; None
    if it does.
    """
    cut = cut_graph(prepare_graph(layers, Trace(CompileOptions()), lanes), lanes)
    return cut if isinstance(cut, Refusal) else None


def _partition_text(partition: Partition) -> str:
    """Placement, one line for each node of the host or layer of the accelerator."""
    host = [
        [f"host {node.origin}: {node.operator}" for chain in chains for node in chain.nodes]
        for chains in (partition.sources, partition.results)
    ]
    layers = [
        f"layer {number} {layer.name}: {' + '.join(type(n.operator).__name__ for n in layer.nodes)}"
        for number, layer in enumerate(partition.layers)
    ]
    return "\n".join([*host[0], *layers, *host[1]])


def _signature(graph: Graph, name: str) -> TensorSignature:
    return TensorSignature(name, graph.types[name].shape, str(graph.types[name].dtype))


def _part(
    graph: Graph, partition: Partition, program: CompiledProgram, config: HardwareConfig
) -> AcceleratorPart:
    return AcceleratorPart(
        configuration=config,
        fingerprint=config.fingerprint,
        dram=program.image,
        program_address=program.program_address,
        program_bytes=len(program.instructions) * INSTRUCTION_BYTES,
        sources=tuple(_input(graph, chain, program, config) for chain in partition.sources),
        results=tuple(_output(graph, partition, chain, program) for chain in partition.results),
        layers=_layers(partition, program, config),
        layer_of=program.layer_of,
        expected_cycles=program.expected_cycles,
        roof_cycles=program.roof.cycles,
        memories=program.memories,
    )


def _input(
    graph: Graph, chain: Chain, program: CompiledProgram, config: HardwareConfig
) -> PartInput:
    """How the host makes a source of an input, and puts it into DRAM."""
    source, shape = program.activations[chain.last], graph.types[chain.last].shape
    layout: Blocks | Rows
    if source.image is None:
        fill = lane_fill(graph, chain.last) if source.channels % config.block else 0
        layout = Blocks(source.blocks, source.height, source.width, config.block, fill)
    else:
        layout = source.image.layout(source.fill or 0)
    steps = host_steps(chain.nodes)
    if _image_shape(shape) != shape:
        steps = (*steps, Reshape(_image_shape(shape)))
    return PartInput(_signature(graph, chain.first), steps, program.addresses[chain.last], layout)


def _output(
    graph: Graph, partition: Partition, chain: Chain, program: CompiledProgram
) -> PartOutput:
    """Where a result, or what it is part of, is in DRAM, and how the host makes an output of it.

    Of what it is part of, the blocks that it is in.
    """
    view, shape = partition.view(chain.first), graph.types[chain.first].shape
    whole, image = program.activations[view.whole], _image_shape(shape)
    _, height, width, channels = (1, 1, *image) if len(image) == 2 else image
    places = whole.channel_places[view.channel : view.channel + channels]
    first, last = int(places[0]) // whole.lanes, int(places[-1]) // whole.lanes
    layout = Blocks(last + 1 - first, *whole.full_size, whole.lanes)
    lanes = tuple(int(place) - first * whole.lanes for place in places)
    steps = host_steps(chain.nodes)
    if image != shape:
        steps = (Reshape(shape), *steps)
    if (height, width) != whole.full_size or lanes != tuple(range(channels)):
        image = (1, *whole.full_size, layout.blocks * whole.lanes)
        steps = (Select(view.start, view.steps, (height, width), lanes), *steps)
    # The rows of a weight may be part of a larger one.
    pitch = whole.plane * whole.lanes
    address = program.addresses[whole.name] + first * pitch
    return PartOutput(_signature(graph, chain.last), address, layout, image, steps, pitch)


def _image_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """``shape`` of an image as [1, H, W, C] or [1, C]."""
    return shape if len(shape) in (2, 4) else (1, shape[-1])


def _layers(
    partition: Partition, program: CompiledProgram, config: HardwareConfig
) -> tuple[LayerFigures, ...]:
    """For each layer what ``profile`` shows: name, operators, MACs, DRAM bytes, schedule."""
    moved = [0] * len(partition.layers)
    for instruction, layer in zip(program.instructions, program.layer_of, strict=True):
        if isinstance(instruction, Load | Store):
            moved[layer] += sum(size for _, size in dram_rows(instruction, config))
    expected = share_cycles(_timeline(program), len(partition.layers), program.expected_cycles)
    return tuple(
        LayerFigures(
            name=layer.name,
            kind="+".join(type(node.operator).__name__ for node in layer.nodes),
            macs=lowered.macs,
            dram_bytes=count,
            expected_cycles=cycles,
            inexact_pairs=lowered.inexact_pairs,
            schedule=to_record(schedule),
        )
        for layer, lowered, schedule, count, cycles in zip(
            partition.layers, program.layers, program.schedules, moved, expected, strict=True
        )
    )


def _timeline(program: CompiledProgram) -> Timeline:
    """The expected times of the program's instructions."""
    parts = zip(program.instructions, program.layer_of, program.expected, strict=True)
    return tuple(
        TimelineEntry(index, instruction.unit.name, layer, start, start, end, None, None, 0)
        for index, (instruction, layer, (start, end)) in enumerate(parts)
    )
