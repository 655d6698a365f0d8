"""Operands of an instruction: a nest at one place, in words."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...loops.expressions import Scope
from .nest import Nest

__all__ = ["Operand", "Tile"]


@frozen
class Operand:
    """An operand's place for one instruction: its first word, and words a step of each level."""

    scope: Scope
    address: int
    strides: tuple[int, ...]


@frozen
class Tile:
    """A nest matched to an intrinsic, for one iteration of its serial loops.

    operands: by their names in the meaning; with a finish, ``bias`` and ``scale`` too.
    extents: iterations of each level, innermost first; ``folded`` has the bit of each that reduces.
    again: the result adds to what an earlier iteration of a serial loop has left.
    table: first word of the look-up table, if there is one.  own: the shift of the own finish, if
    that does what a table would.
    """

    nest: Nest
    operands: Mapping[str, Operand]
    extents: tuple[int, ...]
    folded: int
    again: bool
    table: int | None
    own: int | None = None
