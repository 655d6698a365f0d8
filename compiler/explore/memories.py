"""Block RAMs of a configuration's scratchpads: the same count as Yosys's, since a memory is cut
into equal blocks of one of the shapes that a family's block RAM can have.

Sources: Lattice FPGA-TN-02204 (DP16KD, PDPW16KD), AMD UG473 (RAMB18E1, RAMB36E1); which memories
are deep enough is what Yosys 0.70 was seen to do.
"""

from collections.abc import Iterator

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory

__all__ = ["BLOCK_SHAPES", "Bank", "banks", "block_rams", "distributed_bits"]

TAP_PARTS = 4
"""Memories that TAP is made of, to be read four words at a time."""


@frozen
class Shape:
    """A form of a block RAM: bits a word, words, and how much of a whole block it takes."""

    width: int
    depth: int
    blocks: float


@frozen
class Bank:
    """``count`` equal memories."""

    count: int
    width: int
    depth: int


BLOCK_SHAPES = {
    "ECP5": tuple(
        Shape(width, depth, 1)
        for width, depth in ((36, 512), (18, 1024), (9, 2048), (4, 4096), (2, 8192), (1, 16384))
    ),
    "Xilinx 7": (
        *(Shape(w, d, 0.5) for w, d in ((36, 512), (18, 1024), (9, 2048), (4, 4096))),
        *(Shape(w, d, 1) for w, d in ((72, 512), (36, 1024), (18, 2048), (9, 4096), (4, 8192))),
        *(Shape(w, d, 1) for w, d in ((2, 16384), (1, 32768))),
    ),
}
LEAST_DEPTH = {"ECP5": 64, "Xilinx 7": 128}
"""Memories of fewer words become LUTs used as RAM."""


def banks(config: HardwareConfig) -> Iterator[Bank]:
    """Every scratchpad of ``config`` as the gateware makes it.

    Of a memory that is written beat by beat, each beat of a word has block RAMs of its own.
    """
    beat = 8 * config.bus_bytes
    for memory, bank in _whole_banks(config):
        if memory in config.by_beats and bank.width > beat:
            yield Bank(bank.count * (bank.width // beat), beat, bank.depth)
            if bank.width % beat:
                yield Bank(bank.count, bank.width % beat, bank.depth)
        else:
            yield bank


def _whole_banks(config: HardwareConfig) -> Iterator[tuple[Memory, Bank]]:
    for memory in Memory:
        width, depth = 8 * config.word_bytes(memory), config.depth(memory)
        match memory:
            case Memory.TAP:
                yield memory, Bank(TAP_PARTS, width, depth // TAP_PARTS)
            case Memory.TAB:
                yield memory, Bank(config.block, 8, depth)
            case Memory.WGT | Memory.ACC:
                parts = config.tile_cycles * config.lane_groups
                count = parts * config.banks(memory)
                yield memory, Bank(count, width // parts, config.bank_words(memory))
            case _:
                yield memory, Bank(config.banks(memory), width, config.bank_words(memory))


def block_rams(config: HardwareConfig, family: str) -> float:
    """Block RAMs of all scratchpads."""
    return sum(
        bank.count
        * min(
            -(-bank.width // shape.width) * -(-bank.depth // shape.depth) * shape.blocks
            for shape in BLOCK_SHAPES[family]
        )
        for bank in banks(config)
        if bank.depth >= LEAST_DEPTH[family]
    )


def distributed_bits(config: HardwareConfig, family: str) -> int:
    """Bits of the scratchpads that are too shallow for block RAM, and of the bursts that STORE
    buffers, which are read in the same cycle.
    """
    return 8 * config.store_slots * config.burst_bytes + sum(
        bank.count * bank.width * bank.depth
        for bank in banks(config)
        if bank.depth < LEAST_DEPTH[family]
    )
