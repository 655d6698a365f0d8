"""Rings: space of a memory, given out in turn to what is loaded once."""

from collections.abc import Mapping

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory

from ...errors import DoesNotFitError

__all__ = ["Grant", "Ring", "rings_apart"]


@frozen
class Grant:
    """Words taken from a ring: the first, and how many were taken before."""

    start: int
    before: int
    ring: "Ring"


class Ring:
    """Space of a memory given out in turn.

    All of it, where addresses wrap, as the hardware's do; or ``words`` from ``first`` on: there
    what does not fit before the end is at the beginning.  ``depth``: its words.
    """

    def __init__(
        self, config: HardwareConfig, memory: Memory, first: int = 0, words: int | None = None
    ) -> None:
        self._memory, self._first = memory, first
        self.depth = config.depth(memory) if words is None else words
        self._wraps = words is None
        self._given = 0

    def take(self, words: int, layer: str, step: int = 1) -> Grant:
        """The next ``words``, from a multiple of ``step`` on, which divides the depth.

        Raises DoesNotFitError when the memory has fewer in all.
        """
        if words > self.depth:
            raise DoesNotFitError(
                f"layer {layer!r}: {self._memory.value} scratchpad: {words} words required, "
                f"{self.depth} available; use a configuration with a deeper {self._memory.name}"
            )
        self._given += -self._given % step
        left = self.depth - self._given % self.depth
        if words > left and not self._wraps:
            self._given += left
        grant = Grant(self._first + self._given % self.depth, self._given, self)
        self._given += words
        return grant

    def holds(self, grant: Grant, more: int = 0) -> bool:
        """True if the words of ``grant`` have not been given out again, nor would be by ``more``
        words.
        """
        # Some may be left out before the end.
        most = more if self._wraps else 2 * more
        return self._given + most - grant.before <= self.depth


def rings_apart(
    config: HardwareConfig, memory: Memory, parts: Mapping[str, int]
) -> dict[str, Ring]:
    """Rings of a memory for some kinds of words, each with its share of the depth."""
    every, first = sum(parts.values()), 0
    rings: dict[str, Ring] = {}
    for name, share in parts.items():
        words = config.depth(memory) * share // every
        rings[name] = Ring(config, memory, first, words)
        first += words
    return rings
