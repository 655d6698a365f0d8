"""The controller's time by the rules of docs/timing.md, one command after the other."""

from dataclasses import dataclass, field

from dovetail.isa.sdram import SdramTiming

__all__ = ["Burst", "SdramRules"]

NEVER = -1_000_000


@dataclass(frozen=True)
class Burst:
    """first, last: cycles in which its first and last column commands are decided."""

    first: int
    last: int


@dataclass
class SdramRules:
    """Feed ``burst`` with the commands in the order in which they are accepted."""

    timing: SdramTiming
    bus_bytes: int
    restart: int
    """A refresh is due from the cycle after this one."""
    now: int = 0
    """The cycle of the next decision."""
    refreshes: int = 0
    """Done since ``restart``."""
    rows: dict[int, int] = field(default_factory=dict)
    closes: dict[int, int] = field(default_factory=dict)
    """When each open bank may be precharged."""
    clear: int = 0
    """When a write may be decided."""
    before: tuple[int, bool] = (NEVER, False)
    """Last column and direction of the burst before."""

    def burst(self, accepted: int, address: int, beats: int, write: bool) -> Burst:
        """When its columns are; ``accepted`` is the cycle of the handshake."""
        row, bank = divmod(address // self.timing.chip.row_bytes, self.timing.chip.banks)
        words = beats * self.bus_bytes // 2
        seen = accepted + 1
        end, wrote = self.before
        if seen <= end < self.due and self.rows.get(bank) == row and wrote == write:
            return self._columns(end + 1, words, write, bank)
        while True:
            if self.due <= self.now:
                self._refresh()
            elif self.now < seen:
                self.now = min(seen, self.due)
            elif self.rows.get(bank) == row:
                start = max(self.now, self.clear if write else self.now)
                if start < self.due:
                    return self._columns(start + 1, words, write, bank)
                self.now = self.due
            elif bank in self.rows:
                start = max(self.now, self.closes[bank])
                if start < self.due:
                    del self.rows[bank]
                    self.now = start + self.timing.rp
                else:
                    self.now = self.due
            else:
                self.rows[bank] = row
                self.closes[bank] = self.now + self.timing.ras
                self.now += max(self.timing.rcd - 1, 1)

    @property
    def due(self) -> int:
        """The cycle from which the next refresh is due."""
        return self.restart + 1 + self.refreshes * self.timing.refresh

    def _refresh(self) -> None:
        if self.rows:
            self.now = max(self.now, *(self.closes[bank] for bank in self.rows)) + self.timing.rp
            self.rows.clear()
        self.refreshes += 1
        self.now += self.timing.rfc

    def _columns(self, first: int, words: int, write: bool, bank: int) -> Burst:
        last = first + words - 1
        if write:
            self.closes[bank] = max(self.closes[bank], last + self.timing.wr)
        else:
            self.clear = last + self.timing.cas
        self.before = (last, write)
        self.now = last + 1
        return Burst(first, last)
