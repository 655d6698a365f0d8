"""The fewest layers in float with which a loss stays within a bound."""

from collections.abc import Callable, Sequence

from dovetail.isa.frozen import frozen

from ..errors import CalibrationError

__all__ = ["Bounded", "keep_within"]


@frozen
class Bounded:
    """keep: layers in float.  drop: what is lost with them.  tried: how many mixtures were run."""

    keep: frozenset[str]
    drop: float
    tried: int


def keep_within(
    bound: float, order: Sequence[frozenset[str]], drop_of: Callable[[frozenset[str]], float]
) -> Bounded:
    """The first of ``order``, sets of layers from small to large, whose drop is at most ``bound``.

    ``drop_of`` runs for none, for 1, 2, 4 and so on of them, and then by halves between the last
    too large and the first small enough: some 2 log2(n) times.
    Raises CalibrationError when none is small enough.
    """
    sets = [frozenset[str](), *order]
    drops: dict[int, float] = {}

    def fits(place: int) -> bool:
        if place not in drops:
            drops[place] = drop_of(sets[place])
        return drops[place] <= bound

    last, place = -1, 0
    while not fits(place):
        if place == len(sets) - 1:
            raise CalibrationError(
                f"the loss is {min(drops.values()):.2%} at best, with {len(sets[place])} layers in "
                f"float; required {bound:.2%}"
            )
        last, place = place, min(max(2 * place, 1), len(sets) - 1)
    while place - last > 1:
        middle = (place + last) // 2
        if fits(middle):
            place = middle
        else:
            last = middle
    return Bounded(sets[place], drops[place], len(drops))
