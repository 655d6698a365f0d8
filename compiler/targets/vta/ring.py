"""Rings: space of a memory, given out in turn to what is loaded once."""

from dataclasses import dataclass

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from ...errors import DoesNotFitError

__all__ = ["Grant", "Ring"]


@dataclass(frozen=True, slots=True)
class Grant:
    """Words that a ring gave out: the first, and how many it had given out before."""

    start: int
    before: int


class Ring:
    """Space of a memory given out in turn; addresses wrap, as the hardware's do."""

    def __init__(self, config: HardwareConfig, memory: Memory) -> None:
        self._memory, self._depth = memory, config.depth(memory)
        self._given = 0

    def take(self, words: int, layer: str) -> Grant:
        """The next ``words``.

        Raises DoesNotFitError when the memory has fewer in all.
        """
        if words > self._depth:
            raise DoesNotFitError(
                f"layer {layer!r}: {self._memory.value} scratchpad: {words} words required, "
                f"{self._depth} available; use a configuration with a deeper {self._memory.name}"
            )
        grant = Grant(self._given % self._depth, self._given)
        self._given += words
        return grant

    def holds(self, grant: Grant, more: int = 0) -> bool:
        """Whether the words of ``grant`` have not been given out again, nor would be by ``more``
        words.
        """
        return self._given + more - grant.before <= self._depth
