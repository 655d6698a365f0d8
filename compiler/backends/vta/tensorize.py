"""Matching scheduled stages against the accelerator's instructions.

GEMM means   acc[o, l] = sum(act[a, i] * wgt[w, l, i])    l, i lanes; o, w, a affine in six loops
VECTOR means dst[d, l] = finish(fold(value[s, l]))         l a lane; d, s affine in five loops

A stage is one instruction for each iteration of its SERIAL loops: its HARDWARE loops become levels,
and the coefficients of its indices, in words, the strides.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.isa.instruction_formats import GEMM_LEVELS, VECTOR_LEVELS
from dovetail.isa.instructions import Finish, Gemm, Multiplier, Vector
from dovetail.isa.instructions import Fold as IsaFold
from dovetail.isa.memories import Memory

from ...errors import CompilerError
from ...tensor.ir import Affine, Fold, Loop, LoopKind, Product, Ref, Scaled, Scope, Stage, Total

__all__ = ["Bases", "TensorizeError", "gemm", "is_gemm", "vector"]

MEMORY = {Scope.ACT: Memory.ACT, Scope.ACC: Memory.ACC}


class TensorizeError(CompilerError):
    """A stage is not the meaning of any instruction."""


@dataclass(frozen=True, slots=True)
class Bases:
    """Where buffers begin: word address by buffer name, for one instruction."""

    words: Mapping[str, int]

    def of(self, ref: Ref) -> int:
        """First word of the buffer of ``ref``."""
        return self.words[ref.buffer.name]


def is_gemm(stage: Stage) -> bool:
    """Whether the stage multiplies by weight tiles."""
    return isinstance(stage.value, Product) and stage.value.right.buffer.scope is Scope.WGT


def _hardware(stage: Stage) -> list[Loop]:
    """The loops of the instruction, innermost first, without those of one iteration."""
    return [
        loop for loop in reversed(stage.loops) if loop.kind is LoopKind.HARDWARE and loop.extent > 1
    ]


def _words(stage: Stage, ref: Ref, lanes: tuple[str, ...], serial: Mapping[str, int]) -> Affine:
    """The word ``ref`` lies in, relative to its buffer, for one iteration of the serial loops.

    ``lanes``: the lane loops within a word, outermost first.
    """
    offset = ref.offset
    width = 1
    for name in reversed(lanes):
        if offset.coefficient(name) != width:
            raise TensorizeError(f"stage {stage.name}: {ref} is not contiguous over lane {name}")
        width *= stage.extents[name]
    for name, value in serial.items():
        offset = offset.substitute(name, Affine(value))
    rest = {name: factor for name, factor in offset.terms if name not in lanes}
    if offset.constant % width or any(factor % width for factor in rest.values()):
        raise TensorizeError(f"stage {stage.name}: {ref} does not move by whole words of {width}")
    return Affine.make(offset.constant // width, {n: f // width for n, f in rest.items()})


def _strides(word: Affine, loops: list[Loop], levels: int) -> tuple[int, ...]:
    strides = [word.coefficient(loop.name) for loop in loops]
    return (*strides, *[0] * (levels - len(strides)))


def gemm(stage: Stage, serial: Mapping[str, int], bases: Bases) -> Gemm:
    """The GEMM of one iteration of the serial loops.

    Raises TensorizeError when the stage is not a sum of products of tiles.
    """
    value = stage.value
    lanes = [loop.name for loop in stage.loops if loop.kind is LoopKind.LANE]
    if not isinstance(value, Product) or stage.fold is not Fold.SUM or len(lanes) != 2:
        raise TensorizeError(f"stage {stage.name} is not a sum of tile products")
    out_lane, in_lane = lanes
    loops = _hardware(stage)
    if len(loops) > GEMM_LEVELS:
        raise TensorizeError(f"stage {stage.name} has {len(loops)} loops; GEMM has {GEMM_LEVELS}")
    act = _words(stage, value.left, (in_lane,), serial)
    wgt = _words(stage, value.right, (out_lane, in_lane), serial)
    acc = _words(stage, stage.target, (out_lane,), serial)
    extents = [loop.extent for loop in loops]
    return Gemm(
        act_address=bases.of(value.left) + act.constant,
        wgt_address=bases.of(value.right) + wgt.constant,
        acc_address=bases.of(stage.target) + acc.constant,
        extent=(*extents, *[1] * (GEMM_LEVELS - len(extents))),
        act_stride=_strides(act, loops, GEMM_LEVELS),
        wgt_stride=_strides(wgt, loops, GEMM_LEVELS),
        acc_stride=_strides(acc, loops, GEMM_LEVELS),
        reduction=sum(1 << i for i, loop in enumerate(loops) if loop.name in stage.reduction),
    )


def vector(stage: Stage, serial: Mapping[str, int], bases: Bases) -> Vector:
    """The VECTOR of one iteration of the serial loops.

    Raises TensorizeError when the stage is no fold of vectors.
    """
    (lane,) = (loop.name for loop in stage.loops if loop.kind is LoopKind.LANE)
    loops = _hardware(stage)
    folds = [loop for loop in loops if loop.name in stage.reduction]
    outer = [loop for loop in loops if loop.name not in stage.reduction]

    def words(ref: Ref) -> Affine:
        return _words(stage, ref, (lane,), serial)

    source, multiplier, extra = _operands(stage, words, bases)
    levels = [*([extra.loop] if extra.loop else folds or [Loop("one", 1)]), *outer]
    if extra.loop and folds:
        raise TensorizeError(f"stage {stage.name}: a sum of two tensors cannot fold as well")
    if len(levels) > VECTOR_LEVELS:
        raise TensorizeError(
            f"stage {stage.name} has {len(levels)} loops; VECTOR has {VECTOR_LEVELS}"
        )
    reduction_levels = len(levels) - len(outer)
    read, written = words(source), words(stage.target)
    source_stride = list(_strides(read, levels, VECTOR_LEVELS))
    if extra.loop:
        source_stride[0] = extra.stride
    extents = [loop.extent for loop in levels]
    fields: dict[str, object] = {}
    if stage.finish:
        parameters = words(stage.finish.bias)
        fields |= {
            "finish": Finish.REQUANTIZE,
            "par_address": bases.of(stage.finish.bias) + parameters.constant,
            "par_stride": _strides(parameters, levels, VECTOR_LEVELS)[1:],
            "zero_point": stage.finish.zero_point,
            "low": stage.finish.low,
            "high": stage.finish.high,
        }
    if stage.table:
        fields |= {"lookup": True, "tab_address": bases.words[stage.table.name]}
    if multiplier is not None:
        taps = words(multiplier)
        fields |= {
            "multiplier": Multiplier.TAP,
            "tap_address": bases.of(multiplier) + taps.constant,
            "tap_stride": _strides(taps, levels, VECTOR_LEVELS),
        }
    fields |= extra.fields
    fold = IsaFold.MAX if stage.fold is Fold.MAX else IsaFold.ADD
    if multiplier is not None or extra.loop:
        fold = IsaFold.MAC
    return Vector(
        source=MEMORY[source.buffer.scope],
        destination=MEMORY[stage.target.buffer.scope],
        source_address=bases.of(source) + read.constant,
        destination_address=bases.of(stage.target) + written.constant,
        extent=(*extents, *[1] * (VECTOR_LEVELS - len(extents))),
        source_stride=tuple(source_stride),
        destination_stride=_strides(written, levels, VECTOR_LEVELS)[1:],
        reduction_levels=reduction_levels,
        fold=fold,
        **fields,  # type: ignore[arg-type]
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """The level that a sum of two scaled tensors adds: over the two tensors."""

    loop: Loop | None
    stride: int
    fields: dict[str, object]


def _operands(stage: Stage, words: object, bases: Bases) -> tuple[Ref, Ref | None, _Pair]:
    """The source, the taps that multiply it, and the second tensor's level."""
    none = _Pair(None, 0, {})
    match stage.value:
        case Ref() as source:
            return source, None, none
        case Product(left=left, right=right) if right.buffer.scope is Scope.TAP:
            return left, right, none
        case Total(left=Scaled(ref=a, factor=m0), right=Scaled(ref=b, factor=m1)):
            first, second = words(a), words(b)  # type: ignore[operator]
            if first.terms != second.terms:
                raise TensorizeError(f"stage {stage.name}: {a} and {b} do not move alike")
            stride = bases.of(b) + second.constant - bases.of(a) - first.constant
            fields: dict[str, object] = {"multiplier": Multiplier.IMMEDIATE, "m0": m0, "m1": m1}
            return a, None, _Pair(Loop("pair", 2), stride, fields)
        case _:
            raise TensorizeError(f"stage {stage.name} is no fold of vectors: {stage.value}")
