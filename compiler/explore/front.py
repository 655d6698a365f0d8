"""The Pareto front: the designs that no other design beats."""

from collections.abc import Sequence

import numpy as np

from .figures import DesignResult

__all__ = ["fitting_front", "pareto"]


def pareto(points: Sequence[tuple[float, ...]]) -> list[int]:
    """Places of the points that no other is at most equal to in every figure, and less in one.

    Of equal points all stay.
    """
    if not points:
        return []
    values = np.array(points, float)
    return [
        place
        for place, mine in enumerate(values)
        if not ((values <= mine).all(axis=1) & (values < mine).any(axis=1)).any()
    ]


def fitting_front(results: Sequence[DesignResult], family: str) -> list[DesignResult]:
    """The front over latency, share of the part and energy, of designs that fit the part, fastest
    first.
    """
    fitting = [r for r in results if r.complete and r.families[family].area.share <= 1]
    chosen = [fitting[place] for place in pareto([r.objectives(family) for r in fitting])]
    return sorted(chosen, key=lambda result: result.objectives(family))
