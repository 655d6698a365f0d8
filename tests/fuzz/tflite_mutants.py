"""TensorFlow Lite's files, damaged: bytes, offsets, lengths; the graph or one clear error."""

import random
from functools import cache

from dovetail.compiler.front.tflite.source import TfliteModel
from dovetail.compiler.pipeline.limits import Budget, Limits, Watch
from dovetail.isa.errors import DovetailError
from tests.compiler.front.tflite.cases import FAMILIES, cases

__all__ = ["read_mutant", "tflite_models", "tflite_mutant"]

LIMITS = Limits(steps=20_000, nodes=10_000, elements=1 << 22, work=1 << 28)
"""Limits of an import: a fraction of a second."""

WORDS = (0, 1, 2, 3, 4, 7, 16, 255, 256, 1 << 16, (1 << 31) - 1, (1 << 32) - 1, (1 << 32) - 4)
"""Offsets, lengths, sizes and numbers of enumerations."""


@cache
def tflite_models() -> tuple[bytes, ...]:
    """The models that are mutated: one of each operator and element type."""
    found: dict[tuple[str, str], bytes] = {}
    for family in FAMILIES:
        for case in cases(family):
            found.setdefault((case.kind, case.dtype), case.content)
    return tuple(found.values())


def tflite_mutant(seed: int) -> bytes:
    """One damaged file; its identifier stays, so that it is read."""
    draw = random.Random(seed)
    damaged = bytearray(draw.choice(tflite_models()))
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        place = draw.randrange(8, len(damaged))
        match draw.randrange(6):
            case 0:
                damaged[place] = draw.randrange(256)
            case 1:
                word = place & ~3
                damaged[word : word + 4] = draw.choice(WORDS).to_bytes(4, "little")
            case 2:
                word = place & ~3
                old = int.from_bytes(damaged[word : word + 4], "little")
                moved = (old + draw.choice((-8, -4, -1, 1, 4, 8, 64))) % (1 << 32)
                damaged[word : word + 4] = moved.to_bytes(4, "little")
            case 3:
                other = draw.randrange(8, len(damaged)) & ~3
                word = place & ~3
                damaged[word : word + 4] = damaged[other : other + 4]
            case 4 if draw.random() < 0.3:
                del damaged[max(place, 16) :]
                damaged += bytes(16 - min(16, len(damaged)))
            case _:
                damaged[place] ^= 1 << draw.randrange(8)
    return bytes(damaged)


def read_mutant(seed: int) -> bool:
    """True if a mutant became a graph.  Raises any error that is not the compiler's."""
    try:
        model = TfliteModel.of(tflite_mutant(seed), Budget(Watch(LIMITS)))
        model.to_graph()
    except DovetailError:
        return False
    return True
