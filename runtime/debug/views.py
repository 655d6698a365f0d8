"""Memories as typed tensors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.footprint import dram_word_bytes
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction, Load
from dovetail.isa.memories import Memory
from dovetail.isa.short_form import from_short
from dovetail.isa.state import MachineState

from ..errors import InputError
from .layouts import Elements, Record
from .shadow import Shadow

__all__ = [
    "Constant",
    "ConstantPart",
    "TensorView",
    "Words",
    "view_constant",
    "view_tensor",
    "view_words",
]

Ints = NDArray[np.int64]


@frozen
class Words:
    """Words of a scratchpad; arrays by name: its own, for PAR "bias" and "scale".

    int8[n, lanes]; of WGT int8[n, output lanes, input lanes], of ACC and biases int32[n, lanes], of
    scales float32[n, lanes].
    """

    memory: Memory
    address: int
    arrays: Mapping[str, NDArray[Any]]


def view_words(state: MachineState, memory: Memory, address: int, count: int) -> Words:
    """Copies of ``count`` words from ``address`` on.

    Raises InputError for words that do not exist.
    """
    depth = state.config.depth(memory)
    if count < 1 or not 0 <= address <= depth - count:
        raise InputError(
            f"{memory.value} {address}, {count} words; required within 0 to {depth - 1}"
        )
    part = slice(address, address + count)
    if memory is Memory.PAR:
        arrays = {"bias": state.par.bias[part].copy(), "scale": state.par.scale[part].copy()}
    else:
        arrays = {memory.value: getattr(state, memory.value)[part].copy()}
    return Words(memory, address, arrays)


@frozen
class TensorView:
    """A tensor as it is now.

    values: int8[H, W, C], or int8[C] for int8[1, C]; 0 where not present.  present: bool, of the
    same shape.  words: ACT words that hold part of it, ascending.  in_dram: whether values come
    from DRAM, at byte ``address``, because ACT has none.
    """

    name: str
    values: NDArray[np.int8]
    present: NDArray[np.bool_]
    words: Ints
    in_dram: bool
    address: int | None

    @property
    def nchw(self) -> NDArray[np.int8]:
        """The values as int8[C, H, W]."""
        return self.values.transpose(2, 0, 1) if self.values.ndim == 3 else self.values


def view_tensor(record: Record, number: int, state: MachineState, shadow: Shadow) -> TensorView:
    """Tensor ``number`` of ``record``, from ACT where it is there, else from DRAM."""
    layout = record.tensors[number]
    tags = [number]
    if not layout.addend:
        tags = [n for n, t in enumerate(record.tensors) if t.root == layout.root and not t.addend]
    words = np.flatnonzero(np.isin(shadow.tensor, tags))
    values = np.zeros(layout.nhwc, np.int8)
    present = np.zeros(layout.nhwc, bool)
    # Of several copies the one written last counts.
    words = words[np.argsort(shadow.writers[Memory.ACT][words], kind="stable")]
    block, row, column = shadow.place[words].T
    found = layout.elements(block, row, column)
    _put(values, present, found, state.act[words])
    in_dram = not present.any() and layout.address is not None and not layout.addend
    if in_dram:
        _from_dram(record, number, state, shadow, values, present)
    held = np.sort(words[found.known.any(axis=1)])
    shape = layout.shape[1:]
    return TensorView(
        layout.name,
        values.reshape(shape),
        present.reshape(shape),
        held,
        in_dram and bool(present.any()),
        layout.address,
    )


def _put(
    values: NDArray[np.int8], present: NDArray[np.bool_], elements: Elements, data: NDArray[np.int8]
) -> None:
    known = elements.known
    place = elements.row[known], elements.column[known], elements.channel[known]
    values[place] = data[known]
    present[place] = True


def _from_dram(
    record: Record,
    number: int,
    state: MachineState,
    shadow: Shadow,
    values: NDArray[np.int8],
    present: NDArray[np.bool_],
) -> None:
    """Words that a STORE wrote, or, of the program's input, all."""
    layout = record.tensors[number]
    assert layout.address is not None
    starts = layout.address + np.arange(0, layout.dram_bytes, layout.lanes)
    if number != 0:
        starts = starts[shadow.writers[None][starts // layout.lanes] >= 0]
    data = state.dram[starts[:, None] + np.arange(layout.lanes)].view(np.int8)
    _put(values, present, layout.elements(*layout.dram_place(starts)), data)


@frozen
class ConstantPart:
    """The part of a constant that one LOAD fetches; ``place``: along each axis that is cut.

    data: its bytes in DRAM, uint8[words, bytes of a word].  on_chip: of each word, whether it is in
    its memory now, bool[words].
    """

    instruction: int
    place: tuple[int, ...]
    address: int
    first_word: int
    data: NDArray[np.uint8]
    on_chip: NDArray[np.bool_]


@frozen
class Constant:
    """A constant of a layer, part by part, in the order in which they are loaded.

    shape: of all tiles of weights, as the module's record has it; None for other constants.
    """

    name: str
    memory: Memory
    parts: tuple[ConstantPart, ...]
    shape: tuple[int, ...] | None

    @property
    def values(self) -> NDArray[Any]:
        """All parts, each once: int8[n, lanes] or [n, output lanes, input lanes]; uint8 of PAR."""
        seen = {part.address: part.data for part in self.parts}
        data = np.concatenate(list(seen.values()))
        if self.memory is Memory.PAR:
            return data
        lanes = int(np.sqrt(data.shape[1])) if self.memory is Memory.WGT else 0
        return data.view(np.int8).reshape((-1, lanes, lanes) if lanes else data.shape)

    @property
    def ohwi(self) -> NDArray[np.int8]:
        """Weights as int8[output channels, rows, columns, input channels], both channels to whole
        blocks; what no LOAD fetches is 0.

        Raises InputError for another constant.
        """
        if self.shape is None:
            raise InputError(f"{self.name} has no rows and columns; required weights")
        tiles = np.zeros(self.shape, np.int8)
        places = {part.place for part in self.parts}
        cuts = [max(axis) + 1 for axis in zip(*places, strict=True)]
        cuts += [1] * (len(self.shape) - len(cuts))
        size = [whole // cut for whole, cut in zip(self.shape, cuts, strict=True)]
        for place in places:
            found = {part.address: part.data for part in self.parts if part.place == place}
            data = np.concatenate([found[address] for address in sorted(found)]).view(np.int8)
            at = (*place, *[0] * (len(size) - len(place)))
            where = tuple(slice(n * step, (n + 1) * step) for n, step in zip(at, size, strict=True))
            tiles[where] = data.reshape(size)
        outputs, inputs, height, width, _, _ = self.shape
        lanes = self.shape[4:]
        whole = (outputs * lanes[0], height, width, inputs * lanes[1])
        return tiles.transpose(0, 4, 2, 3, 1, 5).reshape(whole)


def view_constant(
    name: str,
    parts: Mapping[int, tuple[int, ...]],
    shape: tuple[int, ...] | None,
    program: Sequence[Instruction],
    state: MachineState,
    shadow: Shadow,
) -> Constant:
    """The constant that LOADs ``parts`` (instruction to place) fetch; ``shape``: of tiles."""
    found, memory = [], Memory.WGT
    for index, place in parts.items():
        load = program[index]
        assert isinstance(load, Load)
        memory = load.memory
        size = dram_word_bytes(load, state.config)
        starts = load.dram_address + size * np.arange(load.count_x)
        data = state.dram[starts[:, None] + np.arange(size)]
        if load.nibbles:
            data = from_short(data, memory, state.config, same=load.same)
        words = (load.sram_address + np.arange(load.count_x)) % state.config.depth(memory)
        found.append(
            ConstantPart(
                index,
                place,
                load.dram_address,
                load.sram_address,
                data,
                shadow.sources[memory][words] == starts,
            )
        )
    return Constant(name, memory, tuple(found), shape)
