"""Where multipliers and memories of the accelerator are on an LFE5U-85F.

nextpnr's static placer spreads what belongs together over the whole die, and the wires are then so
long that none of its routers finds ways for all.  Here each group of the matrix core's lanes has a
slab of the die from top to bottom, with its multipliers, their weights, and its sums; the
groups are in the order in which they hand on their inputs, activations below the first, and the
lanes of the vector unit, with their parameters and tables, below the sums that they read.  All
other cells follow these.

Source of the rows and columns: Project Trellis's database of LFE5U-85F, as nextpnr 0.11 names it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dovetail.isa.config import HardwareConfig
from dovetail.vta_hw.turns import turn_elements

__all__ = ["place_by_hand"]

COLUMNS = (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114)
"""First column of each block of four multipliers, or of four memories, in a row of them."""
SITES = {
    "MULT18X18D": ((0, "MULT18_0"), (1, "MULT18_1"), (4, "MULT18_4"), (5, "MULT18_5")),
    "DP16KD": ((0, "EBR0"), (2, "EBR1"), (4, "EBR2"), (6, "EBR3")),
}
"""Cells of a block: columns from the first one, and name."""
IN_BLOCK = 4

SLABS = ((0, 1, 2), (3, 4, 5), (7, 8, 9), (10, 11, 12))
"""Blocks of each group's slab; what has no place of its own finds room between them."""
SUMS_BLOCKS = 2
"""The first blocks of a slab have its sums, the last one the weights of the last inputs."""
LANE_ROWS = (10, 34)
"""Multipliers of each lane of a group, its first inputs; and the row of their weights."""
LANE_WEIGHTS = 22
LAST_INPUTS, LAST_WEIGHTS = 58, 46
"""Multipliers and weights of the last inputs of all lanes of a group."""
SUMS = 46
BELOW = (70, 82)
"""Memories of the activations, and of what the vector unit's lanes read."""
ACTIVATIONS = range(4)
"""Blocks of ``BELOW``."""
VECTOR_LANES = ((4, 5, 6), (6, 7, 8), (8, 9, 10), (10, 11, 12))
"""Blocks of ``BELOW`` for each lane of the vector unit."""
VECTOR_MULTIPLIERS = (3, 6, 10, 10)
"""Block of ``LAST_INPUTS`` for each lane of the vector unit."""

CORE = "core.accelerator."
PRODUCT = re.compile(re.escape(CORE) + r"gemm\.group(\d+)\.product(\d+)_(\d+)_")
VECTOR_LANE = re.compile(re.escape(CORE) + r"vector\.lane(\d+)\.")
MEMORY = re.compile(
    re.escape(CORE) + r"(?P<name>act|wgt|acc|par|tap|tab)\.\w+?_(?:bank|part|lane)(?P<bank>\d+)"
    r"(?:_part(?P<part>\d+))?\.\d+\.(?P<slice>\d+)"
)

Cell = dict[str, Any]
Place = tuple[int, int]
"""A row, and a block of it."""
Memory = tuple[str, int, int, int]
"""Its cell, the number in its bank's or part's name, its number in that, and the part of words:
these go turn by turn (``gemm.matrix_parts``).
"""


class _Sites:
    """The places of the die that are still free."""

    def __init__(self, cells: Mapping[str, Cell]) -> None:
        self._cells = cells
        self._taken: Counter[tuple[str, Place]] = Counter()
        self.placed = 0

    def take(self, name: str, places: Iterable[Place]) -> None:
        """Place a cell in the first of ``places`` that has room; if none has, nextpnr will."""
        cell = self._cells[name]
        for row, block in places:
            number = self._taken[cell["type"], (row, block)]
            if number < IN_BLOCK:
                column, site = SITES[cell["type"]][number]
                cell["attributes"]["BEL"] = f"X{COLUMNS[block] + column}/Y{row}/{site}"
                self._taken[cell["type"], (row, block)] += 1
                self.placed += 1
                return


def place_by_hand(module: dict[str, Any], config: HardwareConfig) -> int:
    """Give cells of ``module`` (Yosys's JSON) their places; return how many.

    Made for a configuration with four groups of two lanes in the matrix core and four lanes in the
    vector unit.  What finds no room, in others, nextpnr places.
    """
    cells: dict[str, Cell] = module["cells"]
    sites = _Sites(cells)
    memories = _memories(cells)
    _place_products(sites, cells)
    _place_weights(sites, memories["wgt"], config)
    _place_sums(sites, memories["acc"], config)
    # Banks of the same bits together: of these one is chosen.
    by_bits = sorted(memories["act"], key=lambda memory: (memory[2], memory[0]))
    for name, *_ in by_bits:
        sites.take(name, ((row, block) for block in ACTIVATIONS for row in BELOW))
    _place_vector_lanes(sites, cells, memories, config)
    return sites.placed


