"""Elements of a word that the lanes of the vector unit take in each turn."""

from dovetail.isa.config import HardwareConfig

__all__ = ["turn_elements"]


def turn_elements(config: HardwareConfig) -> list[list[int]]:
    """For each turn, the element of each lane.

    A lane takes the rows of one group of the matrix core, or of neighbouring ones, so that it can
    are near the memories of their sums.
    """
    turns, block = config.vector_cycles, config.block
    if turns == 1:
        return [list(range(block))]
    rows = block // (config.tile_cycles * config.lane_groups)
    by_group = sorted(range(block), key=lambda row: (row // rows % config.lane_groups, row))
    return [by_group[turn::turns] for turn in range(turns)]
