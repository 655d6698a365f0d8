"""Banks of ACT that different units may want at one time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory, Unit

from .items import Item

__all__ = ["NEAR", "Users", "shared_banks"]

NEAR = 2
"""Layers this far apart, or nearer, may run at the same time."""


@dataclass(frozen=True, slots=True)
class Users:
    """Which layers' units read an item, and which write it: a bit for each layer, by unit.

    Layer -1, which loads inputs, has bit 0.  near: also of the layers that may run at the same
    time.
    """

    users: tuple[Mapping[Unit, int], ...]
    near: tuple[Mapping[Unit, int], ...]

    @staticmethod
    def of(item: Item, *, addends: bool) -> "Users":
        """The users of ``item``; with ``addends``, VECTOR reads what residual sums wrote there."""
        users: list[dict[Unit, int]] = []
        near: list[dict[Unit, int]] = []
        readers = set(item.readers)
        if addends:
            readers |= {(layer, Unit.VECTOR) for layer in item.summed}
        for each in (readers, item.writers):
            users.append({})
            near.append({})
            for layer, unit in each:
                users[-1][unit] = users[-1].get(unit, 0) | 1 << layer + 1
                around = (1 << 2 * NEAR + 1) - 1 << layer + 1 >> NEAR
                near[-1][unit] = near[-1].get(unit, 0) | around
        return Users(tuple(users), tuple(near))

    def rivals(self, other: "Users", same_layer: int) -> int:
        """How much it counts that two units may want to read both items, or to write both, at one
        time: ``same_layer`` if they work for one layer, 1 if for layers that may run at the same
        time, else 0.
        """
        if not _meet(self.users, other.near):
            return 0
        return same_layer if same_layer > 1 and _meet(self.users, other.users) else 1


def _meet(some: Sequence[Mapping[Unit, int]], others: Sequence[Mapping[Unit, int]]) -> bool:
    """Whether different units read, or write, for a layer that both have."""
    return any(
        unit is not other_unit and layers & other_layers
        for users, other_users in zip(some, others, strict=True)
        for unit, layers in users.items()
        for other_unit, other_layers in other_users.items()
    )


def shared_banks(placed: Sequence[tuple[Item, int]], config: HardwareConfig) -> int:
    """Banks that two items share which different units may want to read, or to write, at one time:
    counted once for each such pair of items, twice if the units work for one layer.  placed: items
    and their first words.
    """
    size, total = config.bank_words(Memory.ACT), 0
    banks = [(start // size, (start + item.words - 1) // size) for item, start in placed]
    users = [Users.of(item, addends=True) for item, _ in placed]
    for number, (low, high) in enumerate(banks):
        for other in range(number):
            begin, end = banks[other]
            both = min(high, end) - max(low, begin) + 1
            if both > 0:
                total += both * users[number].rivals(users[other], 2)
    return total
