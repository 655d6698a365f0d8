"""The plain schedule: tiles that fit, everything inside a tile in hardware."""

from dataclasses import dataclass
from itertools import product

from ..errors import DoesNotFitError
from ..tensor.ir import Kernel, Loop, LoopKind
from .primitives import Bind, Cache, Reorder, Schedule, Split

__all__ = ["Limits", "default_schedule"]

TILES = 4
"""Tiles a layer is cut into at least, if it can be: the epilogue of one runs under the matrix
core's next.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tile may need.

    acc_words: ACC words of a tile.  wgt_words: WGT tiles of one channel block group.
    """

    acc_words: int
    wgt_words: int


def default_schedule(kernel: Kernel, limits: Limits) -> Schedule:
    """Split c, y and x into tiles, bind what is inside to hardware, keep sums and weights of one
    tile only.

    Raises DoesNotFitError when not even the smallest tile fits.
    """
    extents = kernel.stages[0].extents
    has_sums = len(kernel.stages) > 1
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
    tile = _tile(extents, reduced, limits, split_channels=has_sums)
    schedule = Schedule(kernel)
    outer, inner = [], []
    for name in ("c", "y", "x"):
        schedule = schedule.then(Split(name, tile[name]))
        outer.append(f"{name}.outer")
        inner.append(f"{name}.inner")
    for stage in schedule.kernel.stages:
        rest = tuple(loop.name for loop in stage.loops if loop.name not in (*outer, *inner))
        lanes = tuple(name for name in rest if _kind(stage.loops, name) is LoopKind.LANE)
        folds = tuple(name for name in rest if name not in lanes)
        schedule = schedule.then(Reorder(stage.name, (*outer, *inner, *folds, *lanes)))
        schedule = schedule.then(Bind((*inner, *folds), LoopKind.HARDWARE))
    if has_sums:
        schedule = schedule.then(Cache("acc")).then(Cache("weights"))
    return schedule


def _kind(loops: tuple[Loop, ...], name: str) -> LoopKind:
    return next(loop.kind for loop in loops if loop.name == name)


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _tile(
    extents: dict[str, int], reduced: int, limits: Limits, *, split_channels: bool
) -> dict[str, int]:
    """Inner extents of c, y, x: the largest tile within the limits; of equals, the widest rows."""
    total = extents["c"] * extents["y"] * extents["x"]
    wanted = (
        min(limits.acc_words, max(1, total // TILES)) if split_channels else max(1, total // TILES)
    )
    blocks = _divisors(extents["c"]) if split_channels else [extents["c"]]
    best, best_key = None, None
    for c, y, x in product(blocks, _divisors(extents["y"]), _divisors(extents["x"])):
        words = c * y * x
        if split_channels and (words > limits.acc_words or c * reduced > limits.wgt_words):
            continue
        key = (words <= wanted, words if words <= wanted else -words, x, y)
        if best_key is None or key > best_key:
            best, best_key = {"c": c, "y": y, "x": x}, key
    assert best is not None, "a tile of one word fits"
    return best
