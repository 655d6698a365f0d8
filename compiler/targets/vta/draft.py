"""A plan's program, and the cycles that it takes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise, product

import numpy as np

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.footprint import dram_rows, with_bank_masks
from dovetail.isa.frozen import frozen, replace
from dovetail.isa.instructions import Instruction, Load
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.program import program_to_bytes
from dovetail.runtime.profile.layers import share_cycles
from dovetail.runtime.result import TimelineEntry

from ...errors import DoesNotFitError
from ...options import Overlap
from .block_cascade import BlockCascade
from .blockwise import GROUP
from .constants import DramMap
from .dependence import dependences, drained, permuted, serial
from .join_loads import PACE, WGT_PARTS, follow, join, word_count
from .layers.activation import Activation
from .operations import Builder
from .order import Ordered, order
from .plan import Plan
from .planner import Planner
from .result_parts import LEAST_PART
from .size import require_size
from .timing import Timing, expected_cycles
from .tokens import insert_tokens
from .unit_operation import UnitOperation, moved_to_bank

__all__ = [
    *("Draft", "cut", "cycles_of", "joined", "kept", "known_loads", "make_draft", "moved"),
    "whole_cycles",
]

TWO_ORDERS = 2500
"""Instructions of a program, at most, that is ordered in two ways: to order a longer one takes
long, and the second order gained nothing in ResNet-18 and MobileNetV2.
"""


@frozen
class Draft:
    """A plan, its operations, and their program.

    dram: the constants.  addresses: in DRAM, of every activation there.
    places: of each instruction of the program, the operations that it does, in their order.
    before: what each instruction of the program depends on.  plain, program: without and with
    tokens.  code: of the latter.  expected: first and last cycle of its instructions.
    """

    plan: Plan
    addresses: Mapping[str, int]
    builder: Builder
    places: tuple[tuple[int, ...], ...]
    before: tuple[frozenset[int], ...]
    plain: tuple[Instruction, ...]
    program: tuple[Instruction, ...]
    program_address: int
    code: bytes
    expected: tuple[tuple[int, int], ...]
    dram: DramMap
    by_urgency: int = 0
    cycles: int = field(init=False)
    """Cycles that the program is expected to take."""
    _shares: list[int] = field(init=False, compare=False, repr=False)
    """Empty until it is asked for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cycles", whole_cycles(self.expected))
        object.__setattr__(self, "_shares", [])

    @property
    def layer_of(self) -> tuple[int, ...]:
        """The number of the layer, or the first layer, of each instruction of the program."""
        return tuple(self.builder.operations[first].layer for first, *_ in self.places)

    @property
    def is_load_bound(self) -> bool:
        """True if LOAD sets the pace."""
        lengths = zip(self.program, self.expected, strict=True)
        busy = sum(end - start + 1 for each, (start, end) in lengths if each.unit is Unit.LOAD)
        return busy >= PACE * self.cycles

    @property
    def shares(self) -> list[int]:
        """Cycles of each layer; they add up to ``cycles``."""
        if self._shares:
            return self._shares
        parts = zip(self.program, self.layer_of, self.expected, strict=True)
        timeline = tuple(
            TimelineEntry(index, each.unit.name, layer, start, start, end, None, None, 0)
            for index, (each, layer, (start, end)) in enumerate(parts)
        )
        self._shares.extend(share_cycles(timeline, len(self.plan.layers), self.cycles))
        return self._shares


def whole_cycles(expected: Iterable[tuple[int, int]]) -> int:
    """Cycles of a run: after the last end it takes one to find the machine empty."""
    return max((end for _, end in expected), default=-2) + 2


def make_draft(
    planner: Planner,
    plan: Plan,
    activations: Mapping[str, Activation],
    overlap: Overlap,
    timing: Timing,
) -> Draft:
    """The program of a plan."""
    config, ends = planner.config, planner.ends
    require_size(plan.layers, config)
    dram = DramMap(config)
    given = [x.name for x in ends.sources]
    addresses = {
        name: dram.add(ends.constants[name])
        if name in ends.constants
        else _reserve(dram, activations[name], config)
        for name in dict.fromkeys((*given, *sorted(ends.results), *sorted(plan.streamed)))
        if name not in ends.inside
    }
    word = config.word_bytes(Memory.ACT)
    addresses |= {
        name: addresses[whole] + first * word for name, (whole, first) in ends.inside.items()
    }
    builder = _built(planner, plan, dram, addresses, activations)
    dram = builder.dram
    operations = builder.operations
    masked = [with_bank_masks(operation.instruction, config) for operation in operations]
    address = dram.reserve(len(masked) * INSTRUCTION_BYTES)
    found = []
    for ordered in _orders(operations, masked, builder.in_order, config, overlap):
        places = ordered.places
        plain = tuple(
            moved_to_bank(masked[i], ordered.banks[i], operations[i].tile, config) for i in places
        )
        before = tuple(permuted(ordered.before, places))
        program = tuple(insert_tokens(plain, config, before))
        code = program_to_bytes(program)
        expected = expected_cycles(timing, code, config, address)
        done = tuple((place,) for place in places)
        made = plan, addresses, builder, done, before, plain, program, address, code, expected
        found.append(Draft(*made, dram))
    draft = replace(min(found, key=cycles_of), by_urgency=found[0].cycles)
    return _with_loads_joined(draft, config, timing) if overlap is Overlap.LAYERS else draft


