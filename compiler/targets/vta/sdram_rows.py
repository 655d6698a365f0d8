"""The model of an SDRAM by which cycles are predicted: open rows, refreshes, columns.

Source: docs/timing.md, "SDRAM".
"""

from dataclasses import dataclass, field

from dovetail.isa.sdram import SdramTiming

__all__ = ["SdramRows"]


@dataclass(slots=True)
class SdramRows:
    """The chip and its controller, command by command.

    open: the row of each bank that has one.  closes: from when each bank may be closed.  now: the
    cycle of the next decision.  due: that of the next refresh.  clear: from when a write may be
    decided.  last, writes: the last column of the command before, and its direction.
    """

    timing: SdramTiming
    open: dict[int, int] = field(default_factory=dict)
    closes: dict[int, int] = field(default_factory=dict)
    now: int = 0
    due: int = 1
    clear: int = 0
    last: int = -1
    writes: bool = False

    def first_column(self, accepted: int, address: int, columns: int, *, writes: bool) -> int:
        """Cycle of the first of ``columns`` of a command that is accepted in ``accepted``."""
        chip, seen = self.timing.chip, accepted + 1
        row, bank = divmod(address // chip.row_bytes, chip.banks)
        if seen <= self.last < self.due and self.open.get(bank) == row and self.writes == writes:
            return self._columns(self.last + 1, columns, bank, writes=writes)
        while True:
            ready, act = self._decision(row, bank, seen, writes=writes)
            if self.due <= self.now:
                self._refresh()
            elif ready >= self.due:
                self.now = self.due
            elif act == "column":
                return self._columns(ready + 1, columns, bank, writes=writes)
            elif act == "precharge":
                del self.open[bank]
                self.now = ready + self.timing.rp
            else:
                self.open[bank] = row
                self.closes[bank] = ready + self.timing.ras
                self.now = ready + max(self.timing.rcd - 1, 1)

    def _decision(self, row: int, bank: int, seen: int, *, writes: bool) -> tuple[int, str]:
        """What comes next for a command, and in which cycle, but for refreshes."""
        ready = max(self.now, seen)
        if bank not in self.open:
            return ready, "active"
        if self.open[bank] != row:
            return max(ready, self.closes[bank]), "precharge"
        return max(ready, self.clear if writes else 0), "column"

    def _refresh(self) -> None:
        start = max([self.now, *(self.closes[bank] for bank in self.open)])
        self.now = start + (self.timing.rp if self.open else 0) + self.timing.rfc
        self.open.clear()
        self.due += self.timing.refresh

    def _columns(self, first: int, columns: int, bank: int, *, writes: bool) -> int:
        last = first + columns - 1
        if writes:
            self.closes[bank] = max(self.closes[bank], last + self.timing.wr)
        else:
            self.clear = last + self.timing.cas
        self.last, self.writes, self.now = last, writes, last + 1
        return first
