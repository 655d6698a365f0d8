"""Bytes on the memory bus, and words in use in the scratchpads, over time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.footprint import distinct, dram_rows, scratchpad_reads, scratchpad_writes
from dovetail.isa.instructions import Gemm, Instruction, Load, Store
from dovetail.isa.memories import Memory

from ..result import Timeline

__all__ = ["dram_traffic", "occupancy"]

Series = NDArray[np.float64]


def dram_traffic(
    program: Sequence[Instruction],
    timeline: Timeline,
    config: HardwareConfig,
    cycles: int,
    bins: int,
) -> dict[str, Series]:
    """Bytes a cycle in each of ``bins`` equal parts of the run: "fetch", "load", "store".

    What an instruction moves is spread evenly over its time; an instruction is fetched in the
    cycles before it is queued.
    """
    found = {name: np.zeros(bins) for name in ("fetch", "load", "store")}
    beats = INSTRUCTION_BYTES // config.bus_bytes * config.dram.beat_interval_cycles
    for entry, instruction in zip(timeline, program, strict=True):
        if entry.queued >= 0:
            _spread(found["fetch"], entry.queued - beats, entry.queued, INSTRUCTION_BYTES, cycles)
        if entry.end < 0:
            continue
        if isinstance(instruction, Load | Store):
            size = sum(size for _, size in dram_rows(instruction, config))
            name = "load" if isinstance(instruction, Load) else "store"
            _spread(found[name], entry.start, entry.end, size, cycles)
    width = cycles / bins
    return {name: series / width for name, series in found.items()}


def _spread(series: Series, begin: int, end: int, size: float, cycles: int) -> None:
    """Add ``size``, evenly from cycle ``begin`` to ``end``."""
    scale = len(series) / cycles
    first, last = max(begin, 0) * scale, min(max(end, begin + 1), cycles) * scale
    if last <= first:
        return
    density = size / (last - first)
    low, high = int(first), min(int(last), len(series) - 1)
    if low == high:
        series[low] += size
        return
    series[low] += density * (low + 1 - first)
    series[low + 1 : high] += density
    series[high] += density * (last - high)


def occupancy(
    program: Sequence[Instruction],
    timeline: Timeline,
    config: HardwareConfig,
    cycles: int,
    bins: int,
) -> dict[Memory, Series]:
    """Part of each scratchpad, 0 to 1, that holds what is still to be read.

    A word is in use from the end of the instruction that writes it to the end of the last one that
    reads it before it is written again.  Each value is the average over its part of the run.
    """
    edges = {memory: np.zeros(bins + 2, np.int64) for memory in Memory}
    written = {memory: np.full(config.depth(memory), -1, np.int64) for memory in Memory}
    last_read = {memory: np.full(config.depth(memory), -1, np.int64) for memory in Memory}

    def close(memory: Memory, words: NDArray[np.int64]) -> None:
        begin, end = written[memory][words], last_read[memory][words]
        used = (begin >= 0) & (end >= begin)
        _add_edges(edges[memory], begin[used], cycles, 1)
        _add_edges(edges[memory], end[used], cycles, -1)

    ended = sorted((e for e in timeline if e.end >= 0), key=lambda e: e.end)
    for entry in ended:
        instruction = program[entry.index]
        for touch in scratchpad_reads(instruction, config, distinct):
            words = touch.addresses
            if _overwrites(instruction, touch.memory):
                continue
            last_read[touch.memory][words] = entry.end
        for touch in scratchpad_writes(instruction, config, distinct):
            words = touch.addresses
            # An instruction that adds to a word reads it first: the word stays in use.
            again = last_read[touch.memory][words] == entry.end
            close(touch.memory, words[~again])
            written[touch.memory][words[~again]] = entry.end
            last_read[touch.memory][words[~again]] = -1
    for memory in Memory:
        close(memory, np.arange(config.depth(memory)))
    whole = {memory: config.depth(memory) * cycles for memory in Memory}
    return {memory: np.cumsum(edges[memory])[:bins] / whole[memory] for memory in Memory}


def _overwrites(instruction: Instruction, memory: Memory) -> bool:
    """Whether the instruction needs nothing of what it found in the ``memory`` that it writes."""
    return memory is Memory.ACC and isinstance(instruction, Gemm) and not instruction.accumulate


def _add_edges(edges: NDArray[np.int64], when: NDArray[np.int64], cycles: int, step: int) -> None:
    """Let the running sum of ``edges`` change by ``step * cycles`` at each of the cycles ``when``.

    A bin that it changes within gets the average.
    """
    first, part = np.divmod(when * (len(edges) - 2), cycles)
    np.add.at(edges, first, step * (cycles - part))
    np.add.at(edges, first + 1, step * part)
