"""Two runs side by side: what got faster, and why."""

from typing import Any

from dovetail.runtime.profile.layers import LayerProfile
from dovetail.runtime.profile.profile import Profile

__all__ = ["compared_rows", "reason"]

MATTERS = 0.01
"""Part of a layer's cycles below which a difference is not worth a reason."""


def compared_rows(profile: Profile, against: Profile) -> list[dict[str, Any]]:
    """Layers of the same name, or at the same place, of both runs: name, cycles here and there
    (None: not in that run), and why they differ.  The first row is of all.
    """
    others = {layer.name: layer for layer in against.layers}
    rows = [_row("all", profile.cycles, against.cycles, "")]
    for number, layer in enumerate(profile.layers):
        other = others.get(layer.name)
        if other is None and number < len(against.layers):
            other = against.layers[number]
        if other is None:
            rows.append(_row(layer.name, layer.cycles, None, "only in this run"))
        else:
            rows.append(_row(layer.name, layer.cycles, other.cycles, reason(layer, other)))
    names = {layer.name for layer in profile.layers}
    rows += [
        _row(layer.name, None, layer.cycles, "only in the other run")
        for layer in against.layers[len(profile.layers) :]
        if layer.name not in names
    ]
    return rows


def _row(name: str, here: int | None, there: int | None, why: str) -> dict[str, Any]:
    return {"name": name, "here": here, "there": there, "why": why}


def reason(layer: LayerProfile, other: LayerProfile) -> str:
    """Figures that changed by more than ``MATTERS`` of the layer's cycles, the largest first."""
    names = {
        "gemm_cycles": "matrix core",
        "vector_cycles": "vector unit",
        "dram_cycles": "memory traffic",
        "waited_token": "waits for tokens",
        "waited_port": "waits for banks",
        "waited_memory": "waits for instructions",
    }
    changes = []
    for field, text in names.items():
        here, there = getattr(layer, field), getattr(other, field)
        if here is None or there is None:
            continue
        if abs(here - there) > MATTERS * max(layer.cycles, other.cycles, 1):
            changes.append((abs(here - there), f"{text} {here - there:+,}"))
    return ", ".join(text for _, text in sorted(changes, reverse=True))
