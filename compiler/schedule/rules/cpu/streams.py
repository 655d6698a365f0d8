"""Operands of sums that are too large to stay in a cache: weights, most of all.

They come from memory once in a run, in a known order, so what the next tile reads is requested
while this tile is computed.
"""

from dovetail.isa.frozen import frozen

from .products import Products

__all__ = ["Stream", "find_stream"]


@frozen
class Stream:
    """An operand in ``buffer``; moving: the loop, of this operand alone, that changes between
    tiles.
    """

    buffer: str
    moving: str


def find_stream(products: Products, vector: str, streamed_bytes: int) -> Stream | None:
    """The first operand in memory of as many bytes whose lanes and tiles are its own.

    vector: the loop that is in lanes.
    """
    if vector not in products.kept:
        return None
    used = products.labels
    for number, read in enumerate(products.reads):
        others = set().union(*(each for place, each in enumerate(used) if place != number))
        own = used[number] - others
        moving = [name for name in products.kept if name in own and name != vector]
        if vector not in own or not moving or any(read.shifts):
            continue
        if read.buffer.elements * read.buffer.dtype.bytes >= streamed_bytes:
            return Stream(read.buffer.name, moving[-1])
    return None
