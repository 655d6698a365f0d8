"""Bit formats as data: fields, their widths, ranges and places in a word.

Everything that reads or writes bits (encoder, decoder, gateware layouts, the manual) derives from a
``Format``. Fields come least significant first, without gaps; what is left of the word is reserved
and zero.
"""

from collections.abc import Mapping

from .errors import EncodingError
from .frozen import frozen

__all__ = ["Field", "Format"]


@frozen
class Field:
    """``width`` bits called ``name``; two's complement when ``signed``."""

    name: str
    width: int
    doc: str
    signed: bool = False

    @property
    def low(self) -> int:
        """Smallest value."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """Largest value."""
        return (1 << (self.width - 1)) - 1 if self.signed else (1 << self.width) - 1


@frozen
class Format:
    """A word of ``width`` bits made of ``fields``, least significant first; the rest is reserved,
    zero.
    """

    name: str
    width: int
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if len(set(names)) != len(names):
            raise EncodingError(f"format {self.name} names a field twice")
        if self.used_bits > self.width:
            raise EncodingError(f"format {self.name} uses {self.used_bits} of {self.width} bits")

    @property
    def used_bits(self) -> int:
        """Bits that belong to a field."""
        return sum(field.width for field in self.fields)

    def offset(self, name: str) -> int:
        """Place of the least significant bit of the field ``name``."""
        place = 0
        for field in self.fields:
            if field.name == name:
                return place
            place += field.width
        raise EncodingError(f"format {self.name} has no field {name!r}")

    def encode(self, values: Mapping[str, int]) -> int:
        """Pack ``values``, one for every field, into a word.

        Raises EncodingError for a missing, unknown or out-of-range value.
        """
        word = place = 0
        for field in self.fields:
            name, width = field.name, field.width
            if name not in values:
                raise EncodingError(f"{self.name}: no value for field {name}")
            value = int(values[name])
            # What does not fit leaves something above the field.
            if (value + (1 << width >> 1) if field.signed else value) >> width:
                raise EncodingError(
                    f"{self.name}: {name} = {value}; required {field.low} to {field.high}"
                )
            word |= (value & (1 << width) - 1) << place
            place += width
        if len(values) > len(self.fields):
            unknown = set(values) - {field.name for field in self.fields}
            raise EncodingError(f"{self.name} has no field {', '.join(sorted(unknown))}")
        return word

    def decode(self, word: int) -> dict[str, int]:
        """Unpack ``word``.

        Raises EncodingError when reserved bits are set.
        """
        if word >> self.used_bits:
            raise EncodingError(f"{self.name}: reserved bits {self.used_bits} and up are not zero")
        values: dict[str, int] = {}
        place = 0
        for field in self.fields:
            raw = (word >> place) & ((1 << field.width) - 1)
            values[field.name] = (
                raw - (1 << field.width) if field.signed and raw > field.high else raw
            )
            place += field.width
        return values
