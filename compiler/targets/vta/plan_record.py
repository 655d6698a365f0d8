"""Choices for a network's layers, as JSON values that can be kept, changed, and used again.

    {"streamed": {"7": "conv7"}, "cycles": 81234, "layers": [
        {"first": 0, "count": 3, "rows": [2, 2, 2]},
        {"first": 3, "count": 1},
        {"first": 4, "count": 1, "tile": {"c": 2, "y": 7, "x": 14}, "outer": ["y", "x", "c"],
         "depth": 2}]}

``streamed``: activations that are not wholly on chip, by the number of the layer that makes them
first, and inputs by -1, -2, ...; their names are for who reads it.  ``layers``: cascades, by the
rows of their strips, with strips that each buffer has room for beyond what is needed (``more``),
and whether buffers are ``turned``, or the ``blocks`` that they run at a time; layers wholly on
chip; layers in tiles.  ``placing``: which of ``PLACINGS``, if not the first; ``eager``,
``apart``, ``whole``, ``cut``: as of ``Placing``.  ``cycles``: that the program was expected to
take.
"""

from collections.abc import Mapping, MutableMapping

from dovetail.isa.frozen import replace

from ...errors import ScheduleError
from .block_cascade import Blocks
from .cascade import Sized
from .choice import Choice
from .grains import COARSE
from .place import NoRoomError
from .placing import PLACINGS
from .plan import Plan
from .planner import Planner
from .tile_estimate import Tile

__all__ = ["PlanRecord", "PlanRecords", "recorded_plan", "to_plan_record"]

FLAGS = "eager", "apart", "whole", "cut"
"""Fields of ``Placing`` that are so by a record's own entry."""

GRAIN_FLAGS = "by_rows", "by_channels", "planes"
"""Fields of ``Grain`` that are so by a layer's own entry."""

PlanRecord = Mapping[str, object]
PlanRecords = MutableMapping[str, PlanRecord]
"""By ``plan_key``."""


def to_plan_record(planner: Planner, plan: Plan, cycles: int) -> PlanRecord:
    """The record of ``plan``'s choices."""
    numbers = _numbers(planner)
    gone = sorted(plan.gone, key=numbers.__getitem__)
    record: dict[str, object] = {
        "streamed": {str(numbers[name]): name for name in gone},
        "cycles": cycles,
        "layers": [_entry(choice) for choice in plan.choices],
    }
    placing = PLACINGS.index(replace(plan.placing, **dict.fromkeys(FLAGS, False)))
    if placing:
        record["placing"] = placing
    record |= {name: True for name in FLAGS if getattr(plan.placing, name)}
    return record


def _numbers(planner: Planner) -> dict[str, int]:
    """The number of each activation in records."""
    sources = {x.name: -1 - number for number, x in enumerate(planner.ends.sources)}
    return {
        item.activation.name: sources.get(item.activation.name, item.first)
        for item in planner.items
    }


def _entry(choice: Choice) -> dict[str, object]:
    entry: dict[str, object] = {"first": choice.first, "count": choice.count}
    match choice.how:
        case Sized(rows=rows, more=more, turned=turned):
            entry["rows"] = list(rows)
            if turned:
                entry["turned"] = True
            if more:
                entry["more"] = list(more)
        case Blocks(size=size):
            entry["blocks"] = size
        case Tile() as tile:
            entry |= {"tile": dict(tile.sizes), "outer": list(tile.outer), "depth": tile.depth}
            if tile.held:
                entry["held"] = tile.held
        case None:
            pass
    if choice.grain != COARSE:
        entry["parts"] = choice.grain.parts
        entry |= {name: True for name in GRAIN_FLAGS if getattr(choice.grain, name)}
        if choice.grain.tiles != COARSE.tiles:
            entry["tiles"] = choice.grain.tiles
    return entry


def recorded_plan(planner: Planner, record: PlanRecord) -> Plan:
    """The plan of a record, without a search.

    Raises ScheduleError for a record that these layers cannot run by.
    """
    try:
        streamed, entries = record["streamed"], record["layers"]
        assert isinstance(streamed, dict)
        assert isinstance(entries, list)
        names = {str(number): name for name, number in _numbers(planner).items()}
        gone = frozenset(names[number] for number in streamed)
        choices = [_found(planner, entry, gone) for entry in entries]
        end = 0
        for choice in choices:
            if choice.first != end:
                raise ScheduleError(f"plan record: layer {end} is left out, or runs twice")
            end += choice.count
        if end != len(planner.layers):
            raise ScheduleError(f"plan record: {end} layers; required {len(planner.layers)}")
        placing = record.get("placing", 0)
        assert isinstance(placing, int)
        how = replace(PLACINGS[placing], **{name: bool(record.get(name)) for name in FLAGS})
        return planner.built(choices, gone, how)
    except NoRoomError as problem:
        raise ScheduleError(f"plan record: {problem}") from None
    except (IndexError, KeyError, TypeError, ValueError, AssertionError) as problem:
        raise ScheduleError(f"plan record is malformed: {problem!r}; leave it out") from None


def _found(planner: Planner, entry: Mapping[str, object], gone: frozenset[str]) -> Choice:
    """The choice that ``entry`` describes."""
    first, count, more = entry["first"], entry["count"], entry.get("more")
    assert isinstance(first, int)
    assert isinstance(count, int)
    plain = {key: value for key, value in entry.items() if key != "more"}
    for choice in planner.options(first, count, gone):
        if _entry(choice) == plain:
            if more is None:
                return choice
            assert isinstance(more, list)
            assert isinstance(choice.how, Sized)
            assert all(isinstance(count, int) and count >= 0 for count in more)
            return replace(choice, how=choice.how.deeper(more))
    raise ScheduleError(
        f"plan record: layers {first} to {first + count - 1} cannot run as {dict(entry)}; leave "
        "the record out, and the layers are planned again"
    )