def _place_products(sites: _Sites, cells: Mapping[str, Cell]) -> None:
    """Four inputs of a lane in a block, the same ones of both lanes above each other."""
    products: dict[tuple[int, int, int], str] = {}
    for name, cell in cells.items():
        match = PRODUCT.match(name)
        if cell["type"] == "MULT18X18D" and match:
            group, lane, wide = map(int, match.groups())
            products[group, lane, wide] = name
    for (group, lane, wide), name in sorted(products.items()):
        sites.take(name, _lane_places(group, lane, wide // IN_BLOCK, LANE_ROWS, (LAST_INPUTS, 1)))


def _place_weights(sites: _Sites, memories: list[Memory], config: HardwareConfig) -> None:
    """The memories of the weights of four inputs, next to their multipliers.

    Where words are read in halves, four inputs have a memory for two each, with both halves.
    """
    quads = config.block // IN_BLOCK
    rows = (LANE_WEIGHTS,) * len(LANE_ROWS)
    for name, _, number, part in sorted(memories):
        lane, quad = divmod(number // config.core_clock_ratio, quads)
        group = part % config.lane_groups
        sites.take(name, _lane_places(group, lane, quad, rows, (LAST_WEIGHTS, 0)))


def _lane_places(
    group: int, lane: int, quad: int, rows: Sequence[int], last: tuple[int, int]
) -> list[Place]:
    """Where the ``quad``-th four inputs of a lane of a group go.

    last: for the last ones, the row, and whether a block further is the next lane's.
    """
    if group >= len(SLABS) or lane >= len(rows):
        return []
    slab = SLABS[group]
    if quad < len(slab):
        return [(rows[lane], slab[quad])]
    row, apart = last
    return [(row, slab[-1 - apart * (len(rows) - 1 - lane)])]


def _place_sums(sites: _Sites, memories: list[Memory], config: HardwareConfig) -> None:
    """All sums of a row of multipliers in a block: of these one is chosen."""
    for name, _, number, part in sorted(memories):
        group = part % config.lane_groups
        if group < len(SLABS) and number < SUMS_BLOCKS * config.core_clock_ratio:
            sites.take(name, [(SUMS, SLABS[group][number % SUMS_BLOCKS])])


def _place_vector_lanes(
    sites: _Sites,
    cells: Mapping[str, Cell],
    memories: Mapping[str, list[Memory]],
    config: HardwareConfig,
) -> None:
    """Parameters and tables of each lane, some of the taps, and its multipliers."""
    lane_of = {e: lane for turn in turn_elements(config) for lane, e in enumerate(turn)}
    mine: dict[int, list[str]] = defaultdict(list)
    # Memories of 32 bits: biases of all elements, then scales.
    for name, _, number, _ in sorted(memories["par"], key=lambda memory: memory[2]):
        mine[lane_of[number % config.block]].append(name)
    for name, element, *_ in sorted(memories["tab"]):
        mine[lane_of[element]].append(name)
    taps = sorted(memories["tap"], key=lambda memory: (memory[2], memory[1]))
    for number, (name, *_) in enumerate(taps):
        mine[number * len(VECTOR_LANES) // len(taps)].append(name)
    for name, cell in cells.items():
        match = VECTOR_LANE.match(name)
        if cell["type"] == "MULT18X18D" and match:
            mine[int(match[1])].append(name)
    for lane, blocks in enumerate(VECTOR_LANES):
        places = {
            "DP16KD": [(row, block) for block in blocks for row in BELOW],
            "MULT18X18D": [(LAST_INPUTS, VECTOR_MULTIPLIERS[lane])],
        }
        for name in mine[lane]:
            sites.take(name, places[cells[name]["type"]])


def _memories(cells: Mapping[str, Cell]) -> dict[str, list[Memory]]:
    """The memories of each scratchpad."""
    found: dict[str, list[Memory]] = defaultdict(list)
    for name, cell in cells.items():
        match = MEMORY.match(name)
        if cell["type"] == "DP16KD" and match:
            memory = name, int(match["bank"]), int(match["slice"]), int(match["part"] or 0)
            found[match["name"]].append(memory)
    return found
