"""Places of tensors in the memories, from when to when.

Names follow the data: a STORE gives the bytes that it writes the name of what it read, a LOAD takes
the name of the bytes.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import distinct, dram_rows, scratchpad_reads, scratchpad_writes
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Gemm, Instruction, Load, Store
from dovetail.isa.memories import Memory

from ..result import Timeline, TimelineEntry

__all__ = ["DRAM", "Holding", "memory_map"]

Ints = NDArray[np.int64]
DRAM = "DRAM"
STEPS = 256
"""Parts of a run within which times are taken for one when words are put together."""
ROWS = 128
"""Parts of a scratchpad whose words are put together."""


@frozen
class Holding:
    """Words (DRAM: bytes) ``low`` to before ``high`` hold something that is still to be read.

    begin: end of the first instruction that wrote one of them; 0 for what was there before the run.
    end: of the last one that read one of them.  layer: of the writer, else of the reader.  name: of
    the tensor or constant; "" for what the module does not name.
    """

    low: int
    high: int
    begin: int
    end: int
    layer: int
    name: str


def memory_map(
    program: Sequence[Instruction],
    timeline: Timeline,
    names: Sequence[str],
    present: Sequence[tuple[str, int, int]],
    config: HardwareConfig,
    span: tuple[int, int],
) -> dict[str, list[Holding]]:
    """Contents of each scratchpad and of DRAM, by memory; in order of ``begin``.

    program: one part's, and its entries of the timeline; span: its first cycle, and the one after
    its last.  names: of what each writes, or of the constant it loads; "" where nobody knows.
    present: name, address and bytes of tensors that are in DRAM before the run.
    Words of a tensor that are in the same 128th of a scratchpad are one holding, and so are its
    uses of them less than 1/256 of the span apart; in DRAM, all of a tensor's neighbouring bytes.
    """
    keys = _Keys()
    since, cycles = span[0], span[1] - span[0]
    quantum = max(1, cycles // STEPS)
    memories = {m.name: _Memory(config.depth(m), since) for m in Memory}
    memories[DRAM] = _Memory(_dram_words(program, config), since)
    for name, address, size in present:
        place = slice(address // config.bus_bytes, -(-(address + size) // config.bus_bytes))
        memories[DRAM].key[place] = keys.find(name, timeline[0])
    ran = [each for each in zip(timeline, program, names, strict=True) if each[0].end >= 0]
    for entry, instruction, name in sorted(ran, key=lambda each: each[0].end):
        source = keys.find(name, entry)
        for touch in scratchpad_reads(instruction, config, distinct):
            begins = isinstance(instruction, Gemm) and not instruction.accumulate
            if touch.memory is not Memory.ACC or not begins:
                memories[touch.memory.name].read(touch.addresses, entry.end)
        if isinstance(instruction, Load | Store):
            words = _bus_words(instruction, config)
            if isinstance(instruction, Store):
                read = scratchpad_reads(instruction, config, distinct)[0]
                given = memories[read.memory.name].key[read.addresses]
                memories[DRAM].write(words, int(given[0]) if len(given) else source, entry.end)
            else:
                memories[DRAM].find(words, source)
                memories[DRAM].read(words, entry.end)
                if not name and len(words):
                    source = int(memories[DRAM].key[words[0]])
        for touch in scratchpad_writes(instruction, config, distinct):
            memories[touch.memory.name].write(touch.addresses, source, entry.end)
    found = {}
    for memory, held in memories.items():
        size = config.bus_bytes if memory == DRAM else 1
        found[memory] = [
            Holding(low * size, high * size, begin, end, *keys.known[key])
            for low, high, begin, end, key in held.stretches(
                quantum if memory != DRAM else cycles + 1, ROWS if memory != DRAM else 1
            )
        ]
    return found


class _Keys:
    """Numbers of what memories hold: a layer, and a name."""

    def __init__(self) -> None:
        self.known: list[tuple[int, str]] = []
        self._numbers: dict[tuple[int, str], int] = {}

    def find(self, name: str, entry: TimelineEntry) -> int:
        """The number of what an instruction writes."""
        key = entry.layer, name
        if key not in self._numbers:
            self._numbers[key] = len(self.known)
            self.known.append(key)
        return self._numbers[key]


class _Memory:
    """By word: the key of what it holds (-1: nothing), since when, and when it was read last."""

    def __init__(self, depth: int, since: int) -> None:
        self.key = np.full(depth, -1, np.int64)
        self._begin = np.full(depth, since, np.int64)
        self._end = np.full(depth, -1, np.int64)
        self._closed: list[Ints] = []

    def find(self, words: Ints, key: int) -> None:
        """Words that nothing wrote held ``key`` from the beginning."""
        new = words[self.key[words] < 0]
        self.key[new] = key

    def read(self, words: Ints, when: int) -> None:
        self._end[words] = when

    def write(self, words: Ints, key: int, when: int) -> None:
        self._close(words)
        self.key[words], self._begin[words], self._end[words] = key, when, -1

    def _close(self, words: Ints) -> None:
        """Note what the words held, if it was read: neighbours that were alike as one."""
        used = words[self._end[words] >= 0]
        if len(used):
            rows = np.stack((used, self.key[used], self._begin[used], self._end[used]))
            steps = np.diff(rows)
            new = (steps[0] != 1) | steps[1:].any(0)
            starts = np.concatenate(([0], np.flatnonzero(new) + 1))
            last = np.concatenate((starts[1:] - 1, [len(used) - 1]))
            self._closed.append(np.concatenate((rows[:, starts], used[None, last])))

    def stretches(self, quantum: int, parts: int) -> list[tuple[int, int, int, int, int]]:
        """First word, the one after the last, begin, end and key; in order of begin.

        Uses less than ``quantum`` cycles apart, of words in the same of ``parts`` of the memory,
        are one; then those of neighbouring parts whose times differ by less than it.
        """
        self._close(np.arange(len(self.key)))
        if not self._closed:
            return []
        low, key, begin, end, high = np.concatenate(self._closed, axis=1)
        size = -(-len(self.key) // parts) if parts > 1 else 1
        part = low // size if parts > 1 else _stretch(key, low, high)
        order = np.lexsort((begin, part, key))
        low, high, key, begin, end, part = (
            each[order] for each in (low, high, key, begin, end, part)
        )
        new = (np.diff(key) != 0) | (np.diff(part) != 0)
        group = np.concatenate(([0], np.cumsum(new)))
        apart = group * (end.max() + quantum + 1)
        latest = np.maximum.accumulate(end + apart)[:-1]
        new |= (begin + apart)[1:] > latest + quantum
        low, high, first, last, key, part = _reduced(new, low, high, begin, end, key, part)
        order = np.lexsort((part, last // quantum, first // quantum, key))
        rows = [each[order] for each in (low, high, first, last, key, part)]
        steps = np.diff([rows[4], rows[2] // quantum, rows[3] // quantum])
        new = (rows[0][1:] - rows[1][:-1] > size) | steps.any(0)
        found = _reduced(new, *rows)
        return sorted(
            (
                (int(a), int(b) + 1, int(c), int(d), int(e))
                for a, b, c, d, e in zip(*found[:5], strict=True)
            ),
            key=lambda each: each[2:3] + each[:1],
        )


def _stretch(key: Ints, low: Ints, high: Ints) -> Ints:
    """By run of words, the number of the stretch of neighbouring runs of the same key it is in."""
    order = np.lexsort((low, key))
    group = np.concatenate(([0], np.cumsum(np.diff(key[order]) != 0)))
    apart = group * (int(high.max()) + 2)
    highest = np.maximum.accumulate(high[order] + apart)[:-1]
    found = np.empty_like(low)
    found[order] = np.concatenate(([0], np.cumsum((low[order] + apart)[1:] > highest + 1)))
    return found


def _reduced(new: NDArray[np.bool_], *rows: Ints) -> list[Ints]:
    """Groups of columns, a group begins where ``new``: least low, greatest high, least begin,
    greatest end, and the first of what else there is.
    """
    starts = np.concatenate(([0], np.flatnonzero(new) + 1))
    how = (np.minimum, np.maximum, np.minimum, np.maximum)
    return [
        *(each.reduceat(row, starts) for each, row in zip(how, rows, strict=False)),
        *(row[starts] for row in rows[4:]),
    ]


def _bus_words(instruction: Load | Store, config: HardwareConfig) -> Ints:
    """The words of the bus's width that a LOAD or STORE moves."""
    rows = dram_rows(instruction, config)
    size = config.bus_bytes
    parts = [np.arange(begin // size, (begin + count) // size) for begin, count in rows]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _dram_words(program: Sequence[Instruction], config: HardwareConfig) -> int:
    """Words of the bus's width up to the last one that the program moves."""
    ends = (
        begin + count
        for instruction in program
        if isinstance(instruction, Load | Store)
        for begin, count in dram_rows(instruction, config)
    )
    return max(ends, default=0) // config.bus_bytes