def _built(
    planner: Planner,
    plan: Plan,
    dram: DramMap,
    addresses: Mapping[str, int],
    activations: Mapping[str, Activation],
) -> Builder:
    """The operations of all layers; where DRAM sets the pace and most parameters have a short form,
    with parameters kept apart by their forms, if there is room.
    """
    least = planner.config.act_depth if plan.placing.whole else LEAST_PART
    for apart in (planner.parts_parameters, False):
        # One that does not fit leaves no constants behind.
        own = dram.copy(dram.size)
        given = planner.config, plan, own, addresses, planner.schedules
        builder = Builder(*given, apart=apart, cut=plan.placing.cut, least=least)
        try:
            _add_layers(builder, planner, activations)
        except DoesNotFitError:
            if not apart:
                raise
        else:
            break
    return builder


def _add_layers(builder: Builder, planner: Planner, activations: Mapping[str, Activation]) -> None:
    """Append the operations of all layers, what is loaded before and stored after each included."""
    plan, layers, ends = builder.plan, planner.layers, planner.ends
    begins = {item.activation.name: item.first + 1 for item in planner.items}
    loaded = [x for x in ends.sources if x.name in begins.keys() - plan.streamed]
    makers = {layer.output.name: number for number, layer in enumerate(layers)}
    stored = sorted(makers.keys() & ends.results - plan.streamed, key=makers.__getitem__)
    number = 0
    while number < len(layers):
        planner.look(f"operations, layer {layers[number].name!r}")
        cascade = plan.cascades.get(number)
        count = len(cascade.layers) if cascade else GROUP if number in plan.blockwise else 1
        count = len(plan.chains.get(number, range(count)))
        members = range(number, number + count)
        for source in loaded:
            if begins[source.name] in members:
                builder.load_input(source, begins[source.name])
        if isinstance(cascade, BlockCascade):
            builder.add_block_cascade(cascade, layers)
        elif cascade:
            builder.add_cascade(cascade, layers)
        elif number in plan.chains:
            builder.add_chain(plan.chains[number], layers)
        elif number in plan.blockwise:
            builder.add_blockwise(plan.blockwise[number], layers)
        else:
            builder.add_layer(number, layers[number])
        for name in stored:
            if makers[name] in members:
                builder.store_output(activations[name], makers[name], ends.read.get(name))
        number += count


def _with_loads_joined(draft: Draft, config: HardwareConfig, timing: Timing) -> Draft:
    """``draft`` with LOADs of constants joined, if LOAD sets its pace and that makes it faster."""
    if not draft.is_load_bound:
        return draft
    is_known = known_loads(draft, config)
    found = [draft]
    seen: list[list[list[int]]] = [[]]
    for wgt_parts in WGT_PARTS:
        groups = join(draft.plain, draft.before, config, is_known, wgt_parts)
        if groups not in seen:
            seen.append(groups)
            found.append(joined(draft, groups, config, timing))
    return min(found, key=cycles_of)


def known_loads(draft: Draft, config: HardwareConfig) -> Callable[[Load], bool]:
    """A function that is true for a LOAD of constants."""
    known = draft.dram.known()
    return lambda load: all(known[at : at + size].all() for at, size in dram_rows(load, config))


def joined(
    draft: Draft, groups: Sequence[Sequence[int]], config: HardwareConfig, timing: Timing
) -> Draft:
    """``draft`` with one LOAD for each group of places of its program."""
    image, plain = draft.dram.image(), list(draft.plain)
    dram = draft.dram.copy(draft.program_address)
    first_of = {place: group[0] for group in groups for place in group}
    for group in groups:
        loads = [each for place in group if isinstance(each := draft.plain[place], Load)]
        address = loads[0].dram_address
        if not follow(loads, config):
            parts = [image[a : a + n] for load in loads for a, n in dram_rows(load, config)]
            address = dram.add(np.frombuffer(b"".join(parts), np.uint8))
        words = sum(word_count(load) for load in loads)
        x, y = (1, words) if loads[0].count_y > 1 else (words, 1)
        plain[group[0]] = replace(loads[0], dram_address=address, count_x=x, count_y=y)
    return kept(draft, plain, first_of, dram, config, timing)


