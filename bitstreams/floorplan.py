"""Where multipliers and memories of the matrix core lie on an LFE5U-85F.

nextpnr's static placer spreads the multipliers of a lane over the whole die, and the wires to them
are then so long that none of its routers finds ways for all.  Here a lane's multipliers lie side by
side, its weights and sums in the rows of memories next to them, the groups in the order in which
they hand on their inputs, and the activations beside the first.  All other cells follow these.

Source of the rows and columns: Project Trellis's database of LFE5U-85F, as nextpnr 0.11 names it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["place_matrix_core"]

COLUMNS = (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114)
"""First column of each block of four multipliers, or of four memories, in a row of them."""
MULTIPLIERS = ((0, "MULT18_0"), (1, "MULT18_1"), (4, "MULT18_4"), (5, "MULT18_5"))
"""Of each in a block: columns from the first one, and name."""
MEMORIES = ((0, "EBR0"), (2, "EBR1"), (4, "EBR2"), (6, "EBR3"))

CORE = "core.accelerator."
PRODUCT = re.compile(re.escape(CORE) + r"gemm\.group(\d+)\.product(\d+)_(\d+)_")
WEIGHTS = re.compile(re.escape(CORE) + r"gemm\.group(\d+)\.wgt_(\d+)__data")
SUMS = re.compile(re.escape(CORE) + r"acc\.acc_bank\d+_part(\d+)\.")
ACTIVATIONS = re.compile(re.escape(CORE) + r"act\.act_bank\d+\.")

Cell = dict[str, Any]
Lane = dict[tuple[int, int], str]
"""The multiplier of each lane and input of a group."""


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows of the die for some groups of lanes, one after the other over ``blocks``.

    multipliers: rows; weights, sums: the row of memories for each.
    """

    multipliers: tuple[int, ...]
    weights: int
    sums: int
    blocks: tuple[int, ...]


STRIPS = (
    Strip((10, 34), 22, 46, tuple(range(12))),
    Strip((58,), 46, 70, tuple(range(11, 3, -1))),
)
FOR_ACTIVATIONS = ((46, range(4)), (70, range(7)))
"""Row of memories, and blocks of it."""


class _Memories:
    """The memories of the die that are still free."""

    def __init__(self, cells: dict[str, Cell]) -> None:
        self._cells = cells
        self._taken: dict[tuple[int, int], int] = defaultdict(int)
        self.placed = 0

    def place(self, names: Iterable[str], row: int, blocks: Iterable[int]) -> list[str]:
        """Place as many as fit, evenly over the blocks; return the others."""
        left, places = list(names), list(blocks)
        each = -(-len(left) // len(places))
        for block in places:
            for _ in range(each):
                if left and self._taken[row, block] < len(MEMORIES):
                    site = _site(row, block, MEMORIES[self._taken[row, block]])
                    self._cells[left.pop(0)]["attributes"]["BEL"] = site
                    self._taken[row, block] += 1
                    self.placed += 1
        return left


def place_matrix_core(module: dict[str, Any]) -> int:
    """Give cells of ``module`` (Yosys's JSON) their places; return how many.

    What finds no room, in a configuration of other sizes, nextpnr places.
    """
    cells: dict[str, Cell] = module["cells"]
    memories = _Memories(cells)
    products, weights = _products(cells), _weights(module)
    sums = _sums(cells, len(products))
    placed, strips = 0, list(STRIPS)
    start = 0
    for group, lanes in sorted(products.items()):
        quads = len(lanes) // len(MULTIPLIERS)
        while strips and start + -(-quads // len(strips[0].multipliers)) > len(strips[0].blocks):
            strips.pop(0)
            start = 0
        if not strips:
            break
        strip, height = strips[0], len(strips[0].multipliers)
        blocks = strip.blocks[start : start + -(-quads // height)]
        start += len(blocks)
        # Lanes beside each other: the same inputs of all lanes, then the next inputs.
        order = sorted(lanes, key=lambda place: (place[1] // len(MULTIPLIERS), *place))
        for number, place in enumerate(order):
            quad, within = divmod(number, len(MULTIPLIERS))
            site = _site(
                strip.multipliers[quad % height], blocks[quad // height], MULTIPLIERS[within]
            )
            cells[lanes[place]]["attributes"]["BEL"] = site
            placed += 1
        by_quad: dict[int, list[str]] = defaultdict(list)
        wide = max(i for _, i in lanes) + 1
        for name, bit in weights[group]:
            lane, of_lane = divmod(bit, 8 * wide)
            quad = of_lane // (8 * len(MULTIPLIERS)) * (1 + max(o for o, _ in lanes)) + lane
            by_quad[quad // height].append(name)
        for block, names in by_quad.items():
            memories.place(sorted(names), strip.weights, blocks[block : block + 1])
        memories.place(sums[group], strip.sums, blocks)
    left = sorted(name for name in cells if ACTIVATIONS.match(name) and _is_memory(cells[name]))
    for row, blocks_of_row in FOR_ACTIVATIONS:
        left = memories.place(left, row, blocks_of_row)
    return placed + memories.placed


def _site(row: int, block: int, position: tuple[int, str]) -> str:
    """nextpnr's name of a place."""
    column, name = position
    return f"X{COLUMNS[block] + column}/Y{row}/{name}"


def _is_memory(cell: Cell) -> bool:
    return bool(cell["type"] == "DP16KD")


def _products(cells: dict[str, Cell]) -> dict[int, Lane]:
    """The multipliers of each group."""
    found: dict[int, Lane] = defaultdict(dict)
    for name, cell in cells.items():
        match = PRODUCT.match(name)
        if cell["type"] == "MULT18X18D" and match:
            group, lane, wide = map(int, match.groups())
            found[group][lane, wide] = name
    return found


def _weights(module: dict[str, Any]) -> dict[int, list[tuple[str, int]]]:
    """Of each group, the memories of its weights, with the lowest bit of its rows in each."""
    places: dict[int | str, tuple[int, int]] = {}
    for name, net in module["netnames"].items():
        match = WEIGHTS.fullmatch(name)
        if match:
            places |= {bit: (int(match[1]), place) for place, bit in enumerate(net["bits"])}
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for name, cell in module["cells"].items():
        if _is_memory(cell):
            known = [places[bit] for bit in _outputs(cell) if bit in places]
            if known:
                found[known[0][0]].append((name, min(place for _, place in known)))
    return found


def _outputs(cell: Cell) -> Iterator[int | str]:
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == "output":
            yield from bits


def _sums(cells: dict[str, Cell], groups: int) -> dict[int, list[str]]:
    """Of each group, the memories of its sums; parts go turn by turn (``gemm.matrix_parts``)."""
    found: dict[int, list[str]] = defaultdict(list)
    for name, cell in sorted(cells.items()):
        match = SUMS.match(name)
        if _is_memory(cell) and match:
            found[int(match[1]) % groups].append(name)
    return found
