"""What a search may decide about the loops of an anchor, in the place of the rules."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..errors import ScheduleError

__all__ = ["Decisions"]


@dataclass(frozen=True, slots=True)
class Decisions:
    """Of a contraction, labels by their numbers; None leaves a decision to the rule.

    tiles: of the labels in the register tile, how many values, or vectors, are in it.
    outer: all labels of the output, outermost loop first.  summed: those that are summed in loops.
    rows: of Winograd's tiles that go through all three steps at a time.
    """

    tiles: tuple[tuple[int, int], ...] | None = None
    outer: tuple[int, ...] | None = None
    summed: tuple[int, ...] | None = None
    rows: int | None = None

    @staticmethod
    def from_record(values: Mapping[str, object]) -> "Decisions":
        """From JSON values.  Raises ScheduleError for what no decision can be."""
        try:
            return Decisions(
                tiles=_pairs(values.get("tiles")),
                outer=_numbers(values.get("outer")),
                summed=_numbers(values.get("summed")),
                rows=_number(values.get("rows")),
            )
        except (TypeError, ValueError):
            raise ScheduleError(
                f"decisions {dict(values)}; required numbers of labels; leave the record out"
            ) from None

    def to_record(self) -> dict[str, object]:
        """As JSON values, what is decided only."""
        found: dict[str, object] = {}
        if self.tiles is not None:
            found["tiles"] = [list(pair) for pair in self.tiles]
        for name in ("outer", "summed"):
            labels = getattr(self, name)
            if labels is not None:
                found[name] = list(labels)
        if self.rows is not None:
            found["rows"] = self.rows
        return found

    def order(self, wanted: str, default: list[int]) -> list[int]:
        """``default``, or the same labels as was decided; wanted: ``outer`` or ``summed``.

        Raises ScheduleError when others are required.
        """
        chosen: tuple[int, ...] | None = getattr(self, wanted)
        if chosen is None:
            return default
        if sorted(chosen) != sorted(default):
            raise ScheduleError(
                f"decision {wanted} {list(chosen)}; required an order of {sorted(default)}"
            )
        return list(chosen)

    def tiles_of(self, kept: Collection[int]) -> dict[int, int] | None:
        """The register tile.  Raises ScheduleError when a label is none of ``kept``."""
        if self.tiles is None:
            return None
        tiles = dict(self.tiles)
        if not set(tiles) <= set(kept) or min(tiles.values(), default=1) < 1:
            raise ScheduleError(
                f"decision tiles {tiles}; required labels of {sorted(kept)}, at least 1 of each"
            )
        return tiles


def _numbers(value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(_whole(each) for each in value)


def _pairs(value: object) -> tuple[tuple[int, int], ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple((_whole(label), _whole(count)) for label, count in value)


def _number(value: object) -> int | None:
    return None if value is None else _whole(value)


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value
