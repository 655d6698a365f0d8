"""A shadow of a run's memories: who wrote each word, from where, and its tensor's element."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import (
    block_bytes,
    distinct,
    dram_word_bytes,
    load_cells,
    scratchpad_reads,
    scratchpad_writes,
)
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory, Unit

from .layouts import Frame, Record, TensorLayout

__all__ = ["Footprints", "Seen", "Shadow", "Space"]

Ints = NDArray[np.int64]
Space = Memory | None
"""A scratchpad, or DRAM (None)."""

NOBODY = -1


class Footprints:
    """Words that each instruction reads and writes, found once: words of scratchpads, and of DRAM
    (``config.block`` bytes each), ascending.
    """

    def __init__(self, program: Sequence[Instruction], config: HardwareConfig) -> None:
        self._program, self._config = program, config
        self._reads: dict[int, list[tuple[Space, Ints]]] = {}
        self._writes: dict[int, list[tuple[Space, Ints]]] = {}

    def reads(self, index: int) -> list[tuple[Space, Ints]]:
        """Places that instruction ``index`` reads."""
        if index not in self._reads:
            instruction = self._program[index]
            touches = scratchpad_reads(instruction, self._config, distinct)
            found: list[tuple[Space, Ints]] = [(t.memory, t.addresses) for t in touches]
            if isinstance(instruction, Load) and instruction.words:
                found.append((None, self._dram(instruction)))
            self._reads[index] = found
        return self._reads[index]

    def writes(self, index: int) -> list[tuple[Space, Ints]]:
        """Places that instruction ``index`` writes."""
        if index not in self._writes:
            instruction = self._program[index]
            touches = scratchpad_writes(instruction, self._config, distinct)
            found: list[tuple[Space, Ints]] = [(t.memory, t.addresses) for t in touches]
            if isinstance(instruction, Store):
                found.append((None, self._dram(instruction)))
            self._writes[index] = found
        return self._writes[index]

    def _dram(self, moved: Load | Store) -> Ints:
        lanes = self._config.block
        size = dram_word_bytes(moved, self._config)
        starts = block_bytes(moved.dram_address, moved, size) & 0xFFFFFFFF
        if size % lanes:
            return np.unique((starts[:, None] + np.arange(size)) // lanes)
        if isinstance(moved, Load) and moved.step:
            return np.unique(np.concatenate([starts, starts + size - 1]) // lanes)
        return np.unique(starts[:, None] // lanes + np.arange(size // lanes))


@frozen
class Seen:
    """Places that an instruction read, and the instruction that had written each; -1 for none."""

    space: Space
    places: Ints
    writers: Ints


class Shadow:
    """Grows with a run, instruction by instruction.

    writers: int64[depth] for each memory, and for DRAM by words of ``config.block`` bytes.
    sources: int64[depth], the DRAM byte each word was loaded from; -1 for none.
    tensor: int64[act_depth], the number of the tensor each word of ACT holds part of, -1 for none;
    place: int64[act_depth, 3], which: block, row, column, the halo included.
    """

    def __init__(
        self,
        program: Sequence[Instruction],
        config: HardwareConfig,
        dram_bytes: int,
        record: Record,
        footprints: Footprints,
    ) -> None:
        self._program, self._config, self._record = program, config, record
        self._footprints = footprints
        depths = {memory: config.depth(memory) for memory in Memory}
        self.writers: dict[Space, Ints] = {
            memory: np.full(depth, NOBODY, np.int64) for memory, depth in depths.items()
        }
        self.writers[None] = np.full(-(-dram_bytes // config.block) + 1, NOBODY, np.int64)
        self.sources = {
            memory: np.full(depth, NOBODY, np.int64) for memory, depth in depths.items()
        }
        self.tensor = np.full(config.act_depth, NOBODY, np.int64)
        self.place = np.zeros((config.act_depth, 3), np.int64)
        self._roots = [
            (number, each)
            for number, each in enumerate(record.tensors)
            if each.address is not None and each.root == each.name and not each.addend
        ]

    def seen(self, index: int) -> list[Seen]:
        """Words that instruction ``index`` would read now."""
        found = []
        for space, places in self._footprints.reads(index):
            writers = self.writers[space]
            kept = places[places < len(writers)]
            found.append(Seen(space, kept, writers[kept]))
        return found

    def apply(self, step: int) -> None:
        """Words that a step (see ``vta_sim.replayer``) changes."""
        index = step >> 1
        instruction = self._program[index]
        if instruction.unit is Unit.STORE and not step & 1:
            return
        for space, places in self._footprints.writes(index):
            writers = self.writers[space]
            writers[places[places < len(writers)]] = index
            if space is not None:
                self.sources[space][places] = NOBODY
            if space is Memory.ACT:
                self.tensor[places] = NOBODY
        match instruction:
            case Load():
                self._load(index, instruction)
            case Vector(destination=Memory.ACT):
                self._vector(index, instruction)
            case _:
                pass

    def _vector(self, index: int, vector: Vector) -> None:
        frames = self._record.frames.get(index, ())
        (written,) = scratchpad_writes(vector, self._config)
        size = len(written.addresses) // max(1, len(frames))
        for number, frame in enumerate(frames):
            self._put(frame, np.unique(written.addresses[number * size :][:size]))

    def _put(self, frame: Frame, words: Ints) -> None:
        """Words of ACT that hold what ``frame`` says."""
        places = np.stack(frame.place(words), axis=1)
        self.tensor[words], self.place[words] = frame.tensor, places
        layout = self._record.tensors[frame.tensor]
        sides = layout.halo[1], layout.halo[3]
        if not any(sides):
            return
        # The halo's columns of these rows were filled when other rows lay there.
        rows = np.unique(places[:, :2], axis=0)
        width = layout.full_size[1]
        columns = [*range(sides[0]), *range(width + sides[0], width + sum(sides))]
        for block, row in rows:
            first = frame.word + (block - frame.origin[0]) * frame.block_words
            first += (row - frame.origin[1]) * frame.row_words - frame.origin[2]
            if frame.row_words < width + sum(sides):
                continue
            beside = (first + np.array(columns)) % self._config.act_depth
            self.tensor[beside] = frame.tensor
            self.place[beside] = [(block, row, column) for column in columns]

    def _load(self, index: int, load: Load) -> None:
        memory = load.memory
        cells, data = load_cells(load, self._config.depth(memory))
        size = dram_word_bytes(load, self._config)
        if load.words:
            starts = block_bytes(load.dram_address, load, size) & 0xFFFFFFFF
            self.sources[memory][cells[data]] = starts
        if memory is not Memory.ACT:
            return
        for frame in self._record.frames.get(index, ()):
            words = cells.reshape(-1)
            block, row, column = frame.place(words)
            image = self._record.tensors[frame.tensor].image
            if image:
                column = column * image.step - image.lead
                column = column + block % image.plane_blocks * self._config.block
            self.tensor[words] = frame.tensor
            self.place[words] = np.stack((block, row, column), axis=1)
            return
        if load.words:
            self._identify(load, cells, data)

    def _identify(self, load: Load, cells: Ints, data: NDArray[np.bool_]) -> None:
        """Part of an activation in DRAM that ``load`` fetches."""
        found = self.root_at(load.dram_address)
        if found is None:
            return
        number, layout = found
        size = self._config.word_bytes(Memory.ACT)
        starts = block_bytes(load.dram_address, load, size)
        if layout.image and load.row_end:
            # The first byte may be before its row.
            first = layout.image.row_bytes - load.row_end
            block, row, column = layout.dram_place(starts - first)
            column = column + first
        else:
            block, row, column = layout.dram_place(starts)
        shape = (load.count_z, load.count_y, load.count_x)
        places = np.zeros((*cells.shape, 3), np.int64)
        planes = [each.reshape(shape) for each in (block, row, column)]
        _, y, x = (np.arange(count) for count in cells.shape)
        across = load.step or 1
        places[..., 0] = planes[0][:, :1, :1]
        places[..., 1] = planes[1][:, :1, :1] + (y - load.pad_y_before)[:, None]
        places[..., 2] = planes[2][:, :1, :1] + (x - load.pad_x_before) * across
        inside = np.stack(planes, axis=-1).reshape(-1, 3)
        places[data] = inside
        self.tensor[cells] = number
        self.place[cells] = places

    def root_at(self, address: int) -> tuple[int, TensorLayout] | None:
        """Number and layout of the activation that has DRAM byte ``address``; of an image, some
        bytes before it too.
        """
        (number,) = self.roots_at(np.array([address]))
        return None if number == NOBODY else (int(number), self._record.tensors[number])

    def roots_at(self, addresses: Ints) -> Ints:
        """Numbers of the activations that have DRAM bytes, as ``root_at``; -1 for none."""
        found = np.full(len(addresses), NOBODY, np.int64)
        for number, layout in reversed(self._roots):
            found[layout.holds(addresses)] = number
        return found
