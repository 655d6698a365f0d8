"""Matching scheduled nests against the accelerator's intrinsics.

A nest is one instruction for each iteration of its SERIAL loops.  Its VECTOR loops are those of the
intrinsic's meaning, in their order; its HARDWARE loops become levels, and the coefficients of its
indices, in words, the strides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from dovetail.isa.frozen import frozen, replace
from dovetail.isa.instructions import Gemm, Vector
from dovetail.isa.memories import Unit

from ...dtypes import DType
from ...errors import CompilerError
from ...loops.affine import Linear
from ...loops.expressions import Buffer
from ...loops.ir import LoopKind
from .intrinsics import Intrinsic, intrinsics
from .nest import (
    SECOND_STEP,
    Fold,
    Loop,
    Nest,
    OwnTable,
    Product,
    Ref,
    Scaled,
    Total,
    Value,
    without,
)
from .operands import Operand, Tile

__all__ = ["Match", "TensorizeError", "tensorize"]

ROWS = 1
"""The dimension of an activation that rows are along."""


class TensorizeError(CompilerError):
    """A nest is not the meaning of any instruction."""


class _MismatchError(Exception):
    """Why a nest does not match one intrinsic."""


@frozen
class Match:
    """A nest and the intrinsic it is.

    levels: the loops of the instruction, innermost first, those that fold before all others for
    VECTOR. operands: what the nest has in place of each operand of the meaning. words: of each
    operand, the word within its buffer; an index of loops.  strides: of each operand, from one
    iteration of each level to the next.
    """

    nest: Nest
    intrinsic: Intrinsic
    levels: tuple[Loop, ...]
    operands: Mapping[str, Ref]
    words: Mapping[str, Linear]
    strides: Mapping[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        strides = {
            name: tuple(word.coefficient(loop.name) for loop in self.levels)
            for name, word in self.words.items()
        }
        object.__setattr__(self, "strides", strides)

    @property
    def unit(self) -> Unit:
        """The unit that runs it."""
        return self.intrinsic.unit

    def only(self, start: int, count: int) -> "Match":
        """``count`` rows of the result from row ``start`` on of those of the instruction."""
        moving = self.nest.target.indices[ROWS]
        names = {loop.name for loop in self.levels if moving.coefficient(loop.name)}
        levels = tuple(
            replace(loop, extent=count) if loop.name in names else loop for loop in self.levels
        )
        words = {
            operand: word.shifted(sum(word.coefficient(name) for name in names) * start)
            for operand, word in self.words.items()
        }
        return replace(self, levels=levels, words=words)

    def apart(self, operand: str, before: int, after: int) -> "Match":
        """With blocks of an operand ``after`` words apart, in place of ``before``."""

        def moved(word: Linear) -> Linear:
            terms = {
                name: factor // before * after if factor % before == 0 else factor
                for name, factor in word.terms.items()
            }
            return Linear(word.constant, terms)

        return replace(self, words={**self.words, operand: moved(self.words[operand])})

    def instruction(self, serial: Mapping[str, int], bases: Mapping[str, int]) -> Gemm | Vector:
        """The instruction of one iteration of the serial loops.

        serial: the iteration of each.  bases: first word of each buffer, by name.
        """
        operands = {name: self._operand(name, serial, bases) for name in self.operands}
        table = self.nest.table
        tile = Tile(
            self.nest,
            operands,
            tuple(loop.extent for loop in self.levels),
            sum(1 << n for n, loop in enumerate(self.levels) if loop.name in self.nest.reduction),
            self.nest.adds or any(serial.get(name, 0) for name in self.nest.reduction),
            bases[table.name] if isinstance(table, Buffer) else None,
            table.shift if isinstance(table, OwnTable) else None,
        )
        return self.intrinsic.emit(tile)

    def _operand(self, name: str, serial: Mapping[str, int], bases: Mapping[str, int]) -> Operand:
        buffer, word = self.operands[name].buffer, self.words[name]
        return Operand(buffer.scope, bases[buffer.name] + word.at(serial), self.strides[name])


def tensorize(nest: Nest, lanes: int) -> Match:
    """The intrinsic that ``nest`` is, on an accelerator with blocks of ``lanes``.

    Raises TensorizeError, saying of each intrinsic why not, when there is none.
    """
    reasons = []
    for intrinsic in intrinsics(lanes):
        try:
            return _match(nest, intrinsic)
        except _MismatchError as mismatch:
            reasons.append(f"{intrinsic.name}: {mismatch}")
    raise TensorizeError(f"the nest of {nest.name!r} is not an instruction; {'; '.join(reasons)}")


def _match(nest: Nest, intrinsic: Intrinsic) -> Match:
    meaning = intrinsic.nest
    lanes = _lanes(nest, meaning)
    operands = {meaning.target.buffer.name: nest.target}
    operands |= _values(nest.value, meaning.value, raises=intrinsic.unit is Unit.GEMM)
    formal = {ref.buffer.name: ref for ref in meaning.refs}
    for name, ref in operands.items():
        allowed = intrinsic.scopes.get(name, (formal[name].buffer.scope,))
        if ref.buffer.scope not in allowed:
            raise _MismatchError(f"{ref} is in {ref.buffer.scope.value}")
    if (nest.finish or nest.table) and not intrinsic.finishes:
        raise _MismatchError("it cannot finish its result")
    if not nest.finish and nest.target.buffer.dtype is DType.INT8 and not _stays_int8(nest):
        raise _MismatchError("an int8 result that may be out of range needs a finish")
    operands |= nest.parameters
    words = {
        name: _words(ref, formal.get(name, meaning.target), lanes) for name, ref in operands.items()
    }
    if any(words["bias"] != words[name] for name in nest.parameters if "bias" in words):
        raise _MismatchError("bias and scale are not in one word")
    levels = _levels(nest, intrinsic)
    if "other" in words:
        _check_second(operands, words, levels, isinstance(nest.value, Total))
    return Match(nest, intrinsic, levels, operands, words)


def _check_second(
    operands: Mapping[str, Ref], words: Mapping[str, Linear], levels: Sequence[Loop], alike: bool
) -> None:
    """The second operand moves as the first one does, if ``alike``, or by strides of its own."""
    for loop in levels:
        first, second = (words[name].coefficient(loop.name) for name in ("source", "other"))
        if alike and first != second:
            raise _MismatchError(f"{operands['source']} and {operands['other']} do not move alike")
        if not alike and not -SECOND_STEP <= second < SECOND_STEP:
            raise _MismatchError(
                f"{operands['other']} moves by {second} words; required at most {SECOND_STEP - 1}"
            )


def _stays_int8(nest: Nest) -> bool:
    """True if the result is one of the int8 values read; others would be clipped, not wrapped."""
    value = nest.value
    return isinstance(value, Ref) and value.buffer.dtype is DType.INT8 and nest.fold is not Fold.SUM


def _lanes(nest: Nest, meaning: Nest) -> dict[str, str]:
    """The meaning's name for each vector loop of the nest."""
    lanes = [loop for loop in nest.loops if loop.kind is LoopKind.VECTOR]
    if [loop.extent for loop in lanes] != [loop.extent for loop in meaning.loops]:
        raise _MismatchError(f"lanes {[str(loop) for loop in lanes]}")
    for loop, formal in zip(lanes, meaning.loops, strict=True):
        if (loop.name in nest.reduction) != (formal.name in meaning.reduction):
            raise _MismatchError(f"lane {loop.name} reduces, or does not")
    return {loop.name: formal.name for loop, formal in zip(lanes, meaning.loops, strict=True)}


