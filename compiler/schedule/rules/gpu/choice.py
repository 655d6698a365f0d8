"""Choices of a search that differ from the rules for GPUs."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ....define.definition import Kind
from ....loops.intrinsic import Intrinsic

__all__ = ["DEFAULT", "SPACE", "Choice", "choices_for", "is_group"]


@frozen
class Choice:
    """threads: of a block, at most.  channels: of a thread in a convolution.  lanes: threads that
    share a long sum.

    Products in shared memory: side, depth: rows and columns of a block's tile, and summed elements
    at a time; 0 for the largest that divides.  items: rows and columns of a thread.

    Products on tensor cores: rows, columns: of a block's tile, 0 for what the rule finds best, with
    all that follows here; warps: in the direction of rows; column_warps: of columns, 0 for as many;
    parts: instructions' depths at a time.  groups: warpgroups of Hopper's own instructions, one
    above the other, 0 for those of warps; buffers: of shared memory for each operand.

    Attention on tensor cores: rows: of a block, 0 for what the rule finds best; parts: of 16 rows,
    of a warp.
    """

    threads: int = 256
    channels: int = 4
    lanes: int = 64
    side: int = 0
    depth: int = 0
    items: int = 4
    rows: int = 0
    columns: int = 0
    warps: int = 2
    column_warps: int = 0
    parts: int = 2
    groups: int = 0
    buffers: int = 2


DEFAULT = Choice()

SPACE = {
    "threads": (64, 128, 256, 512),
    "channels": (1, 2, 4, 8),
    "lanes": (32, 64, 128),
    "side": (0, 16, 32, 64),
    "depth": (0, 8, 16, 32),
    "items": (2, 4, 8),
    "rows": (0, 16, 32, 64, 128, 256),
    "columns": (0, 16, 32, 64, 128, 192, 256),
    "warps": (1, 2, 4),
    "column_warps": (0, 1, 2, 4),
    "parts": (1, 2, 4),
    "groups": (0, 1, 2),
    "buffers": (2, 3, 4),
}
"""The values of each field."""

WARPS = ("rows", "columns", "warps", "column_warps", "parts", "buffers")
OWN = {
    Kind.CONTRACTION: ("threads", "lanes", "side", "depth", "items"),
    Kind.CONVOLUTION: ("threads", "channels", "lanes"),
    Kind.ATTENTION: (),
}


def choices_for(kind: Kind, intrinsics: Mapping[str, Intrinsic]) -> tuple[str, ...]:
    """The fields that matter for loops of a kind; intrinsics: the target's."""
    own = OWN.get(kind, ("threads",))
    if intrinsics and kind is Kind.ATTENTION:
        return ("rows", "parts")
    if not intrinsics or kind not in (Kind.CONTRACTION, Kind.CONVOLUTION):
        return own
    return (*own, *WARPS, *(["groups"] if any(map(is_group, intrinsics)) else []))


def is_group(name: str) -> bool:
    """True if an intrinsic is of a warpgroup."""
    return name.startswith("wgmma_")
