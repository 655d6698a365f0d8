"""Placing activations in ACT by liveness."""

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, product

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import replace
from dovetail.isa.memories import Memory

from ...errors import DoesNotFitError
from .act_space import Space
from .items import Item
from .placing import PLAIN, Placing

__all__ = ["NoRoomError", "place"]

Placed = tuple[Sequence[Item], Sequence[int]]
"""Items in the order in which they were placed, and the first words of the first of them."""

REMEMBERED = 4
"""Placements that another one may begin like."""


class NoRoomError(DoesNotFitError):
    """ACT is too small for what must be there while layer ``layer`` runs: the activations
    ``names``, if known.
    """

    def __init__(self, message: str, layer: int, names: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.layer, self.names = layer, names


def place(
    items: Sequence[Item],
    layers: Sequence[str],
    config: HardwareConfig,
    placing: Placing = PLAIN,
) -> list[int]:
    """First ACT word of every item; two that live at once never overlap.

    Where there is room, items that different units read (or write) at the same time are in
    different banks, and new items where nothing has lain for the longest time, so that their layer
    need not wait.  Otherwise items are packed.  What fits in half of ACT is placed as if there were
    no more, unless items are kept apart.  layers: their names.  Raises NoRoomError, naming the
    layer, when there is no room even so.
    """
    half = None if placing.apart else _placed_in_half(items, layers, config, placing)
    if half is not None:
        return half
    largest = sorted(range(len(items)), key=lambda n: -items[n].words)
    orders = (range(len(items)), largest) if _most_words(items) <= config.act_depth else ()
    for both_ends, order in product((False, True), orders):
        placed = _spread([items[n] for n in order], config, placing, both_ends=both_ends)
        if placed is not None:
            found = dict(zip(order, placed, strict=True))
            return [found[n] for n in range(len(items))]
    return _pack(items, layers, config)


def _placed_in_half(
    items: Sequence[Item], layers: Sequence[str], config: HardwareConfig, placing: Placing
) -> list[int] | None:
    """The places in an ACT of half the words, carried over to the banks of the same numbers; None
    without room.

    Items then share no bank that they would not share in that ACT, so more memory costs no time.
    """
    half = config.act_depth // 2
    if half < 2 * config.act_banks or _most_words(items) > half:
        return None
    small = replace(config, act_depth=half)
    try:
        starts = place(items, layers, small, placing)
    except NoRoomError:
        return None
    bank = small.bank_words(Memory.ACT)
    return [start + start // bank * bank for start in starts]


def _most_words(items: Sequence[Item]) -> int:
    """Words that live at once, at most."""
    changes = sorted(
        change
        for item in items
        for change in ((item.first, item.words), (item.last + 1, -item.words))
    )
    return max(accumulate(words for _, words in changes), default=0)


def _spread(
    items: Sequence[Item], config: HardwareConfig, placing: Placing, *, both_ends: bool
) -> list[int] | None:
    """Each item at its best place, given those before it; None when one finds no place.

    Where an item finds none, those that live with it are packed: each at its lowest place or, with
    ``both_ends``, at the better of its lowest and its highest.
    """
    packed: set[int] = set()
    latest = _latest(config, placing, both_ends)
    space = Space(items, config)
    for start in _begun(items, tuple(latest)):
        space.add(start)
    while space.count < len(items):
        item = items[space.count]
        rooms = space.room(item)
        if len(rooms) and space.count in packed:
            high = space.room(item, ends=True)[-1] if both_ends else rooms[0]
            rooms = np.array([rooms[0], high])
        if len(rooms):
            space.add(space.best(item, rooms, placing))
            continue
        more = {n for n, other in enumerate(items) if other.lives_with(item)} - packed
        if not more:
            return None
        if not packed:
            latest.append((items, space.starts[: space.count].tolist()))
        packed |= more
        # Those before the first of them stay where they are.
        space.back(min(space.count, *more))
    found: list[int] = space.starts[: space.count].tolist()
    if not packed:
        latest.append((items, found))
    return found


@lru_cache
def _latest(config: HardwareConfig, placing: Placing, both_ends: bool) -> deque[Placed]:
    """The latest placements, as far as nothing was packed: plans of one network begin alike."""
    return deque(maxlen=REMEMBERED)


def _begun(items: Sequence[Item], latest: Sequence[Placed]) -> Sequence[int]:
    """First words of the longest beginning of ``items`` that was placed before."""
    found: Sequence[int] = ()
    for before, starts in latest:
        most = min(len(starts), len(items))
        count = next((n for n in range(most) if items[n] != before[n]), most)
        found = max(found, starts[:count], key=len)
    return found


def _pack(items: Sequence[Item], layers: Sequence[str], config: HardwareConfig) -> list[int]:
    """Each item at the lowest place, in the order they are given, or else the largest first.

    Raises NoRoomError for the first that finds none in the order they are given.
    """
    failed: Item | None = None
    taken, names = 0, frozenset[str]()
    for order in (items, sorted(items, key=lambda item: -item.words)):
        space = Space(order, config)
        for item in order:
            rooms = space.room(item)
            if not len(rooms):
                busy = [each for each in order[: space.count] if each.lives_with(item)]
                if failed is None:
                    failed, taken = item, sum(other.words for other in busy)
                    names = frozenset(each.activation.name for each in (item, *busy))
                break
            space.add(int(rooms[0]))
        else:
            starts = dict(zip(map(id, order), space.starts.tolist(), strict=True))
            return [starts[id(item)] for item in items]
    assert failed is not None
    name = layers[failed.first] if failed.first >= 0 else failed.activation.name
    raise NoRoomError(
        f"layer {name!r}: act scratchpad: {failed.words} words required beside {taken} in use, "
        f"{config.act_depth} available; use a configuration with a deeper ACT, or a smaller input",
        failed.first,
        names,
    )
