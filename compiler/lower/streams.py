"""Operands of contractions that are too large to stay in a cache: weights, most of all.

They come from memory once in a run, in an order that is known: what the next tile reads is asked
for while this tile is computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..define.operand import Operand
from ..graph.operators.contractions import Axis, Contract
from ..loops.expressions import Buffer

__all__ = ["Stream", "find_stream"]


@dataclass(frozen=True, slots=True)
class Stream:
    """An operand in ``buffer`` whose vectors lie along the label ``vector``.

    moving: the label of the output, of this operand alone, that changes between tiles.
    """

    buffer: Buffer
    axes: tuple[Axis, ...]
    vector: int
    moving: int


def find_stream(
    operator: Contract, operands: Sequence[Operand], vector: int | None, streamed_bytes: int
) -> Stream | None:
    """The first operand in memory of as many bytes whose lanes and tiles are its own.

    vector: the label that lies in lanes.
    """
    if vector not in operator.kept:
        return None
    used = [{label for axis in axes for label, _ in axis} for axes in operator.operands]
    for number, (axes, operand) in enumerate(zip(operator.operands, operands, strict=True)):
        others = set().union(*(each for place, each in enumerate(used) if place != number))
        own = used[number] - others
        moving = [label for label in operator.kept if label in own and label != vector]
        buffer = operand.buffer
        if vector not in own or not moving or buffer is None or operand.start:
            continue
        if buffer.elements * buffer.dtype.bytes >= streamed_bytes:
            return Stream(buffer, tuple(axes), vector, moving[-1])
    return None
