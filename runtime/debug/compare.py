"""Every byte of every activation as it is written, against what it ought to be."""

from collections.abc import Iterator, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Load, Store, Vector
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.state import MachineState

from ..errors import InputError
from .layouts import TensorLayout
from .moments import steps_of
from .session import InstructionInfo, Session

__all__ = ["Finding", "differences", "first_difference", "require_same_model"]

Ints = NDArray[np.int64]
Expected = Mapping[str, NDArray[Any]]


@frozen
class Finding:
    """A byte that an instruction wrote, and that ought to be another.

    tensor: of the model's graph, None for a word that belongs to none.  channel, row, column: of
    the element; None in padding.  memory: "act" or "dram"; address: of the word, lane: of the byte.
    found, expected: values; ``expected`` None where nothing ought to be.
    position: of the session, just after the byte was written.  wrong: bytes of the instruction's
    result that differ, of ``compared``.
    """

    instruction: InstructionInfo
    tensor: str | None
    channel: int | None
    row: int | None
    column: int | None
    memory: str
    address: int
    lane: int
    found: int
    expected: int | None
    cycle: int
    position: int
    wrong: int
    compared: int

    def __str__(self) -> str:
        element = (
            f"channel {self.channel}, row {self.row}, column {self.column} of {self.tensor!r}"
            if self.channel is not None
            else f"padding of {self.tensor!r}"
            if self.tensor
            else "a word outside its tensor"
        )
        expected = "" if self.expected is None else f", expected {self.expected}"
        return (
            f"layer {self.instruction.layer!r}: {element} is {self.found}{expected}; "
            f"written to {self.memory} {self.address:#x}, lane {self.lane}, in cycle {self.cycle} "
            f"by instruction {self.instruction.index}: {self.instruction.assembly}"
        )


def require_same_model(session: Session, expected: Expected) -> None:
    """Raises InputError when ``expected`` is of another model."""
    for layout in session.record.tensors:
        array = expected.get(layout.name)
        if array is None or array.shape != layout.shape:
            found = "no such tensor" if array is None else f"a tensor of shape {array.shape}"
            raise InputError(
                f"the model has {found} {layout.name!r}, which the module has as "
                f"{layout.shape}; required the model that the module was compiled from"
            )


def first_difference(
    session: Session,
    expected: Expected,
    compared: MutableMapping[int, int] | None = None,
    makers: Mapping[str, int] = MappingProxyType({}),
) -> Finding | None:
    """Go on to the first byte written from here on that differs from ``expected``; None at the end.

    expected: the tensors of the graph by name, int8[1, H, W, C] or int8[1, C].  compared: bytes
    that agree, by layer, are added to it; the layer is that of ``makers``, for their tensors, or
    else the instruction's.
    The run is the simulator's, in the order of its cycles.
    """
    for position in range(session.position, len(session.moments)):
        moment = session.moments[position]
        instruction = session.program[moment.index]
        steps = steps_of(moment, instruction.unit)
        if not steps or not _concerns(session, moment.index, steps[0]):
            continue
        session.position = position + 1
        layer = session.layer_of[moment.index]
        for found in differences(session, expected, moment.index, session.replayed_state):
            if found.wrong:
                return found
            if compared is not None:
                number = makers.get(found.tensor or "", layer)
                compared[number] = compared.get(number, 0) + found.compared
    session.position = len(session.moments)
    return _result_difference(session, expected)


def _concerns(session: Session, index: int, step: int) -> bool:
    """True if a step writes part of an activation."""
    match session.program[index]:
        case Load(memory=Memory.ACT):
            return True
        case Vector(destination=Memory.ACT):
            return index in session.record.frames
        case Store():
            return bool(step & 1)
        case _:
            return False


def differences(
    session: Session, expected: Expected, index: int, state: MachineState
) -> Iterator[Finding]:
    """The first byte that differs in what instruction ``index`` has just written in ``state``.

    One for each tensor it wrote part of; ``wrong`` is 0 where none differs.
    """
    if session.program[index].unit is Unit.STORE:
        yield from _stored(session, expected, index, state)
        return
    shadow = session.shadow
    for space, words in session.footprints.writes(index):
        if space is not Memory.ACT:
            continue
        for number in np.unique(shadow.tensor[words]):
            if number < 0:
                continue
            layout = session.record.tensors[number]
            mine = words[shadow.tensor[words] == number]
            places = tuple(shadow.place[mine].T)
            yield _compare(session, expected, index, layout, places, state.act[mine], "act", mine)


