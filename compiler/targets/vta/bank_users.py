"""Banks of ACT that different units may want at one time."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory, Unit

from .items import Item

__all__ = ["NEAR", "Users", "shared_banks"]

NEAR = 2
"""Layers this far apart, or nearer, may run at the same time."""


KNOWN = 1 << 14
"""Users that are kept: a plan's are mostly those of the one before."""


@frozen
class Users:
    """Layers whose units read an item, and those that write it: one bit for each layer, in a field
    for each unit and each of the two.

    Layer -1, which loads inputs, has bit 0 of a field.  others: in the field of a unit, layers for
    which another unit does the same.  near: also layers that may run at the same time as those.
    """

    users: int
    others: int
    near: int

    @staticmethod
    def of(item: Item, layers: int, *, addends: bool) -> "Users":
        """The users of ``item``, of a program of ``layers``; with ``addends``, VECTOR reads what
        residual sums wrote there.
        """
        summed = item.summed if addends else frozenset()
        return _users(item.readers, item.writers, summed, layers)

    def rivals(self, other: "Users", same_layer: int) -> int:
        """Weight of the fact that two units may want to read both items, or to write both, at one
        time: ``same_layer`` if they work for one layer, 1 if for layers that may run at the same
        time, else 0.
        """
        if not self.users & other.near:
            return 0
        return same_layer if same_layer > 1 and self.users & other.others else 1


@lru_cache(KNOWN)
def _users(
    readers: frozenset[tuple[int, Unit]],
    writers: frozenset[tuple[int, Unit]],
    summed: frozenset[int],
    layers: int,
) -> Users:
    size = layers + 1 + NEAR
    around = (1 << 2 * NEAR + 1) - 1
    users, others, near = 0, 0, 0
    for role, each in enumerate((readers | {(n, Unit.VECTOR) for n in summed}, writers)):
        for layer, unit in each:
            for field in Unit:
                place = size * (role * len(Unit) + field)
                if field is unit:
                    users |= 1 << place + layer + 1
                else:
                    others |= 1 << place + layer + 1
                    near |= around << layer + 1 >> NEAR << place
    return Users(users, others, near)


def shared_banks(placed: Sequence[tuple[Item, int]], config: HardwareConfig) -> int:
    """Banks that two items share which different units may want to read, or to write, at one time:
    counted once for each such pair of items, twice if the units work for one layer.  placed: items
    and their first words.
    """
    size, layers = config.bank_words(Memory.ACT), max((i.last + 1 for i, _ in placed), default=0)
    users = [Users.of(item, layers, addends=True) for item, _ in placed]
    limits = [(i.first, i.last, at // size, (at + i.words - 1) // size) for i, at in placed]
    first, last, low, high = np.array(limits, np.int64).reshape(-1, 4).T
    both = np.minimum(high[:, None], high) - np.maximum(low[:, None], low) + 1
    near = (first[:, None] <= last + NEAR) & (last[:, None] >= first - NEAR)
    pairs = np.argwhere(np.triu((both > 0) & near, 1)).tolist()
    return sum(int(both[one, other]) * users[one].rivals(users[other], 2) for one, other in pairs)
