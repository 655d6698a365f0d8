"""ACT while items are put into it one by one: where there is room, and the best place."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .bank_users import NEAR, Users
from .items import Item
from .placing import Placing

__all__ = ["Space"]


class Space:
    """Places of the first ``count`` of some items."""

    def __init__(self, items: Sequence[Item], config: HardwareConfig) -> None:
        self._items, self._depth = items, config.act_depth
        self._layers = max((item.last + 1 for item in items), default=0)
        self._users: list[Users] = []
        self._lies: list[range] = []
        self._bank = config.bank_words(Memory.ACT)
        self._banks = np.arange(0, self._depth, self._bank)
        self._words = np.array([item.words for item in items])
        self._first = np.array([item.first for item in items])
        self._last = np.array([item.last for item in items])
        self.starts = np.zeros(len(items), np.int64)
        self.count = 0

    def add(self, start: int) -> None:
        """Put the next item at word ``start``."""
        end = start + self._items[self.count].words
        self.starts[self.count] = start
        self._lies[self.count :] = [range(start // self._bank, (end - 1) // self._bank + 1)]
        self.count += 1

    def room(self, item: Item, *, ends: bool = False) -> NDArray[np.int64]:
        """First words at which ``item`` overlaps nothing that lives with it, ascending: at the
        beginnings of banks and after others; with ``ends``, before others and at the end of ACT.
        """
        begin = self.starts[: self.count]
        end = begin + self._words[: self.count]
        busy = (self._first[: self.count] <= item.last) & (self._last[: self.count] >= item.first)
        if ends:
            starts = np.append(begin[busy] - item.words, self._depth - item.words)
        else:
            starts = np.concatenate([end, self._banks])
        marked = np.zeros(self._depth + 1, bool)
        marked[starts[(starts >= 0) & (starts + item.words <= self._depth)]] = True
        starts = np.flatnonzero(marked)
        free = (end[busy] <= starts[:, None]) | (starts[:, None] + item.words <= begin[busy])
        return starts[free.all(axis=1)]

    def best(self, item: Item, starts: NDArray[np.int64], placing: Placing) -> int:
        """The best of ``starts`` for ``item``, which comes next: that with the fewest banks shared
        with rivals; of several, perhaps that in the fewest banks; then that where the last reader
        of what lay there is longest ago; then the lowest.  The last reader counts first for items
        that are kept apart.
        """
        near = (self._first[: self.count] <= item.last + NEAR) & (
            self._last[: self.count] >= item.first - NEAR
        )
        while len(self._users) <= self.count:
            item_of = self._items[len(self._users)]
            self._users.append(Users.of(item_of, self._layers, addends=placing.addends))
        users, rivals = self._users[self.count], [0] * (len(self._banks) + 1)
        for number in np.flatnonzero(near).tolist():
            if weight := users.rivals(self._users[number], placing.same_layer):
                for bank in self._lies[number]:
                    rivals[bank + 1] += weight
        if placing.apart:
            lately = self._lately(item, starts)
            starts = starts[lately == lately.min()]
        total = np.cumsum(rivals)
        first, last = starts // self._bank, (starts + (item.words - 1)) // self._bank
        shared = total[last + 1] - total[first]
        starts = starts[shared == shared.min()]
        if placing.few_banks:
            banks = (starts + (item.words - 1)) // self._bank - starts // self._bank
            starts = starts[banks == banks.min()]
        return int(starts[np.argmin(self._lately(item, starts))])

    def _lately(self, item: Item, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last reader of what lay at each of ``starts``, as far as ``item`` would reach."""
        begin = self.starts[: self.count]
        end = begin + self._words[: self.count]
        over = (begin < starts[:, None] + item.words) & (starts[:, None] < end)
        return np.where(over, self._last[: self.count], -NEAR).max(axis=1, initial=-NEAR)
