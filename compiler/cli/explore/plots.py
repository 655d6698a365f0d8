"""The points of an exploration's plots: latency over what designs cost."""

from typing import Any

from ...explore.exploration import Exploration
from ...explore.figures import DesignResult
from ...explore.front import fitting_front, pareto

__all__ = ["plot_data"]


def plot_data(found: Exploration, family: str) -> dict[str, Any]:
    """The designs that fit in the family's part, and the sizes of their cores.

    Of each design: its latency in ms and its costs, whether it is of the front, the costs over
    which no other is faster, and what its tooltip says.
    """
    fitting = [r for r in found.results if r.complete and r.families[family].area.share <= 1]
    front = {result.design for result in fitting_front(found.results, family)}
    designs: list[dict[str, Any]] = [
        {
            "size": result.design.config.block,
            "ms": 1e3 * result.families[family].latency,
            "share": result.families[family].area.share,
            "energy": float(result.energy or 0),
            "front": result.design in front,
            "best": [],
            "text": _text(found, result, family),
        }
        for result in fitting
    ]
    for cost in ("share", "energy"):
        for place in pareto([(each[cost], each["ms"]) for each in designs]):
            designs[place]["best"].append(cost)
    sizes = sorted({each["size"] for each in designs})
    return {"name": family, "sizes": sizes, "designs": designs}


def _text(found: Exploration, result: DesignResult, family: str) -> str:
    """A design and its figures, as text."""
    mine, values = result.families[family], result.design.values
    axes = [axis.name for axis in found.space.axes if len(axis.values) > 1]
    lines = [f"{name} {values[name]}" for name in axes]
    lines += [f"{1e3 * mine.latency:.3f} ms", f"{mine.area.luts:,} LUT ({mine.area.basis})"]
    return "\n".join([*lines, f"{float(result.energy or 0):.1f} uJ"])
