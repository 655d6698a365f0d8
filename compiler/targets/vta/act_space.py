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
        self._banks = range(0, self._depth, self._bank)
        self._first = np.array([item.first for item in items])
        self._last = np.array([item.last for item in items])
        self.starts, self._ends = np.zeros((2, len(items)), np.int64)
        self.count = 0
        self._free()

    def _free(self) -> None:
        """Begin with nothing in ACT."""
        self._begins = np.zeros(self._depth + 1, bool)
        """True for words where an item may begin: of banks, and after others."""
        self._begins[self._banks] = True
        self._lately = np.full(self._depth, -NEAR, np.int32)
        """The last reader of what lay at each word."""

    def add(self, start: int) -> None:
        """Put the next item at word ``start``."""
        item = self._items[self.count]
        end = start + item.words
        self.starts[self.count], self._ends[self.count] = start, end
        self._lies[self.count :] = [range(start // self._bank, (end - 1) // self._bank + 1)]
        self._begins[end] = True
        lately = self._lately[start:end]
        np.maximum(lately, item.last, out=lately)
        self.count += 1

    def back(self, count: int) -> None:
        """Take out all but the first ``count``."""
        kept = self.starts[:count].tolist()
        self.count = 0
        self._free()
        for start in kept:
            self.add(start)

    def room(self, item: Item, *, ends: bool = False) -> NDArray[np.int64]:
        """First words at which ``item`` overlaps nothing that lives with it, ascending: at the
        beginnings of banks and after others; with ``ends``, before others and at the end of ACT.
        """
        busy = (self._first[: self.count] <= item.last) & (self._last[: self.count] >= item.first)
        begins, reach = self.starts[: self.count][busy], self._ends[: self.count][busy]
        if ends:
            starts = np.unique(np.append(begins, self._depth) - item.words)
            starts = starts[starts >= 0]
        else:
            starts = self._begins[: max(0, self._depth - item.words + 1)].nonzero()[0]
        order = begins.argsort()
        # Of all that begin before the item would end, the last end.
        last = np.zeros(len(order) + 1, np.int64)
        np.maximum.accumulate(reach[order], out=last[1:])
        return starts[last[begins[order].searchsorted(starts + item.words)] <= starts]

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
            lately = self._last_reader(item, starts)
            starts = starts[lately == lately.min()]
        total = np.cumsum(rivals)
        first, last = starts // self._bank, (starts + (item.words - 1)) // self._bank
        shared = total[last + 1] - total[first]
        starts = starts[shared == shared.min()]
        if placing.few_banks:
            banks = (starts + (item.words - 1)) // self._bank - starts // self._bank
            starts = starts[banks == banks.min()]
        return int(starts[np.argmin(self._last_reader(item, starts))])

    def _last_reader(self, item: Item, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last reader of what lay at each of ``starts``, as far as ``item`` would reach."""
        # Of two halves of the words each, which may overlap.
        lately, size = self._lately, 1
        while 2 * size <= item.words:
            lately = np.maximum(lately[:-size], lately[size:])
            size *= 2
        return np.maximum(lately[starts], lately[starts + item.words - size])
