"""An estimate of the energy of a run, from what its units did and published energies of operations.

Source: M. Horowitz, "Computing's energy problem (and what we can do about it)", ISSCC 2014: 45 nm,
0.9 V.  So it is the energy of a chip of that process, for comparing designs, not that of an FPGA:
I. Kuon and J. Rose ("Measuring the gap between FPGAs and ASICs", IEEE TCAD 26(2), 2007) found 14
times the dynamic power for logic, less with hard blocks.  Clocks and leakage are left out.
"""

from itertools import pairwise
from math import exp, log

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory

from .evaluate import Performance

__all__ = ["Energy", "estimate_energy"]

ADD32, MULTIPLY8, MULTIPLY32 = 0.1, 0.2, 3.1
"""Picojoules of an integer operation."""
SRAM = ((8 * 1024, 10.0), (32 * 1024, 20.0), (1024 * 1024, 100.0))
"""Bytes of a memory, picojoules of an access of 64 bits."""
DRAM = (1300.0, 2600.0)
"""Picojoules of an access of 64 bits to DRAM: from, to."""
LEAST_SRAM_BYTES = 512


@frozen
class Energy:
    """Microjoules; ``low`` and ``high`` are what the source's range for DRAM leaves open."""

    compute: float
    scratchpads: float
    dram: float
    low: float
    high: float

    @property
    def total(self) -> float:
        """The middle of the range."""
        return self.compute + self.scratchpads + self.dram


def estimate_energy(run: Performance, config: HardwareConfig) -> Energy:
    """Energy of ``run`` on ``config``.

    A busy cycle of GEMM is a product in each cell, a tile a word of WGT and of ACT read, a word of
    ACC read and written; a busy cycle of VECTOR is a wide product in each lane, a word one of
    ACC read and one of ACT written; a beat is an access of DRAM and of a scratchpad.  Cells that
    multiply by zero count like others.
    """
    counters, block = run.counters, config.block
    gemm, vector = counters["gemm_busy"], counters["vector_busy"]
    beats = counters["load_beats"] + counters["store_beats"] + counters["fetch_beats"]
    moved = beats * config.bus_bytes / 8
    cell, lane = MULTIPLY8 + ADD32, MULTIPLY32 + ADD32
    lanes = block // config.vector_cycles
    compute = gemm * config.macs_per_cycle * cell + vector * lanes * lane
    act, acc = _access(config, Memory.ACT), _access(config, Memory.ACC)
    tiles, words = gemm / config.tile_cycles, vector / config.vector_cycles
    scratchpads = tiles * (_access(config, Memory.WGT) + act + 2 * acc) + words * (acc + act)
    scratchpads += moved * 8 / block * act
    low, high = (moved * each for each in DRAM)
    rest = compute + scratchpads
    return Energy(
        compute=compute / 1e6,
        scratchpads=scratchpads / 1e6,
        dram=(low + high) / 2e6,
        low=(rest + low) / 1e6,
        high=(rest + high) / 1e6,
    )


def _access(config: HardwareConfig, memory: Memory) -> float:
    """Picojoules of one word: a slice of 64 bits each, which is a memory of its own."""
    return config.word_bytes(memory) / 8 * _slice_access(8 * config.bank_words(memory))


def _slice_access(size_bytes: int) -> float:
    """Between the published sizes, and beyond them, a power of the size."""
    size = max(size_bytes, LEAST_SRAM_BYTES)
    pairs = list(pairwise(SRAM))
    (small, cheap), (large, dear) = next(((a, b) for a, b in pairs if size <= b[0]), pairs[-1])
    slope = log(dear / cheap) / log(large / small)
    return cheap * exp(slope * log(size / small))
