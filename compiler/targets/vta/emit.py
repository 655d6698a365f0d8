"""Partition to program: the backend's pipeline, one function."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from dovetail.isa.assembly import disassemble
from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.program import program_to_bytes
from dovetail.runtime.accelerator.layouts import Memories
from dovetail.runtime.profile.layers import share_cycles
from dovetail.runtime.result import TimelineEntry

from ...graph.ir import Graph
from ...loops.ir import Function
from ...loops.text import to_text
from ...loops.verify import verify
from ...options import Overlap
from ...schedule.steps.schedule import Schedule
from .blockwise import GROUP
from .check import check
from .choose import Choice
from .constants import DramMap
from .dependence import dependences, drained, permuted, serial
from .layers.activation import Activation, plan_activations
from .layers.definition import LoweredLayer
from .layers.lower import lower
from .operations import Builder
from .order import Ordered, order
from .passes.fuse import Partition
from .place import NoRoomError
from .plan import Ends, Plan, Planner
from .plan_record import PlanRecords, plan_key, recorded_plan, to_plan_record
from .postpone import postponed
from .record import record
from .refine import Trial, refine
from .size import require_size
from .timing import Timing, expected_cycles
from .tokens import insert_tokens
from .unit_operation import UnitOperation, moved_to_bank

__all__ = ["CompiledProgram", "compile_partition"]

BUSY = 0.5
"""Part of the time that DRAM has to work for plans that move less to be tried."""

PRICE = 0.25
"""What a cycle of DRAM counts as in those."""

FEW_OPERATIONS, MANY_OPERATIONS = 2500, 9000
"""Operations above which no plans that move less are made, and above which only one plan is: to
order one takes long.
"""


MOST_ROUNDS, ROUND_OPERATIONS = 40, 30_000
"""Programs made to find a faster plan, at most, and operations of all of them."""


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program and the DRAM it lives in, from address 0.

    image: constants and program; the places of inputs and results are zeros.  addresses: of the
    activations that are in DRAM.  layer_of: for each instruction, the number of its layer.
    expected: its first and last cycle.  memories: where instructions put what.
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

    @property
    def expected_cycles(self) -> int:
        """Cycles of the whole run."""
        return _whole(self.expected)


def compile_partition(
    graph: Graph,
    partition: Partition,
    config: HardwareConfig,
    timing: Timing,
    observe: Callable[[str, Callable[[], str]], None] = lambda name, text: None,
    overlap: Overlap = Overlap.LAYERS,
    checked: bool = False,
    plans: PlanRecords | None = None,
) -> CompiledProgram:
    """Lower, schedule, place, order, synchronise, check and encode the layers of ``partition``.

    timing: tells when instructions start and end; of several programs the fastest is taken.
    observe: called after each step, with its name and what prints its result.  checked: every loop
    program is verified.  plans: those that are known, by their keys; a new one is added.
    Raises DoesNotFitError, UnsupportedOperatorError, ScheduleError for a known plan that does not
    suit the layers, or CheckError (a fault of this backend).
    """
    activations = plan_activations(graph, partition, config.block)
    layers = tuple(lower(graph, layer, activations) for layer in partition.layers)
    if checked:
        _verify_all(layer.function for layer in layers)
    observe("lower", lambda: "\n\n".join(to_text(layer.function) for layer in layers))
    sources = tuple(activations[chain.last] for chain in partition.sources)
    planner = Planner(layers, Ends(sources, partition.result_roots), config, overlap)
    key = "" if plans is None else plan_key(layers, planner.ends, config, overlap)
    if plans and key in plans:
        plan = recorded_plan(planner, plans[key])
        draft = _draft(planner, plan, activations, overlap, timing)
    else:
        draft = _fastest(planner, activations, overlap, timing)
    if overlap is Overlap.LAYERS:
        draft = _with_loads_postponed(draft, config, timing)
    if plans is not None and key not in plans:
        plans[key] = to_plan_record(draft.plan, draft.cycles)
    plan, operations, program = draft.plan, draft.builder.operations, draft.program
    schedules = tuple(each.schedule for each in draft.builder.scheduled)
    if checked:
        _verify_all(each.function for each in schedules)
    observe("schedule", lambda: "\n\n".join(to_text(each.function) for each in schedules))
    observe("place", lambda: "\n".join(f"act {at:5} {name}" for name, at in plan.places.items()))
    observe("operations", lambda: _text(operations))
    dram, addresses, chosen = draft.builder.dram, draft.addresses, draft.places
    observe("order", lambda: disassemble(draft.plain))
    observe("tokens", lambda: disassemble(program))
    check(program, config)
    image = dram.image()[: draft.program_address] + draft.code
    observe("check", lambda: "no race, no deadlock")
    layer_of = tuple(operations[index].layer for index in chosen)
    holds = [operations[index].holds for index in chosen]
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
        record(graph, partition, activations, layers, addresses, layer_of, holds),
    )


def _verify_all(functions: Iterable[Function]) -> None:
    for function in functions:
        verify(function)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A plan, its operations, and their program.

    addresses: in DRAM, of every activation there.  places: the operations in the program's order.
    before: what each instruction of the program depends on.  plain, program: without and with
    tokens.  code: of the latter.  expected: first and last cycle of its instructions.
    """

    plan: Plan
    addresses: Mapping[str, int]
    builder: Builder
    places: tuple[int, ...]
    before: tuple[frozenset[int], ...]
    plain: tuple[Instruction, ...]
    program: tuple[Instruction, ...]
    program_address: int
    code: bytes
    expected: tuple[tuple[int, int], ...]

    @property
    def cycles(self) -> int:
        """Cycles that the program is expected to take."""
        return _whole(self.expected)


