"""Partition to program: the backend's pipeline, one function."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.assembly import disassemble
from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction, Load
from dovetail.runtime.accelerator.layouts import Memories

from ...graph.ir import Graph
from ...graph.operators.assembly import Append
from ...loops.ir import Function
from ...loops.text import to_text
from ...loops.verify import verify
from ...options import Overlap
from ...schedule.steps.schedule import Schedule
from .appended import first_word
from .check import check
from .draft import make_draft, whole_cycles
from .last_changes import without_waits
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .layers.lower import lower
from .layers.plan_activations import plan_activations
from .passes.fuse import Partition
from .plan import Ends
from .plan_key import plan_key
from .plan_record import PlanRecords, recorded_plan, to_plan_record
from .planner import Planner
from .record import record
from .result_parts import blocks_read
from .roof import Roof
from .row_problems import lane_fill
from .search import fastest
from .timing import Timing
from .unit_operation import UnitOperation

__all__ = ["CompiledProgram", "compile_partition"]


@frozen
class CompiledProgram:
    """A program and the DRAM it lives in, from address 0.

    image: constants and program; the places of inputs and results are zeros.  addresses: of the
    activations that are in DRAM.  layer_of: for each instruction, the number of its layer.
    expected: its first and last cycle.  memories: where instructions put what.  roof: of all plans.
    """

    instructions: tuple[Instruction, ...]
    image: bytes
    program_address: int
    activations: Mapping[str, Activation]
    addresses: Mapping[str, int]
    layers: tuple[LoweredLayer, ...]
    schedules: tuple[Schedule, ...]
    layer_of: tuple[int, ...]
    expected: tuple[tuple[int, int], ...]
    memories: Memories
    roof: Roof

    @property
    def expected_cycles(self) -> int:
        """Cycles of the whole run."""
        return whole_cycles(self.expected)


def compile_partition(
    graph: Graph,
    partition: Partition,
    config: HardwareConfig,
    timing: Timing,
    observe: Callable[[str, Callable[[], str]], None] = lambda name, text: None,
    overlap: Overlap = Overlap.LAYERS,
    effort: float = 1.0,
    checked: bool = False,
    plans: PlanRecords | None = None,
    look: Callable[[str], None] = lambda where: None,
) -> CompiledProgram:
    """Lower, schedule, place, order, synchronise, check and encode the layers of ``partition``.

    timing: tells when instructions start and end; of several programs the fastest is taken.
    effort: how many are tried, 1 for as many as usual.
    observe: called after each step, with its name and what prints its result.  checked: every loop
    program is verified.  plans: those that are known, by their keys; a new one is added.
    look: called now and then with words for where this is; may raise CompileLimitError.
    Raises DoesNotFitError, UnsupportedOperatorError, ScheduleError for a known plan that does not
    suit the layers, or CheckError (a fault of this backend).
    """
    activations = plan_activations(graph, partition, config.block, config)
    own = config.own_finish
    raises, depth = config.short_constants, config.tap_depth
    layers = tuple(
        lower(graph, layer, activations, own, raises, depth) for layer in partition.layers
    )
    if checked:
        _verify_all(layer.function for layer in layers)
    observe("lower", lambda: "\n\n".join(to_text(layer.function) for layer in layers))
    sources = tuple(activations[chain.last] for chain in partition.sources)
    known = _constant_inputs(graph, layers)
    sources += tuple(activations[name] for name in known)
    added = {node.inputs[1] for node in partition.appended}
    inside: dict[str, tuple[str, int]] = {}
    for node in partition.appended:
        assert isinstance(node.operator, Append)
        whole = activations[node.output]
        first = first_word(node.operator, whole.lanes, whole.plane)
        inside |= {node.inputs[0]: (node.output, 0), node.inputs[1]: (node.output, first)}
    read = blocks_read(layers)
    given = {layer.given.name for layer in layers if layer.given is not None}
    stored = partition.result_roots | added | given
    only_read = {name: blocks for name, blocks in read.items() if name not in stored}
    ends = Ends(sources, stored | read.keys(), known, inside, only_read)
    planner = Planner(layers, ends, config, overlap, look)
    key = "" if plans is None else plan_key(layers, planner.ends, config, overlap)
    if plans and key in plans:
        plan = recorded_plan(planner, plans[key])
        draft = make_draft(planner, plan, activations, overlap, timing)
        if overlap is Overlap.LAYERS:
            draft = without_waits(draft, config, timing, effort)
    else:
        draft = fastest(planner, activations, overlap, timing, effort)
    if plans is not None and key not in plans:
        plans[key] = to_plan_record(planner, draft.plan, draft.cycles)
    plan, operations, program = draft.plan, draft.builder.operations, draft.program
    schedules = tuple(each.schedule for each in draft.builder.scheduled)
    if checked:
        _verify_all(each.function for each in schedules)
    observe("schedule", lambda: "\n\n".join(to_text(each.function) for each in schedules))
    observe("place", lambda: "\n".join(f"act {at:5} {name}" for name, at in plan.places.items()))
    observe("operations", lambda: _text(operations))
    dram, addresses, layer_of = draft.dram, draft.addresses, draft.layer_of
    observe("order", lambda: disassemble(draft.plain))
    observe("tokens", lambda: disassemble(program))
    check(program, config)
    image = dram.image()[: draft.program_address] + draft.code
    observe("check", lambda: "no race, no deadlock")
    done = ([operations[index] for index in each] for each in draft.places)
    found = [
        [(part.layer, part.holds) for part in parts if _is_whole(each, part.instruction)]
        for each, parts in zip(program, done, strict=True)
    ]
    return CompiledProgram(
        program,
        image.ljust(dram.size, b"\0"),
        draft.program_address,
        activations,
        addresses,
        layers,
        schedules,
        layer_of,
        draft.expected,
        record(graph, partition, activations, layers, addresses, found),
        planner.roof,
    )


def _is_whole(instruction: Instruction, part: Instruction) -> bool:
    """True if ``instruction`` is not a LOAD that brings more, or less, than one of its parts."""
    if not isinstance(instruction, Load) or not isinstance(part, Load):
        return True
    return instruction.words == part.words


def _constant_inputs(graph: Graph, layers: Iterable[LoweredLayer]) -> dict[str, NDArray[np.int8]]:
    """The activations that are constants, int8[blocks, H, W, lanes]."""
    found = {}
    for x in (x for layer in layers for x in layer.inputs if x.name in graph.constants):
        pixels = graph.constants[x.name].astype(np.int8).reshape(x.height, x.width, x.channels)
        fill = lane_fill(graph, x.name)
        whole = np.full((x.height, x.width, x.blocks * x.lanes), fill, np.int8)
        whole[..., : x.channels] = pixels
        blocks = whole.reshape(x.height, x.width, x.blocks, x.lanes).transpose(2, 0, 1, 3)
        found[x.name] = np.ascontiguousarray(blocks)
    return found


def _verify_all(functions: Iterable[Function]) -> None:
    for function in functions:
        verify(function, trust_data=True)


def _text(operations: Sequence[UnitOperation]) -> str:
    return disassemble([operation.instruction for operation in operations])
