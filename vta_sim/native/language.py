"""The words of native code: Python functions that ``translate`` turns into machine code.

Native code is plain Python with a fixed meaning for every name, checked by mypy as any other:

- ``int`` is 64 bits and wraps; ``bool`` is a comparison's result.
- Arrays (``Int8s`` to ``Float32s``) are C-contiguous memory without bounds checks; an element is an
  ``int``, sign-extended when read and cut when written.
- ``Lanes`` is one word of the accelerator: as many int32 as the core has lanes. Operators work lane
  by lane and wrap; an ``int`` operand counts for every lane.
- A parameter annotated with an instruction class of ``dovetail.isa`` is a row of
  ``dovetail.isa.table``: the fields of the format by name, levels by index.
- A subclass of ``Record`` is a group of ints and arrays that Python and native code share.
- Statements: assignment, ``if``, ``while``, ``for`` over ``range``, ``break``, ``continue``,
  ``return``; calls of other native functions and of the functions below.

What is not in this list is refused when it is translated.

The functions below are declarations: they have no body in Python.  ``expressions`` writes
instructions in place of their calls.
"""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, ClassVar, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import TranslationError

__all__ = [
    "AnyArray",
    "Bytes",
    "Float32s",
    "Int8s",
    "Int32s",
    "Int64s",
    "Lanes",
    "Levels",
    "Native",
    "Record",
    "Tile",
    "copy",
    "dot",
    "fill",
    "largest",
    "load_tile",
    "load_word",
    "look_up",
    "multiply_fixed",
    "multiply_round_clip",
    "row_of",
    "smallest",
    "splat",
    "store_word",
    "sum_rows",
    "sum_word",
]

Bytes = Annotated[NDArray[np.uint8], "uint8"]
Int8s = Annotated[NDArray[np.int8], "int8"]
Int32s = Annotated[NDArray[np.int32], "int32"]
Int64s = Annotated[NDArray[np.int64], "int64"]
Float32s = Annotated[NDArray[np.float32], "float32"]
AnyArray = Annotated[NDArray[Any], "uint8"]
"""Memory to copy to and from; its element does not matter."""
Levels = Annotated[Any, "levels"]
"""A field of a row that every loop level has."""
Lanes = Annotated[Any, "lanes"]
Tile = Annotated[Any, "tile"]

Native = Callable[..., Any]
"""A function that is native code."""


class Record:
    """Ints and arrays, by the annotations of a subclass, in one array of 64-bit slots.

    Every int is 0, and every array must be given, unless ``values`` says otherwise. Native code
    works on the same memory: what it assigns can be read here. Arrays are kept alive by the record.
    """

    places: ClassVar[dict[str, int]]
    """The slot of each name."""

    def __init_subclass__(cls) -> None:
        cls.places = {name: place for place, name in enumerate(cls.__annotations__)}

    def __init__(self, **values: object) -> None:
        self.__dict__["kept"] = {}
        slots = [0] * len(self.places)
        for name, value in values.items():
            slots[self.places[name]] = self._keep(name, value)
        # All at once: to set one slot takes as long as all else that is done for it.
        self.__dict__["slots"] = np.array(slots, np.int64)
        for name, kind in type(self).__annotations__.items():
            if kind is not int and name not in values:
                raise TypeError(f"{type(self).__name__} lacks {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__["slots"][self.places[name]] = self._keep(name, value)

    def _keep(self, name: str, value: Any) -> int:
        """The number in the slot of a value; one with memory of its own is kept alive."""
        if isinstance(value, Record):
            self.__dict__["kept"][name] = value
            return value.pointer
        if isinstance(value, np.ndarray):
            kind = type(self).__annotations__[name].__metadata__[0]
            if not value.flags.c_contiguous or value.dtype != kind:
                raise TypeError(
                    f"{name} is {value.dtype}, strides {value.strides}; required {kind}, contiguous"
                )
            self.__dict__["kept"][name] = value
            place: int = value.__array_interface__["data"][0]
            return place
        return int(value)

    def __getattr__(self, name: str) -> Any:
        """Read a field that is in a slot."""
        if name not in self.places:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        kept = self.__dict__["kept"]
        return kept[name] if name in kept else int(self.__dict__["slots"][self.places[name]])

    @property
    def pointer(self) -> int:
        """Where native code finds it."""
        return int(self.__dict__["slots"].__array_interface__["data"][0])


P = ParamSpec("P")
R = TypeVar("R")


def word(declared: Callable[P, R]) -> Callable[P, R]:
    """A function of the language; Python that calls it gets a TranslationError."""

    @wraps(declared)
    def refuse(*arguments: P.args, **named: P.kwargs) -> NoReturn:
        name = declared.__name__
        raise TranslationError(
            f"{name} was called from Python; required a call in native code; give the function "
            f"that calls {name} to machine_code.build, and run what that returns"
        )

    return refuse


@word
def load_word(memory: Int8s | Int32s, index: int) -> Lanes:
    """Word ``index`` of a scratchpad."""


@word
def store_word(memory: Int8s | Int32s, index: int, word: Lanes) -> None:
    """Write word ``index`` of a scratchpad; int8 keeps the low bits."""


@word
def sum_word(memory: Int8s | Int32s, index: int) -> int:
    """The sum of the lanes of word ``index``."""


@word
def splat(value: int) -> Lanes:
    """``value`` in every lane."""


@word
def smallest(left: Lanes, right: Lanes) -> Lanes:
    """Lane by lane."""


@word
def largest(left: Lanes, right: Lanes) -> Lanes:
    """Lane by lane."""


@word
def multiply_round_clip(value: Lanes, scale: Float32s, index: int, low: int, high: int) -> Lanes:
    """``clip(rint(float32(value) * scale[index]), low, high)``: ``scale`` has words of float32;
    each step is rounded to float32, half to even.
    """


@word
def multiply_fixed(value: Lanes, multiplier: Lanes, power: Lanes, low: int, high: int) -> Lanes:
    """``clip(value * multiplier / 2^31 * 2^power, low, high)``, rounded twice as
    ``dovetail.isa.requantize.requantize_fixed`` has it; 31 bits of ``multiplier`` count.
    """


@word
def look_up(table: Int8s, word: int, index: Lanes) -> Lanes:
    """In each lane the same lane of the word ``word + index`` of ``table``."""


@word
def load_tile(memory: Int8s, index: int) -> Tile:
    """Weight tile ``index``: int8[out, in]."""


@word
def dot(tile: Tile, memory: Int8s, index: int) -> Lanes:
    """``tile @ memory[index]``: one product of the matrix core, int32."""


@word
def sum_rows(tile: Tile) -> Lanes:
    """The sum of each output lane's weights."""


@word
def copy(target: AnyArray, target_at: int, source: AnyArray, source_at: int, size: int) -> None:
    """Copy ``size`` bytes, which do not overlap; places are in bytes."""


@word
def fill(target: AnyArray, at: int, value: int, size: int) -> None:
    """Set ``size`` bytes to ``value``."""


@word
def row_of(table: Int64s, start: int) -> Any:
    """The row of an instruction table that begins at element ``start``."""
