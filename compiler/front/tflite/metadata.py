"""How a model's pictures are prepared, by the metadata that TensorFlow Lite's files may hold.

They are a flatbuffer of their own in one of the buffers.  Source: TensorFlow Lite Support,
metadata_schema.fbs, whose tables and the places of their fields these are.
"""

import struct

from dovetail.isa.frozen import frozen

from ...errors import ModelError
from ..source import Normalization

__all__ = ["IDENTIFIER", "read_normalization"]

IDENTIFIER = b"M001"
SUBGRAPHS = 3
"""The field of ModelMetadata; those below are of the tables in the order of the way to the numbers:
SubGraphMetadata, TensorMetadata, ProcessUnit, NormalizationOptions."""
INPUTS = 2
UNITS = 4
KIND, OPTIONS = 0, 1
NORMALIZES = 1
MEAN, DEVIATION = 0, 1


def read_normalization(content: bytes) -> Normalization | None:
    """Mean and divisor of the pixels of the model's first input; None where no metadata give them.

    Raises ModelError for metadata that are damaged.
    """
    if content[4:8] != IDENTIFIER:
        return None
    try:
        (root,) = struct.unpack_from("<I", content, 0)
        for subgraph in _Table(content, root).tables(SUBGRAPHS)[:1]:
            for tensor in subgraph.tables(INPUTS)[:1]:
                for unit in tensor.tables(UNITS):
                    if unit.byte(KIND) == NORMALIZES:
                        options = unit.table(OPTIONS)
                        return Normalization(options.floats(MEAN), options.floats(DEVIATION))
    except (struct.error, ValueError) as error:
        raise ModelError(f"the model's metadata are damaged ({error})") from None
    return None


@frozen
class _Table:
    """A table of a flatbuffer; reading behind the end raises struct.error."""

    content: bytes
    start: int

    def _place(self, field: int) -> int:
        """Where a field is; 0 where it is left out."""
        (back,) = struct.unpack_from("<i", self.content, self.start)
        index = self._at(self.start - back)
        (size,) = struct.unpack_from("<H", self.content, index)
        if 4 + 2 * field >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self.content, index + 4 + 2 * field)
        return self.start + offset if offset else 0

    def _at(self, place: int) -> int:
        if not 0 <= place < len(self.content):
            raise ValueError(f"an offset to {place} of {len(self.content)} bytes")
        return place

    def _followed(self, place: int) -> int:
        (offset,) = struct.unpack_from("<I", self.content, place)
        return self._at(place + offset)

    def byte(self, field: int) -> int:
        """A number of one byte, 0 where it is left out."""
        place = self._place(field)
        return self.content[self._at(place)] if place else 0

    def table(self, field: int) -> "_Table":
        """A table within this one."""
        place = self._place(field)
        if not place:
            raise ValueError(f"field {field} is left out")
        return _Table(self.content, self._followed(place))

    def _list(self, field: int) -> tuple[int, int]:
        """Start and length of a list of elements of four bytes."""
        place = self._place(field)
        if not place:
            return 0, 0
        start = self._followed(place)
        (count,) = struct.unpack_from("<I", self.content, start)
        if 4 * count > len(self.content):
            raise ValueError(f"a list of {count} elements")
        return start + 4, count

    def tables(self, field: int) -> list["_Table"]:
        """A list of tables."""
        start, count = self._list(field)
        return [_Table(self.content, self._followed(start + 4 * n)) for n in range(count)]

    def floats(self, field: int) -> tuple[float, ...]:
        """A list of numbers."""
        start, count = self._list(field)
        return struct.unpack_from(f"<{count}f", self.content, start)