def _values(value: Value, meaning: Value, *, raises: bool = False) -> dict[str, Ref]:
    """The operands of ``value`` by their names in ``meaning``, which must have the same form.

    raises: whether the instruction adds a number to the left operand of a product, as a field.
    """
    match value, meaning:
        case Ref(), Ref():
            return {meaning.buffer.name: value}
        case Product(left=a, right=b), Product(left=c, right=d):
            if value.left_offset and not (meaning.left_offset or raises):
                raise _MismatchError(f"it adds {value.left_offset} to {a}")
            return _values(a, c) | _values(b, d)
        case Scaled(ref=a, is_low=low), Scaled(ref=c, is_low=wanted) if low == wanted:
            return _values(a, c)
        case Total(left=a, right=b), Total(left=c, right=d):
            return _values(a, c) | _values(b, d)
        case _:
            raise _MismatchError(f"it computes {value}")


def _words(ref: Ref, formal: Ref, lanes: Mapping[str, str]) -> Linear:
    """The word of its buffer that ``ref`` is in; over the lanes it runs as ``formal`` does."""
    width = 1
    for size in formal.buffer.shape:
        width *= size
    offset, wanted = ref.offset, formal.offset
    for name, formal_name in lanes.items():
        if offset.coefficient(name) != wanted.coefficient(formal_name):
            raise _MismatchError(
                f"{ref} does not run over lane {name} as {formal} over {formal_name}"
            )
    rest = without(offset, lanes)
    if rest.constant % width or any(factor % width for factor in rest.terms.values()):
        raise _MismatchError(f"{ref} does not move by whole words of {width}")
    return Linear(rest.constant // width, {a: f // width for a, f in rest.terms.items()})


def _levels(nest: Nest, intrinsic: Intrinsic) -> tuple[Loop, ...]:
    """The loops of the instruction, innermost first, without those of one iteration."""
    inner = [
        loop for loop in reversed(nest.loops) if loop.kind is LoopKind.HARDWARE and loop.extent > 1
    ]
    lanes = {loop.name for loop in nest.loops if loop.kind is LoopKind.VECTOR}
    if nest.fold not in intrinsic.folds or (nest.fold is Fold.NONE and nest.reduction - lanes):
        raise _MismatchError(f"it folds by {nest.fold.value}")
    serial = {loop.name for loop in nest.loops if loop.kind is LoopKind.SERIAL and loop.extent > 1}
    if intrinsic.unit is Unit.GEMM:
        levels, most = inner, intrinsic.levels
    else:
        if serial & nest.reduction:
            raise _MismatchError("it folds over a serial loop")
        folded = [loop for loop in inner if loop.name in nest.reduction]
        levels = folded + [loop for loop in inner if loop.name not in nest.reduction]
        most = intrinsic.levels if folded else intrinsic.levels - 1
    if len(levels) > most:
        raise _MismatchError(f"{len(levels)} loops; it has {most} levels")
    return tuple(levels)
