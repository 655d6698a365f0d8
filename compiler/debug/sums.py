"""Sums of a convolution that go wrong: weights, addresses, and what GEMM or VECTOR multiplies."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.footprint import nest
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Gemm
from dovetail.isa.memories import Memory
from dovetail.runtime.debug.layouts import TensorLayout
from dovetail.runtime.debug.moments import Event
from dovetail.runtime.debug.session import Session

from ..graph.ir import Node
from ..graph.operators.integer.products import Conv2d
from .expected import Reference
from .results import Result
from .taps import kernel_taps, one_constant, tap_cause

__all__ = ["reads_all_sums", "sum_cause"]

Ints = NDArray[np.int64]


def sum_cause(
    session: Session, reference: Reference, node: Node, result: Result, wanted: int
) -> tuple[int, str]:
    """The sum of ``result`` is not ``wanted``: which instruction made it so."""
    if result.vector.source is Memory.ACT:
        return tap_cause(session, reference, node, result)
    parts = _contributions(session, result.source, result.before)
    uneven = _uneven(session, result, [part.index for part in parts])
    if uneven is not None:
        return uneven
    products = _products_of(session, reference, node, result)
    for look in (products.place_cause, products.value_cause):
        for part in parts:
            found = look(part)
            if found is not None:
                return found
        if look == products.place_cause and products.problem and parts:
            shortest = min(reversed(parts), key=lambda part: len(part.act))
            return shortest.index, f"the sum is {result.total}, required {wanted}: " + (
                products.problem
            )
    last = parts[-1].index if parts else result.index
    return last, (
        f"the sum is {result.total}, required {wanted}: all products are right; it adds to what "
        "was there before"
    )


def reads_all_sums(session: Session, result: Result) -> bool:
    """True if VECTOR reads just those ACC words that the GEMM before it left for it; true, too,
    where GEMM does not begin with the first word of a bank.
    """
    parts = _contributions(session, result.source, result.before)
    if not parts:
        return False
    (read,) = (w for space, w in session.footprints.reads(result.index) if space is Memory.ACC)
    (left,) = (w for space, w in session.footprints.writes(parts[-1].index))
    bank = session.config.bank_words(Memory.ACC)
    return np.array_equal(read, left) or bool(left[0] % bank and not read[0] % bank)


def _uneven(session: Session, result: Result, mine: list[int]) -> tuple[int, str] | None:
    """A GEMM that wrote other words of the same tile than those that VECTOR reads."""
    ((_, words),) = (r for r in session.footprints.reads(result.index) if r[0] is Memory.ACC)
    others = [int(words[n]) for n in (len(words) // 2, -1, 0)]
    chains = [[p.index for p in _contributions(session, w, result.before)] for w in others]
    most = max(chains, key=lambda chain: (chains.count(chain), max(chain, default=-1)))
    most = max([mine, most], key=lambda chain: max(chain, default=-1)) if not mine else most
    different = sorted(set(most) ^ set(mine))
    layer = session.layer_of[result.index]
    strange = [index for index in mine if session.layer_of[index] != layer]
    bank = session.config.bank_words(Memory.ACC)
    if strange and (len(words) == 1 or not different):
        return result.index, (
            f"it reads acc {result.source}, where instruction {strange[0]} left sums of layer "
            f"{session.layers[session.layer_of[strange[0]]]!r}"
        )
    if not different:
        return None
    culprits = [index for index in different if session.layer_of[index] == layer] or different
    culprit = max(culprits)
    (acc,) = (w for space, w in session.footprints.writes(culprit) if space is Memory.ACC)
    if acc[0] % bank == 0 and words[0] % bank:
        return result.index, (
            f"it reads acc {words[0]} to {words[-1]}; instruction {culprit} left the sums in "
            f"{acc[0]} to {acc[-1]}"
        )
    return culprit, (
        f"it leaves sums in acc {acc[0]} to {acc[-1]}; instruction {result.index} reads "
        f"{words[0]} to {words[-1]}"
    )


@frozen
class _Part:
    """Products that GEMM ``index`` adds to one ACC word; before: position of the run just before it
    ended.  act, wgt: their words.
    """

    index: int
    gemm: Gemm
    before: int
    act: Ints
    wgt: Ints


def _contributions(session: Session, word: int, before: int) -> list[_Part]:
    """The GEMMs that make the sums in ACC word ``word``, as they are before ``before``."""
    found: list[_Part] = []
    for position in range(before - 1, -1, -1):
        moment = session.moments[position]
        instruction = session.program[moment.index]
        if moment.event is not Event.ENDED or not _writes(session, moment.index, word):
            continue
        if not isinstance(instruction, Gemm):
            break
        part, overwrites = _products(session, instruction, moment.index, position, word)
        found.append(part)
        if overwrites:
            break
    return found[::-1]


def _writes(session: Session, index: int, word: int) -> bool:
    return any(
        space is Memory.ACC and bool(np.any(words == word))
        for space, words in session.footprints.writes(index)
    )


def _products(
    session: Session, gemm: Gemm, index: int, position: int, word: int
) -> tuple[_Part, bool]:
    """The products that end in ``word``, from the last one on that overwrites it."""
    config = session.config
    acc = nest(gemm.acc_address, gemm.extent, gemm.acc_stride, config.acc_depth)
    act = nest(gemm.act_address, gemm.extent, gemm.act_stride, config.act_depth)
    wgt = nest(gemm.wgt_address, gemm.extent, gemm.wgt_stride, config.wgt_depth)
    chosen = np.flatnonzero(acc == word)
    overwrites = False
    if not gemm.accumulate:
        steps = [gemm.reduction >> level & 1 for level in range(len(gemm.extent))]
        first = np.flatnonzero(nest(0, gemm.extent, steps, 1 << 62)[chosen] == 0)
        if first.size:
            chosen, overwrites = chosen[first[-1] :], True
    return _Part(index, gemm, position, act[chosen], wgt[chosen]), overwrites


def _products_of(session: Session, reference: Reference, node: Node, result: Result) -> "_Products":
    source = reference.maker(session.record.tensors[result.tensor].name).inputs[0]
    number = session.record.number(source)
    assert number is not None
    assert isinstance(node.operator, Conv2d)
    layout = session.record.tensors[number]
    weights = np.asarray(reference.values[node.inputs[1]]).astype(np.int64)
    return _Products(
        session,
        layout,
        node.operator,
        result,
        weights[result.channel] - node.operator.weight_zero_point,
        np.asarray(reference.values[source]).reshape(layout.nhwc),
        {},
        [],
    )


@frozen
class _Products:
    """The products of one sum, against those that a convolution has.

    weights: int64[KH, KW, C].  values: int8[H, W, C].  hits: how often each weight was met.
    unknown: ACT words of which nothing is known.
    """

    session: Session
    layout: TensorLayout
    operator: Conv2d
    result: Result
    weights: Ints
    values: NDArray[np.int8]
    hits: dict[tuple[int, int, int], int]
    unknown: list[int]

    @property
    def problem(self) -> str | None:
        """Products that are missing, or there twice, after ``place_cause`` of all parts."""
        missing = self.weights.size - len(self.hits)
        twice = sum(count > 1 for count in self.hits.values())
        if self.unknown or not (missing or twice):
            return None
        return f"{missing} products are missing, {twice} are taken more than once"

    def place_cause(self, part: _Part) -> tuple[int, str] | None:
        """An ACT word that the result does not depend on."""
        self.session.position = part.before
        shadow, tensors = self.session.shadow, self.session.record.tensors
        for act in part.act.tolist():
            held = int(shadow.tensor[act])
            if held < 0:
                self.unknown.append(act)
                continue
            if tensors[held].root != self.layout.root:
                return part.index, (
                    f"it reads act {act}, which holds part of {tensors[held].name!r}; "
                    f"required {self.layout.name!r}"
                )
            for _, (row, column, channel, down, across) in self._taps(shadow.place[act]):
                if down >= 0:
                    key = down, across, channel
                    self.hits[key] = self.hits.get(key, 0) + 1
                elif not self.layout.image:
                    return part.index, (
                        f"it reads row {row}, column {column} of {self.layout.name!r} (act {act}) "
                        f"for row {self.result.row}, column {self.result.column} of the result, "
                        "whose window has it not"
                    )
        return None

    def value_cause(self, part: _Part) -> tuple[int, str] | None:
        """An input or a weight that is not the model's."""
        self.session.position = part.before
        state, shadow = self.session.replayed_state, self.session.shadow
        for act, wgt in zip(part.act.tolist(), part.wgt.tolist(), strict=True):
            if shadow.tensor[act] < 0:
                continue
            wanted = np.zeros(self.session.config.block, np.int64)
            for lane, (row, column, channel, down, across) in self._taps(shadow.place[act]):
                if down < 0:
                    continue
                wanted[lane] = self.weights[down, across, channel]
                truth = self._value(row, column, channel)
                if int(state.act[act, lane]) != truth:
                    writer = self.session.writer(Memory.ACT, act).instruction
                    return (writer.index if writer else part.index), (
                        f"act {act}, lane {lane}, holds {state.act[act, lane]} as row {row}, "
                        f"column {column}, channel {channel} of {self.layout.name!r}; "
                        f"required {truth}"
                    )
            has = state.wgt[wgt, self.result.lane].astype(np.int64) + part.gemm.weight_offset
            if not np.array_equal(has, wanted):
                lane = int(np.flatnonzero(has != wanted)[0])
                return _weight_cause(
                    self.session, part, wgt, lane, int(has[lane]), int(wanted[lane])
                )
        return None

    def _value(self, row: int, column: int, channel: int) -> int:
        height, width, _ = self.values.shape
        inside = 0 <= row < height and 0 <= column < width
        return int(self.values[row, column, channel]) if inside else self.operator.zero_point

    def _taps(self, place: Ints) -> Iterator[tuple[int, tuple[int, int, int, int, int]]]:
        return kernel_taps(self.layout, place, self.operator, self.result, self.weights.shape[:2])


def _weight_cause(
    session: Session, part: _Part, word: int, lane: int, has: int, wanted: int
) -> tuple[int, str]:
    """The cause: the wrong tile was loaded, or another one is read."""
    writer = session.writer(Memory.WGT, word)
    text = f"weight {has} in wgt {word}, input lane {lane}; the model has {wanted}"
    if one_constant(session, Memory.WGT, part.index) and writer.instruction:
        loaded = f"loaded by instruction {writer.instruction.index} from {writer.loaded_from:#x}"
        return writer.instruction.index, f"{text}; {loaded}"
    return part.index, f"{text}; it reads words that were not all loaded for it"
