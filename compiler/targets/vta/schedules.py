"""Schedules of layers: their loops in tiles, what is inside a tile in hardware.

    for c: for y: for x: y[...] = finish(acc[...])
    ->   for c.outer: for y.outer: for x.outer:
           alloc acc of a tile: sum it up; for c.inner: for y.inner: for x.inner: ...

The loops are those that ``layers/definition`` names.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from dovetail.isa.frozen import frozen, replace

from ...errors import DoesNotFitError
from ...loops.expressions import Scope
from ...loops.ir import Allocate, For, Function, LoopKind
from ...loops.traverse import walk
from ...schedule.steps.schedule import Schedule
from .alike import Alike
from .grains import COARSE, Grain
from .layers.lower import ADDEND
from .layers.row_norm import KEPT, WIDE
from .layers.row_parameters import LESS, OVER, SQUARES
from .layers.tap_row import GROUPS
from .model import slides
from .nest import Kernel
from .read_nests import BYTE, HIGH, LOW, read_nests

__all__ = [
    "AXES",
    "Limits",
    "Scheduled",
    "Schedules",
    "Tiling",
    "default_tiling",
    "divisors",
    "has_own_taps",
    "tiled",
]

AXES = ("c", "y", "x")
FAR = 8
"""A tile that is this many times smaller than wanted gives way to one that is larger."""

PARTS = {"weights": Scope.WGT, "taps": Scope.TAP}
"""Constants of which a tile has only its part, and their memories."""

WHOLE = {
    "bias": Scope.PAR,
    "scale": Scope.PAR,
    "add_bias": Scope.PAR,
    "add_scale": Scope.PAR,
    "row_bias": Scope.PAR,
    "row_scale": Scope.PAR,
    "table": Scope.TAB,
    "table_low": Scope.TAB,
    "table_high": Scope.TAB,
}
"""Constants that are all there from the beginning, unless each tile has its part."""

CONSTANTS = (*PARTS, *WHOLE)
"""Names of layers' constants."""

LANES = ("l", "i")
MOST_KEPT = 1024
"""Schedules that a process remembers."""


@frozen
class Limits:
    """Memory that a tile may need.

    acc_words: ACC words of a tile.  wgt_words: WGT tiles of one channel block group.  tap_words:
    TAP words of a tile that has not all taps of its layer.  rows: with parameters of their own.
    """

    acc_words: int
    wgt_words: int
    tap_words: int
    rows: int = 0


@frozen
class Tiling:
    """sizes: iterations of c, y, x in a tile; of k in a part, if it has parts.

    outer: the axes of the loops over tiles, from the outermost.  depth: tiles under way at once.
    parted: constants of which each tile has only its part, besides weights and taps.
    apart: whether two tensors that one address walks over have their blocks differently far apart.
    held: iterations of k whose inputs are in a window at a time; 0 where all do.
    """

    sizes: Mapping[str, int]
    outer: tuple[str, ...]
    depth: int = 1
    parted: tuple[str, ...] = ()
    apart: bool = False
    held: int = 0


@frozen
class Scheduled:
    """A layer in tiles, and the nests of that."""

    schedule: Schedule
    kernel: Kernel


