"""Nobody takes a layer's colour for that of a unit or of a wait."""

from itertools import combinations, pairwise

import pytest

from dovetail.compiler.cli.profile import colours
from dovetail.runtime.profile.explain import CAUSES

Lab = tuple[float, float, float]
FAMILIES = {
    "layers": colours.LAYERS,
    "units": tuple(colours.UNITS.values()),
    "waits": tuple(colours.WAITS.values()),
}


def lab(colour: str) -> Lab:
    """CIE L*a*b* by its own formulas (ISO 11664-4), D65."""
    linear = []
    for place in (1, 3, 5):
        part = int(colour[place : place + 2], 16) / 255
        linear.append(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
    red, green, blue = linear
    xyz = (
        (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047,
        0.2126729 * red + 0.7151522 * green + 0.0721750 * blue,
        (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883,
    )
    x, y, z = (v ** (1 / 3) if v > 216 / 24389 else (841 / 108) * v + 4 / 29 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: str, other: str) -> float:
    return sum((a - b) ** 2 for a, b in zip(lab(one), lab(other), strict=True)) ** 0.5


@pytest.mark.parametrize(("one", "other"), list(combinations(FAMILIES, 2)))
def test_families_are_told_apart(one: str, other: str) -> None:
    assert min(distance(a, b) for a in FAMILIES[one] for b in FAMILIES[other]) > 20


def test_layers_that_follow_each_other_are_told_apart() -> None:
    ring = (*colours.LAYERS, *colours.LAYERS[:2])
    assert min(distance(a, b) for a, b in pairwise(ring)) > 20
    assert min(distance(a, b) for a, b in zip(ring, ring[2:], strict=False)) > 20
    assert len(set(colours.LAYERS)) == len(colours.LAYERS)


@pytest.mark.parametrize("family", ["units", "waits"])
def test_kinds_are_told_apart(family: str) -> None:
    assert min(distance(a, b) for a, b in combinations(FAMILIES[family], 2)) > 13


def test_a_known_colour() -> None:
    """Ottosson's own example: sRGB red is OKLCH 0.62796, 0.25768, 29.234."""
    assert colours.oklch(0.62796, 0.25768, 29.234) == "#ff0000"
    assert colours.oklch(1, 0, 0) == "#ffffff"


def test_every_cause_has_a_colour() -> None:
    assert set(colours.CAUSES) == set(CAUSES)
