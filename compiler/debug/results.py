"""One result of a VECTOR instruction: where it comes from, and its sum before it was finished."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.footprint import (
    column_elements,
    element_words,
    is_window,
    nest,
    outer_extent,
    results_written,
    window_taps,
)
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Fold, Multiplier, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.semantics import fold, window_sums
from dovetail.runtime.debug.compare import Finding
from dovetail.runtime.debug.session import Session

__all__ = ["Result", "result_of"]


@frozen
class Result:
    """A wrong element that VECTOR ``index`` wrote.

    tensor: its number.  row, column, channel: of the element; block: of its word, among those of
    the root; lane.  totals: of all lanes before the finish.  source: the first ACC or ACT word that
    it folds, of those of a window the instruction's.  products: words of ACT and TAP that are
    multiplied for it.  par: its word of PAR.  before: position of the run just before it was
    written.  spills: whether the instruction writes places that its tensor has not.
    """

    index: int
    vector: Vector
    tensor: int
    row: int
    column: int
    channel: int
    block: int
    lane: int
    totals: NDArray[np.int64]
    source: int
    products: tuple[tuple[int, int], ...]
    par: int
    before: int
    spills: bool

    @property
    def total(self) -> int:
        """The sum in its lane."""
        return int(self.totals[self.lane])


def result_of(session: Session, finding: Finding, vector: Vector) -> Result | None:
    """The result that ``finding`` is a byte of; None for padding."""
    config, index = session.config, finding.instruction.index
    frames = session.record.frames.get(index)
    if finding.channel is None or finding.row is None or finding.column is None:
        return None
    if not frames or finding.memory != "act":
        return None
    outer = outer_extent(vector)
    places = nest(
        vector.destination_address,
        outer,
        vector.destination_stride,
        config.depth(vector.destination),
    )
    kept = results_written(vector)
    number = int(np.flatnonzero(kept & (places == finding.address))[-1])
    session.position = finding.position - 1
    state = session.replayed_state
    words = element_words(vector, config)
    held = state.act if vector.source is Memory.ACT else state.acc
    values = held[words].astype(np.int32)
    products: Iterable[tuple[Any, Any]] = ()
    if is_window(vector):
        factors = window_taps(vector, config)
        totals = window_sums(values, vector, state.tap[factors])
        source = int(words[0])
        products = _window(vector, words, factors, number)
    else:
        taps = None
        if vector.fold is Fold.MAC and vector.multiplier is Multiplier.TAP:
            where = nest(vector.tap_address, vector.extent, vector.tap_stride, config.tap_depth)
            taps = state.tap[where].reshape(len(places), -1, config.block)
            pairs = (each.reshape(len(places), -1)[number] for each in (words, where))
            products = zip(*pairs, strict=True)
        totals = fold(values.reshape(len(places), -1, config.block), vector, taps)
        source = int(words.reshape(len(places), -1)[number, 0])
    par = nest(vector.par_address, outer, vector.par_stride, config.par_depth)[number]
    share = number * len(frames) // len(places)
    frame, size = frames[share], len(places) // len(frames)
    layout = session.record.tensors[frame.tensor]
    mine = slice(share * size, (share + 1) * size)
    block, row, column = frame.place(places[mine][kept[mine]])
    elements = layout.elements(block, row, column)
    inside = elements.known.any(axis=1)
    (word_block,) = frame.place(np.array([finding.address]))[0].tolist()
    return Result(
        index,
        vector,
        frame.tensor,
        finding.row,
        finding.column,
        finding.channel,
        word_block,
        finding.lane,
        totals[number].astype(np.int64),
        source,
        tuple((int(act), int(tap)) for act, tap in products),
        int(par),
        finding.position - 1,
        not bool(inside.all()),
    )


def _window(
    vector: Vector, words: NDArray[np.int64], taps: NDArray[np.int64], number: int
) -> Iterator[tuple[int, int]]:
    """Words of ACT and TAP of the window of result ``number``: three columns, each with a tap."""
    levels, column = vector.reduction_levels, column_elements(vector)
    groups, run = (*vector.extent, 1)[levels], int(np.prod(vector.extent[: levels + 1]))
    of, group = divmod(number, groups)
    last = (group + 1) * (run // column // groups) - 1
    for tap, at in enumerate(range(last - 2, last + 1)):
        if at >= 0:
            mine = slice(of * run + at * column, of * run + (at + 1) * column)
            yield from zip(words[mine].tolist(), taps[mine, tap].tolist(), strict=True)
