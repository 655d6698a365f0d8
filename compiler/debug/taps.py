"""Sums of depthwise convolutions that go wrong: what VECTOR reads, and its taps."""

import numpy as np

from dovetail.isa.memories import Memory
from dovetail.runtime.debug.session import Session

from ..graph.ir import Node
from ..graph.operators.integer.products import Conv2d
from .expected import Reference
from .results import Result

__all__ = ["one_constant", "tap_cause"]


def one_constant(session: Session, memory: Memory, index: int) -> bool:
    """True if all words of ``memory`` that an instruction reads are of one part of one constant of
    its layer.
    """
    (words,) = (w for space, w in session.footprints.reads(index) if space is memory)
    writers = np.unique(session.shadow.writers[memory][words]).tolist()
    constants = {session.record.constants.get(writer) for writer in writers}
    layers = {session.layer_of[writer] for writer in writers if writer >= 0}
    return len(constants) == 1 and None not in constants and layers == {session.layer_of[index]}


def tap_cause(
    session: Session, reference: Reference, node: Node, result: Result
) -> tuple[int, str]:
    """A depthwise convolution: its inputs were compared when they were written."""
    operator, index = node.operator, result.index
    assert isinstance(operator, Conv2d)
    session.position = result.before
    shadow = session.shadow
    reads = dict(session.footprints.reads(index))
    shape = np.asarray(reference.values[node.inputs[1]]).shape
    source = reference.maker(session.record.tensors[result.tensor].name).inputs[0]
    number = session.record.number(source)
    assert number is not None
    layout, words = session.record.tensors[number], reads[Memory.ACT]
    known = bool((shadow.tensor[words] >= 0).all())
    block, row, column = shadow.place[words].T
    elements = layout.elements(block, row, column)
    for axis, places, found in (
        (0, result.rows, elements.row[:, 0]),
        (1, result.columns, elements.column[:, 0]),
    ):
        taps = np.arange(shape[axis + 1]) * operator.dilations[axis] - operator.pads[axis]
        needed = np.array(places)[:, None] * operator.strides[axis] + taps
        missing = np.setdiff1d(needed, found)
        if missing.size and known:
            return index, (
                f"it does not read {('row', 'column')[axis]} {missing[0]} of {source!r}, on which "
                "its results depend"
            )
    if Memory.TAP in reads and one_constant(session, Memory.TAP, index):
        word = int(reads[Memory.TAP][0])
        writer = session.writer(Memory.TAP, word)
        assert writer.instruction is not None
        return writer.instruction.index, (
            f"the sum of taps is wrong, and inputs are right: taps from tap {word} on, loaded by "
            f"instruction {writer.instruction.index} from {writer.loaded_from:#x}"
        )
    return index, "the sum of taps is wrong: it reads words that were not all loaded for it"