def _stored(
    session: Session, expected: Expected, index: int, state: MachineState
) -> Iterator[Finding]:
    lanes = session.config.block
    ((_, words),) = session.footprints.writes(index)
    starts = words * lanes
    roots = session.shadow.roots_at(starts)
    for number in np.unique(roots):
        mine = starts[roots == number]
        data = state.dram[mine[:, None] + np.arange(lanes)].view(np.int8)
        if number < 0:
            yield _outside(session, index, int(mine[0]), int(data[0, 0]), data.size)
            continue
        layout = session.record.tensors[number]
        places = layout.dram_place(mine)
        yield _compare(session, expected, index, layout, places, data, "dram", mine)


def _outside(session: Session, index: int, address: int, value: int, size: int) -> Finding:
    """Some of a STORE is where no tensor has a place."""
    return Finding(
        instruction=session.instruction(index),
        tensor=None,
        channel=None,
        row=None,
        column=None,
        memory="dram",
        address=address,
        lane=0,
        found=value,
        expected=None,
        cycle=session.cycle,
        position=session.position,
        wrong=size,
        compared=size,
    )


def _result_difference(session: Session, expected: Expected) -> Finding | None:
    """Difference in what the host is going to read, for example because not all was written."""
    stores = [n for n, each in enumerate(session.program) if each.unit is Unit.STORE]
    for result in session.part.results:
        root = session.shadow.root_at(result.address)
        if root is None or not stores:
            continue
        _, layout = root
        starts = result.address + np.arange(0, result.layout.size, layout.lanes)
        starts = starts[layout.holds(starts)]
        data = session.replayed_state.dram[starts[:, None] + np.arange(layout.lanes)].view(np.int8)
        found = _compare(
            session, expected, stores[-1], layout, layout.dram_place(starts), data, "dram", starts
        )
        if found.wrong:
            return found
    return None


def _compare(
    session: Session,
    expected: Expected,
    index: int,
    layout: TensorLayout,
    places: tuple[Ints, Ints, Ints],
    data: NDArray[np.int8],
    memory: str,
    addresses: Ints,
) -> Finding:
    elements = layout.elements(*places)
    known, halo = elements.known, elements.halo
    wanted = np.zeros(data.shape, np.int64)
    truth = expected[layout.name].reshape(layout.nhwc)
    at = elements.row[known], elements.column[known], elements.channel[known]
    wanted[known] = truth[at]
    instruction = session.program[index]
    if isinstance(instruction, Load) and not instruction.words:
        # Only padding, of rows that are perhaps not there yet.
        outside, known, halo = known, np.zeros_like(known), ~known
    else:
        outside = ~known & ~halo & (elements.channel >= 0)
    judged = known.copy()
    if layout.fill is not None:
        wanted[halo] = layout.fill
        judged |= halo
    wrong = (judged & (data != wanted)) | outside
    # In the order of channel, row and column; padding and what is outside last.
    shown = wrong if wrong.any() else np.ones_like(wrong)
    order = np.lexsort(
        (elements.column[shown], elements.row[shown], elements.channel[shown], ~known[shown])
    )
    word, lane = (axis[order[0]] for axis in np.nonzero(shown))
    is_known, is_outside = bool(known[word, lane]), bool(outside[word, lane])
    return Finding(
        instruction=session.instruction(index),
        tensor=None if is_outside else layout.name,
        channel=int(elements.channel[word, lane]) if is_known else None,
        row=int(elements.row[word, lane]) if is_known else None,
        column=int(elements.column[word, lane]) if is_known else None,
        memory=memory,
        address=int(addresses[word]),
        lane=int(lane),
        found=int(data[word, lane]),
        expected=None if is_outside else int(wanted[word, lane]),
        cycle=session.cycle,
        position=session.position,
        wrong=int(wrong.sum()),
        compared=int(judged.sum()),
    )