def kept(
    draft: Draft,
    plain: Sequence[Instruction],
    first_of: Mapping[int, int],
    dram: DramMap,
    config: HardwareConfig,
    timing: Timing,
) -> Draft:
    """``draft`` with the instructions ``plain``, of which some others are part.

    first_of: the places of the latter, and perhaps of the former, to that of the former.
    """
    kept = [n for n in range(len(plain)) if first_of.get(n, n) == n]
    number = {place: n for n, place in enumerate(kept)}
    becomes = [number[first_of.get(place, place)] for place in range(len(plain))]
    needed = list(draft.before)
    done: list[tuple[int, ...]] = [()] * len(plain)
    for place, operations in enumerate(draft.places):
        first = first_of.get(place, place)
        if first != place:
            needed[first] |= needed[place]
        done[first] += operations
    before = tuple(
        frozenset(map(becomes.__getitem__, needed[place])) - {n} for n, place in enumerate(kept)
    )
    plain = [plain[place] for place in kept]
    places = tuple(done[place] for place in kept)
    return _made(draft, plain, before, places, dram, config, timing)


def cut(
    draft: Draft,
    plain: Sequence[Instruction],
    parts: Sequence[int],
    config: HardwareConfig,
    timing: Timing,
) -> Draft:
    """``draft`` with the instructions ``plain``, each of which is, or is part of, the one of the
    place in ``parts``.
    """
    before = tuple(map(frozenset, dependences(plain, config)))
    done = tuple(draft.places[place] for place in parts)
    dram = draft.dram.copy(draft.program_address)
    return _made(draft, plain, before, done, dram, config, timing)


def _made(
    draft: Draft,
    plain: Sequence[Instruction],
    before: tuple[frozenset[int], ...],
    places: tuple[tuple[int, ...], ...],
    dram: DramMap,
    config: HardwareConfig,
    timing: Timing,
) -> Draft:
    """``draft`` with another program, behind what is in ``dram``."""
    program = tuple(insert_tokens(plain, config, before))
    address = dram.reserve(len(program) * INSTRUCTION_BYTES)
    code = program_to_bytes(program)
    return replace(
        draft,
        places=places,
        before=before,
        plain=tuple(plain),
        program=program,
        program_address=address,
        code=code,
        expected=expected_cycles(timing, code, config, address),
        dram=dram,
    )


def moved(
    draft: Draft,
    order: Sequence[int],
    before: Sequence[frozenset[int]],
    config: HardwareConfig,
    timing: Timing,
) -> Draft:
    """``draft`` in another order, with what each of its instructions then depends on."""
    if list(order) == list(range(len(order))):
        return draft
    plain = tuple(map(draft.plain.__getitem__, order))
    before = tuple(permuted(before, order))
    program = tuple(insert_tokens(plain, config, before))
    code = program_to_bytes(program)
    return replace(
        draft,
        places=tuple(map(draft.places.__getitem__, order)),
        before=before,
        plain=plain,
        program=program,
        code=code,
        expected=expected_cycles(timing, code, config, draft.program_address),
    )


def _orders(
    operations: Sequence[UnitOperation],
    program: Sequence[Instruction],
    in_order: Iterable[range],
    config: HardwareConfig,
    overlap: Overlap,
) -> Iterator[Ordered]:
    """Orders of the program, with what ``overlap`` does not allow as further dependences.

    program: the operations with their bank masks.  in_order: operations; the LOADs and GEMMs of
    each range keep their order.
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
            yield Ordered(places, [0] * len(program), serial(before))
        case Overlap.UNITS | Overlap.TILES:
            units = [instruction.unit for instruction in program]
            before = drained(before, units, [operation.layer for operation in operations])
            yield order(program, before, tiles, config, 1 if overlap is Overlap.UNITS else None)
        case Overlap.LAYERS:
            ways = (False, True) if len(program) <= TWO_ORDERS else (False,)
            for by_use in ways:
                yield order(program, before, tiles, config, by_use=by_use)


def _reserve(dram: DramMap, activation: Activation, config: HardwareConfig) -> int:
    """Address of room for an activation; an image has some bytes to spare on both sides."""
    if activation.image is None:
        words = activation.blocks * activation.plane
        return dram.reserve(words * config.word_bytes(Memory.ACT))
    image, margin = activation.image, activation.image.margin(activation.lanes)
    return dram.reserve(2 * margin + image.planes * image.plane_bytes) + margin


def cycles_of(draft: Draft) -> int:
    return draft.cycles