class Schedules:
    """Layers in tiles; remembers those that were made, because plans share most of theirs."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[Function, Scheduled]] = {}

    def of(self, function: Function, tiling: Tiling) -> Scheduled:
        """``function`` in the tiles of ``tiling``."""
        sizes = tuple(sorted(tiling.sizes.items()))
        how = sizes, tiling.outer, tiling.depth, tiling.parted, tiling.apart
        key = id(function), *how
        if key not in self._made:
            alike = Alike.of(function, CONSTANTS)
            schedule = _tiled(alike.function, *how)
            own = alike.own(schedule.function)
            schedule = replace(schedule, function=own)
            self._made[key] = function, Scheduled(schedule, read_nests(own))
        return self._made[key][1]


@lru_cache(MOST_KEPT)
def _tiled(
    function: Function,
    sizes: tuple[tuple[str, int], ...],
    outer: tuple[str, ...],
    depth: int,
    parted: tuple[str, ...],
    apart: bool,
) -> Schedule:
    """The schedule of all layers that are alike."""
    return tiled(function, Tiling(dict(sizes), outer, depth, parted, apart))


def default_tiling(kernel: Kernel, limits: Limits, depth: int = 1, grain: Grain = COARSE) -> Tiling:
    """The plain one: tiles that fit, sums and weights of one tile only.

    Raises DoesNotFitError when not even the smallest tile fits.
    """
    extents = kernel.extents
    limits = replace(limits, acc_words=limits.acc_words // kernel.sum_words)
    has_sums = "acc" in kernel.refs
    reduced = extents.get("k", 1) * extents.get("ky", 1) * extents.get("kx", 1) if has_sums else 0
    if reduced > limits.wgt_words:
        raise DoesNotFitError(
            f"layer {kernel.name!r}: wgt scratchpad: {reduced} tiles required for one block of "
            f"output channels, {limits.wgt_words} available; use a configuration with a deeper WGT"
        )
    if has_sums and limits.acc_words < 1:
        raise DoesNotFitError(
            f"layer {kernel.name!r}: acc scratchpad: 1 word required for the smallest tile, "
            f"{limits.acc_words} available; use a configuration with a deeper ACC"
        )
    blocks = divisors(extents["c"])
    if not has_sums and (kernel.is_far or grain.by_rows or not grain.by_channels):
        blocks = [1 if kernel.is_far else extents["c"]]
    if kernel.by_rows:
        blocks = [extents["c"]]
        most = min(limits.acc_words, limits.rows * extents["c"])
        limits = replace(limits, acc_words=most)
    if has_own_taps(kernel, 2 * limits.tap_words):
        # Rows outside would load all taps again for each tile.
        most = limits.tap_words // kernel.refs["taps"].buffer.shape[1]
        blocks = [each for each in divisors(extents["c"]) if each <= max(1, most)]
        grain = replace(grain, by_rows=False, by_channels=False, planes=False)
    columns = [extents["x"]] if slides(kernel) and not has_sums else divisors(extents["x"])
    rows, pixels = divisors(extents["y"]), extents["y"] * extents["x"]
    if grain.planes and not kernel.by_rows and (pixels <= limits.acc_words or not has_sums):
        rows, columns = [extents["y"]], [extents["x"]]
    if kernel.by_images:
        rows, columns = [extents["y"]], [extents["x"]]
    sizes = _tile(extents, reduced, limits, (blocks, rows, columns), grain, has_sums=has_sums)
    outer = ("y", "x", "c") if grain.by_rows else AXES
    return Tiling(sizes, outer, depth, apart=kernel.apart)


def has_own_taps(kernel: Kernel, depth: int) -> bool:
    """True if blocks of channels have taps of their own, more than ``depth`` words in all."""
    taps = kernel.refs.get("taps")
    if taps is None or kernel.by_rows or not taps.indices[0].coefficient("c"):
        return False
    blocks, words = taps.buffer.shape[:2]
    return blocks * words > depth


def tiled(function: Function, tiling: Tiling) -> Schedule:
    """Tiles outside; then parts of k; the rest in hardware."""
    sizes = tiling.sizes
    schedule = Schedule.of(function)
    for axis in AXES:
        schedule = schedule.split(axis, sizes[axis], "exact", f"{axis}.outer", f"{axis}.inner")
    outer = tuple(f"{axis}.outer" for axis in tiling.outer)
    schedule = schedule.reorder(*outer, *(f"{axis}.inner" for axis in AXES))
    tile = part = outer[-1]
    allocated = {each.buffer.name for each in walk(function.body) if isinstance(each, Allocate)}
    for name in (ADDEND, WIDE, OVER, BYTE, SQUARES, KEPT, "acc", HIGH, LOW, LESS):
        if name in allocated:
            schedule = schedule.compute_at(name, tile)
    if "k" in sizes:
        schedule = schedule.split("k", sizes["k"], "exact", "k.outer", "k.inner")
        schedule = schedule.reorder("k.outer", "acc.c", "acc.y", "acc.x")
        part = "k.outer"
    for buffer in function.inputs:
        name = buffer.name
        if name in PARTS:
            schedule = schedule.cache_read(name, part, PARTS[name], f"{name}.tile")
        elif name in WHOLE:
            loop = tile if name in tiling.parted else ""
            schedule = schedule.cache_read(name, loop, WHOLE[name], f"{name}.tile")
    serial = {"acc.c"} if tiling.apart and LOW in allocated else set()
    # Groups of taps have the level that channel blocks have elsewhere.
    serial |= {loop for loop in _around(schedule.function, GROUPS) if "c" in loop.split(".")}
    for loop in _inside(schedule.function):
        lane = loop.rpartition(".")[2] in LANES
        kind = LoopKind.VECTOR if lane else LoopKind.HARDWARE
        schedule = schedule.bind(loop, LoopKind.SERIAL if loop in serial else kind)
    return schedule.annotate(outer[0], "tiles", tiling.depth)


def _around(function: Function, inner: str) -> list[str]:
    """The loops around those called ``inner``."""
    around = (each for each in walk(function.body) if isinstance(each, For))
    return [
        each.variable
        for each in around
        if any(isinstance(one, For) and one.variable == inner for one in walk(each.body))
    ]


def _inside(function: Function) -> list[str]:
    """The loops that instructions have: all but those over tiles, and those of copies."""
    return [
        each.variable
        for each in walk(function.body)
        if isinstance(each, For)
        and not each.variable.endswith(".outer")
        and ".tile." not in each.variable
    ]


def divisors(number: int) -> list[int]:
    """All of them, ascending."""
    return [d for d in range(1, number + 1) if number % d == 0]


def _tile(
    extents: Mapping[str, int],
    reduced: int,
    limits: Limits,
    choices: tuple[Sequence[int], Sequence[int], Sequence[int]],
    grain: Grain,
    *,
    has_sums: bool,
) -> dict[str, int]:
    """Inner extents of c, y, x: the largest tile within the limits; of equals, the widest rows, or
    by rows the one of most channels.

    choices: extents of c, y and x to choose from.
    """
    total = extents["c"] * extents["y"] * extents["x"]
    wanted = max(1, total // (grain.tiles * grain.parts))
    if has_sums:
        wanted = min(limits.acc_words, wanted)
    best, best_key = None, None
    above: dict[str, int] | None = None
    for c, y, x in product(*choices):
        words = c * y * x
        if has_sums and (words > limits.acc_words or c * reduced > limits.wgt_words):
            continue
        if words > wanted and (above is None or words < prod(above.values())):
            above = {"c": c, "y": y, "x": x}
        size = words if words <= wanted else -words
        key = (words <= wanted, *((c, size, x) if grain.by_rows else (size, x, y)))
        if best_key is None or key > best_key:
            best, best_key = {"c": c, "y": y, "x": x}, key
    assert best is not None, "a tile of one word fits"
    # Rows of a prime length are cut into words, or not at all; but what overlaps channel by channel
    # has tiles of one block, where the number of blocks is prime.
    is_far = FAR * prod(best.values()) < wanted and not grain.planes
    return above if above and is_far else best
