"""Sums of depthwise convolutions that go wrong: what VECTOR reads, and its taps."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.memories import Memory
from dovetail.isa.requantize import low_bits
from dovetail.runtime.debug.layouts import TensorLayout
from dovetail.runtime.debug.session import Session

from ..graph.ir import Node
from ..graph.operators.integer.products import Conv2d
from .expected import Reference
from .results import Result

__all__ = ["kernel_taps", "one_constant", "tap_cause"]

Ints = NDArray[np.int64]


def one_constant(session: Session, memory: Memory, index: int) -> bool:
    """True if all words of ``memory`` that an instruction reads are of one part of one constant of
    its layer.
    """
    (words,) = (w for space, w in session.footprints.reads(index) if space is memory)
    writers = np.unique(session.shadow.writers[memory][words]).tolist()
    constants = {session.record.constants.get(writer) for writer in writers}
    layers = {session.layer_of[writer] for writer in writers if writer >= 0}
    return len(constants) == 1 and None not in constants and layers == {session.layer_of[index]}


def kernel_taps(
    layout: TensorLayout, place: Ints, operator: Conv2d, result: Result, kernel: tuple[int, ...]
) -> Iterator[tuple[int, tuple[int, int, int, int, int]]]:
    """For each lane of an ACT word with a channel: row, column, channel, and row and column of the
    kernel that meet it for ``result``; -1 where none does.
    """
    elements = layout.elements(*(np.array([each]) for each in place))
    for lane in range(layout.lanes):
        row, column, channel = (
            int(each[0, lane]) for each in (elements.row, elements.column, elements.channel)
        )
        if channel < 0:
            continue
        taps = []
        for at, of, stride, pad, dilation, size in zip(
            (row, column),
            (result.row, result.column),
            operator.strides,
            operator.pads[:2],
            operator.dilations,
            kernel,
            strict=True,
        ):
            tap, rest = divmod(at - (of * stride - pad), dilation)
            taps.append(tap if not rest and 0 <= tap < size else -1)
        if min(taps) < 0:
            taps = [-1, -1]
        yield lane, (row, column, channel, taps[0], taps[1])


def tap_cause(
    session: Session, reference: Reference, node: Node, result: Result
) -> tuple[int, str]:
    """A depthwise convolution: its inputs were compared when they were written.

    First the places that VECTOR reads, then the taps that it multiplies by: the LOAD is at fault if
    it did not bring the model's.
    """
    operator, index = node.operator, result.index
    assert isinstance(operator, Conv2d)
    source = reference.maker(session.record.tensors[result.tensor].name).inputs[0]
    weights = np.asarray(reference.values[node.inputs[1]]).astype(np.int64)
    kernel = weights[result.channel, :, :, 0] - operator.weight_zero_point
    met, unknown = _met(session, operator, source, result, kernel.shape)
    missing = [place for place in np.ndindex(kernel.shape) if place not in met]
    if len(missing) > unknown:
        row, column = (
            of * stride - pad + tap * dilation
            for of, stride, pad, tap, dilation in zip(
                (result.row, result.column),
                operator.strides,
                operator.pads[:2],
                missing[0],
                operator.dilations,
                strict=True,
            )
        )
        return index, (
            f"it does not read row {row}, column {column} of {source!r} for row {result.row}, "
            f"column {result.column} of the result, which depends on it"
        )
    if not one_constant(session, Memory.TAP, index):
        return index, "the sum of taps is wrong: it reads words that were not all loaded for it"
    added = int(low_bits(np.array(result.vector.m0), 9))
    held = session.replayed_state.tap[:, result.lane].astype(np.int64) + added
    off = {place: int(held[word] - kernel[place]) for place, word in met.items()}
    if len(off) > 1 and len(same := set(off.values())) == 1 and (more := same.pop()):
        return index, f"it adds {added} to its taps, {more} more than the model's need"
    for place, word in met.items():
        if not off[place]:
            continue
        writer = session.writer(Memory.TAP, word)
        assert writer.instruction is not None
        brought = session.footprints.writes(writer.instruction.index)[0][1]
        if Counter(kernel[kernel != 0].tolist()) <= Counter(held[brought].tolist()):
            return index, (
                f"it multiplies by {held[word]} from tap {word}; the model has {kernel[place]}, "
                f"which instruction {writer.instruction.index} loaded elsewhere"
            )
        return writer.instruction.index, (
            f"the sum of taps is wrong, and inputs are right: taps from tap "
            f"{int(brought[0])} on, loaded by instruction {writer.instruction.index} from "
            f"{session.writer(Memory.TAP, int(brought[0])).loaded_from:#x}"
        )
    return index, "the sum of taps is wrong, though it reads what the model has"


def _met(
    session: Session, operator: Conv2d, source: str, result: Result, kernel: tuple[int, ...]
) -> tuple[dict[tuple[int, int], int], int]:
    """The TAP word by which the element at each row and column of the kernel is multiplied, and the
    number of ACT words of which nothing is known.
    """
    session.position = result.before
    shadow, number = session.shadow, session.record.number(source)
    assert number is not None
    layout, unknown = session.record.tensors[number], 0
    met = dict[tuple[int, int], int]()
    for act, tap in result.products:
        held = int(shadow.tensor[act])
        if held < 0:
            unknown += 1
        elif session.record.tensors[held].root == layout.root:
            taps = dict(kernel_taps(layout, shadow.place[act], operator, result, kernel))
            _, _, channel, down, across = taps.get(result.lane, (0, 0, -1, -1, -1))
            if down >= 0 and channel == result.channel:
                met[down, across] = tap
    return met, unknown
