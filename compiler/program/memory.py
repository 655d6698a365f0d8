"""Places in one block of memory for tensors that live at different times."""

from collections.abc import Hashable, Mapping, Sequence

from dovetail.isa.frozen import frozen
from dovetail.runtime.native.program import ALIGNMENT

__all__ = ["MemoryPlan", "aligned", "plan_apart", "plan_memory"]


@frozen
class MemoryPlan:
    """offsets: of each tensor in the block.  bytes: the size of the block, its peak."""

    offsets: Mapping[str, int]
    bytes: int


def plan_memory(lifetimes: Mapping[str, tuple[int, int]], sizes: Mapping[str, int]) -> MemoryPlan:
    """Place tensors so that those that live at the same time do not overlap.

    lifetimes: the first and the last step at which each is needed; sizes: in bytes.
    The largest are placed first, each at the lowest offset that is free during its life.
    """
    placed: list[tuple[int, int, str]] = []
    offsets: dict[str, int] = {}
    for name in sorted(lifetimes, key=lambda each: (-sizes[each], lifetimes[each], each)):
        first, last = lifetimes[name]
        size = aligned(sizes[name])
        taken = [
            (start, end)
            for start, end, other in placed
            if lifetimes[other][0] <= last and first <= lifetimes[other][1]
        ]
        offset = _lowest_gap(sorted(taken), size)
        offsets[name] = offset
        placed.append((offset, offset + size, name))
    return MemoryPlan(offsets, max((end for _, end, _ in placed), default=0))


def plan_apart(
    lifetimes: Mapping[str, tuple[int, int]],
    sizes: Mapping[str, int],
    layouts: Mapping[str, Hashable],
) -> MemoryPlan:
    """The same, but memory is shared by tensors of equal layouts only.

    The cache of each core then keeps what its thread has written: no other one writes there.
    """
    groups: dict[Hashable, list[str]] = {}
    for name in lifetimes:
        groups.setdefault(layouts[name], []).append(name)
    offsets: dict[str, int] = {}
    total = 0
    for names in groups.values():
        plan = plan_memory({name: lifetimes[name] for name in names}, sizes)
        offsets |= {name: total + start for name, start in plan.offsets.items()}
        total += plan.bytes
    return MemoryPlan(offsets, total)


def aligned(size: int) -> int:
    """The bytes that a tensor of ``size`` bytes takes: every tensor's address is aligned."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _lowest_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    offset = 0
    for start, end in taken:
        if start - offset >= size:
            return offset
        offset = max(offset, end)
    return offset
