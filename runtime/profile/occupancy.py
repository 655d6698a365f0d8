"""Words in use in the scratchpads, over time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import distinct, scratchpad_reads, scratchpad_writes
from dovetail.isa.instructions import Gemm, Instruction
from dovetail.isa.memories import Memory

from ..result import Timeline

__all__ = ["occupancy"]

Series = NDArray[np.float64]


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
    """True if the instruction needs nothing of what it found in the ``memory`` that it writes."""
    return memory is Memory.ACC and isinstance(instruction, Gemm) and not instruction.accumulate


def _add_edges(edges: NDArray[np.int64], when: NDArray[np.int64], cycles: int, step: int) -> None:
    """Let the running sum of ``edges`` change by ``step * cycles`` at each of the cycles ``when``.

    A bin that it changes within gets the average.
    """
    first, part = np.divmod(when * (len(edges) - 2), cycles)
    np.add.at(edges, first, step * (cycles - part))
    np.add.at(edges, first + 1, step * part)
