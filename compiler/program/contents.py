"""The tensor that each byte of a program's memories holds."""

from dataclasses import dataclass, field

from .ir import Origin

__all__ = ["Contents", "Space"]

Space = tuple[Origin, int]
"""One memory: an input, output or constant by its number, or the memory itself."""


@dataclass(slots=True)
class Contents:
    """Intervals that do not overlap: first byte, byte behind the last, and the tensor there."""

    spaces: dict[Space, list[tuple[int, int, str]]] = field(default_factory=dict)

    def write(self, space: Space, start: int, end: int, tensor: str) -> None:
        """``tensor`` is there from now on, and nothing that was there before."""
        self.clear(space, start, end)
        self.spaces[space].append((start, end, tensor))

    def clear(self, space: Space, start: int, end: int) -> None:
        """Nothing is known of what is there."""
        kept = []
        for first, last, tensor in self.spaces.get(space, []):
            if first < start:
                kept.append((first, min(last, start), tensor))
            if last > end:
                kept.append((max(first, end), last, tensor))
        self.spaces[space] = [each for each in kept if each[0] < each[1]]

    def missing(self, space: Space, start: int, end: int, tensor: str) -> tuple[int, str] | None:
        """The first byte there that ``tensor`` does not hold, and the tensor that does, or ``""``;
        None if it holds all.
        """
        if start == end:
            return None
        for first, last, found in sorted(self.spaces.get(space, [])):
            if last <= start or first >= end:
                continue
            if first > start:
                return start, ""
            if found != tensor:
                return start, found
            start = last
        return (start, "") if start < end else None

    def rename(self, new: str, old: str) -> None:
        """Rename tensor ``new`` to ``old``; the former ``old`` is nowhere."""
        for space, held in self.spaces.items():
            self.spaces[space] = [
                (first, last, old if tensor == new else tensor)
                for first, last, tensor in held
                if tensor != old
            ]

    def copy(self) -> "Contents":
        """Another one with the same contents."""
        return Contents({space: list(held) for space, held in self.spaces.items()})
