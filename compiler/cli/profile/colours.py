"""The colours of the report: three families that nobody takes for each other.

Layers are light and colourful, what a unit waits for is dark and colourful, and units are grey.
Each is seen on a light page and on a dark one.
"""

from math import cos, radians, sin

__all__ = ["CAUSES", "LAYERS", "UNITS", "WAITS", "layer_colour", "oklch"]


def oklch(lightness: float, chroma: float, hue: float) -> str:
    """ "#rrggbb" of a colour; ``hue`` in degrees, what the screen cannot show is clipped.

    Source: Björn Ottosson, "A perceptual color space for image processing" (2020): in it, equal
    distances look alike.
    """
    a, b = chroma * cos(radians(hue)), chroma * sin(radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{_byte(each):02x}" for each in linear)


def _byte(linear: float) -> int:
    part = min(max(linear, 0.0), 1.0)
    return round(255 * (12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055))


LAYERS = (
    *(oklch(0.84, 0.1, hue) for hue in (85, 220, 310, 130, 265, 355, 175, 40)),
    *(oklch(0.72, 0.1, hue) for hue in (150, 287, 62, 198, 332, 107, 242, 17)),
)
"""By number of the layer; then again from the beginning."""
UNITS = {
    "load": oklch(0.45, 0.02, 250),
    "store": oklch(0.6, 0.02, 250),
    "fetch": oklch(0.75, 0.01, 250),
}
"""Kinds of traffic on the bus."""
WAITS = {
    "token": oklch(0.55, 0.2, 27),
    "bank": oklch(0.5, 0.2, 262),
    "fetch": oklch(0.52, 0.19, 318),
}
"""Why a unit stands still."""
CAUSES = {
    "useful": oklch(0.45, 0.02, 250),
    "unfilled": oklch(0.6, 0.02, 250),
    "vector": oklch(0.75, 0.01, 250),
    "load": WAITS["token"],
    "gemm": WAITS["token"],
    "vector_token": WAITS["token"],
    "store": WAITS["token"],
    "room": WAITS["token"],
    "bank": WAITS["bank"],
    "fetch": WAITS["fetch"],
    "unknown": oklch(0.88, 0.0, 0),
    "other": oklch(0.88, 0.0, 0),
}
"""By field of ``Breakdown``."""


def layer_colour(number: int) -> str:
    """The colour of a layer, everywhere."""
    return LAYERS[number % len(LAYERS)]