def _whole(expected: Iterable[tuple[int, int]]) -> int:
    """Cycles of a run: after the last end it takes one to find the machine empty."""
    return max((end for _, end in expected), default=-2) + 2


def _fastest(
    planner: Planner,
    activations: Mapping[str, Activation],
    overlap: Overlap,
    timing: Timing,
) -> _Draft:
    """The plan that makes the fastest program, out of a few.

    They differ in what the planner counts: perhaps the waits between layers, and, where DRAM is
    busy, what is moved.
    """
    best = _draft(planner, planner.best(), activations, overlap, timing)
    count = len(best.builder.operations)
    if overlap is not Overlap.LAYERS:
        return best
    plans: list[Plan] = []
    if count <= MANY_OPERATIONS:
        plans.append(planner.best(edges=True))
    if best.plan.dram > BUSY * best.plan.cycles and count <= FEW_OPERATIONS:
        plans += [planner.best(PRICE), planner.best(PRICE, edges=True)]
    seen = [best.plan]
    for plan in plans:
        if all(plan.places != other.places or plan.choices != other.choices for other in seen):
            seen.append(plan)
            other = _draft(planner, plan, activations, overlap, timing)
            best = min(best, other, key=_cycles)
    return _refined(best, planner, activations, names, timing)


def _refined(
    best: _Draft,
    planner: Planner,
    activations: Mapping[str, Activation],
    names: tuple[str, str],
    timing: Timing,
) -> _Draft:
    """``best``, or a faster one that is found by planning anew with what its layers took."""
    drafts = {best.plan.key: best}

    def attempt(choices: Sequence[Choice]) -> Trial | None:
        try:
            plan = planner.built(choices, best.plan.gone)
        except NoRoomError:
            return None
        if plan.key not in drafts:
            drafts[plan.key] = _draft(planner, plan, activations, names, Overlap.LAYERS, timing)
        return _trial(drafts[plan.key])

    gone, chooser = best.plan.gone, planner.chooser
    start = _trial(best)
    for choices in chooser.grained(best.plan.choices, gone):
        other = attempt(choices)
        if other and other.cycles < start.cycles:
            start = other
    most = min(MOST_ROUNDS, ROUND_OPERATIONS // len(best.program))
    found = refine(start, attempt, lambda choices, n: chooser.changes(choices, n, gone), most)
    return drafts[gone, tuple(choice.key for choice in found.choices)]


def _trial(draft: _Draft) -> Trial:
    return Trial(draft.plan.choices, draft.cycles, _shares(draft))


def _shares(draft: _Draft) -> list[int]:
    """Cycles of each layer."""
    operations, program = draft.builder.operations, draft.program
    timeline = tuple(
        TimelineEntry(
            index, each.unit.name, operations[place].layer, start, start, end, None, None, 0
        )
        for index, (each, place, (start, end)) in enumerate(
            zip(program, draft.places, draft.expected, strict=True)
        )
    )
    return share_cycles(timeline, len(draft.plan.layers), draft.cycles)


def _cycles(draft: _Draft) -> int:
    return draft.cycles


def _draft(
    planner: Planner,
    plan: Plan,
    activations: Mapping[str, Activation],
    overlap: Overlap,
    timing: Timing,
) -> _Draft:
    config, ends = planner.config, planner.ends
    require_size(plan.layers, config)
    dram = DramMap(config)
    given = [x.name for x in ends.sources]
    addresses = {
        name: _reserve(dram, activations[name], config)
        for name in dict.fromkeys((*given, *sorted(ends.results), *sorted(plan.streamed)))
    }
    builder = Builder(config, plan, dram, addresses, planner.schedules)
    _add_layers(builder, planner, activations)
    operations = builder.operations
    masked = [with_bank_masks(operation.instruction, config) for operation in operations]
    ordered = _ordered(operations, masked, builder.in_order, config, overlap)
    places = tuple(ordered.places)
    plain = tuple(
        moved_to_bank(masked[i], ordered.banks[i], operations[i].tile, config) for i in places
    )
    before = tuple(permuted(ordered.before, places))
    program = tuple(insert_tokens(plain, config, before))
    address = dram.reserve(len(program) * INSTRUCTION_BYTES)
    code = program_to_bytes(program)
    expected = expected_cycles(timing, code, config, address)
    return _Draft(plan, addresses, builder, places, before, plain, program, address, code, expected)


def _add_layers(builder: Builder, planner: Planner, activations: Mapping[str, Activation]) -> None:
    """Append the operations of all layers, what is loaded before and stored after each included."""
    plan, layers, ends = builder.plan, planner.layers, planner.ends
    begins = {item.activation.name: item.first + 1 for item in planner.items}
    loaded = [x for x in ends.sources if x.name in begins.keys() - plan.streamed]
    makers = {layer.output.name: number for number, layer in enumerate(layers)}
    stored = sorted(makers.keys() & ends.results - plan.streamed, key=makers.__getitem__)
    number = 0
    while number < len(layers):
        cascade = plan.cascades.get(number)
        count = len(cascade.layers) if cascade else GROUP if number in plan.blockwise else 1
        members = range(number, number + count)
        for source in loaded:
            if begins[source.name] in members:
                builder.load_input(source, begins[source.name])
        if cascade:
            builder.add_cascade(cascade, layers)
        elif number in plan.blockwise:
            builder.add_blockwise(plan.blockwise[number], layers)
        else:
            builder.add_layer(number, layers[number])
        for name in stored:
            if makers[name] in members:
                builder.store_output(activations[name], makers[name])
        number += count


def _with_loads_postponed(draft: _Draft, config: HardwareConfig, timing: Timing) -> _Draft:
    """``draft`` with LOADs behind others that are more urgent, if it is faster so."""
    order = postponed(draft.program, draft.before, draft.expected)
    if order == list(range(len(order))):
        return draft
    plain = tuple(draft.plain[index] for index in order)
    before = tuple(permuted(draft.before, order))
    program = tuple(insert_tokens(plain, config, before))
    code = program_to_bytes(program)
    other = replace(
        draft,
        places=tuple(draft.places[index] for index in order),
        before=before,
        plain=plain,
        program=program,
        code=code,
        expected=expected_cycles(timing, code, config, draft.program_address),
    )
    return min(draft, other, key=_cycles)


def _ordered(
    operations: Sequence[UnitOperation],
    program: Sequence[Instruction],
    in_order: Iterable[range],
    config: HardwareConfig,
    overlap: Overlap,
) -> Ordered:
    """The order of the program, with what ``overlap`` does not allow as further dependences.

    program: the operations with their bank masks.  in_order: operations; the LOADs and GEMMs of each range keep their order.
    """
    tiles = [operation.tile for operation in operations]
    before = dependences(program, config, tiles)
    for group, unit in product(in_order, (Unit.LOAD, Unit.GEMM)):
        kept = [index for index in group if program[index].unit is unit]
        for earlier, later in pairwise(kept):
            before[later] |= {earlier}
    match overlap:
        case Overlap.NOTHING:
            places = list(range(len(program)))
            return Ordered(places, [0] * len(program), serial(before))
        case Overlap.UNITS | Overlap.TILES:
            units = [instruction.unit for instruction in program]
            before = drained(before, units, [operation.layer for operation in operations])
    return order(program, before, tiles, config, 1 if overlap is Overlap.UNITS else None)


def _reserve(dram: DramMap, activation: Activation, config: HardwareConfig) -> int:
    """Address of room for an activation; an image has some bytes to spare on both sides."""
    if activation.image is None:
        pixels = activation.blocks * activation.height * activation.width
        return dram.reserve(pixels * config.word_bytes(Memory.ACT))
    image, margin = activation.image, activation.image.margin(activation.lanes)
    return dram.reserve(2 * margin + image.rows * image.pitch) + margin


def _text(operations: Sequence[UnitOperation]) -> str:
    return disassemble([operation.instruction for operation in operations])
