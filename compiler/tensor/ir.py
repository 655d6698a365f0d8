"""Kernels: stages of perfect loop nests over buffers, with affine indices.

    Kernel := name Buffer* Stage*
    Stage  := Loop* "{" target "=" finish "(" fold over reduction loops "(" value ")" ")" "}"
    Loop   := var extent kind
    Ref    := Buffer [ Affine, ... ]
    Affine := constant + sum(coefficient * var)
    Value  := Ref | Value * Value | Value * integer | Value + Value
    Finish := none | requantize(bias Ref, scale Ref, zero_point, low, high) | lookup(table Ref) |
    clip

Loops are listed from the outermost.  A stage reads whole elements; lanes are loops like any other
until ``tensorize`` finds the accelerator's vectors and tiles in them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ..errors import GraphError

__all__ = [
    "Affine",
    "Buffer",
    "Fold",
    "Kernel",
    "Loop",
    "LoopKind",
    "Product",
    "Ref",
    "Requantized",
    "Scaled",
    "Scope",
    "Stage",
    "Total",
    "Value",
    "var",
]


class Scope(Enum):
    """Where a buffer lives."""

    DRAM = "dram"
    ACT = "act"
    WGT = "wgt"
    ACC = "acc"
    PAR = "par"
    TAP = "tap"
    TAB = "tab"


class LoopKind(Enum):
    """How a loop runs."""

    SERIAL = "serial"
    """One iteration after the other, in the program: each becomes instructions of its own."""
    HARDWARE = "hardware"
    """Inside one instruction."""
    LANE = "lane"
    """Inside one vector or tile."""


class Fold(Enum):
    """How reduction loops combine values."""

    NONE = "none"
    SUM = "sum"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array of ``shape`` elements of ``dtype`` in ``scope``, row-major."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: Scope

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, in each dimension."""
        strides = [1]
        for size in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * size)
        return tuple(strides)


@dataclass(frozen=True, slots=True)
class Affine:
    """``constant + sum(coefficient * variable)``; terms are sorted by name and never 0."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def make(constant: int, terms: Mapping[str, int]) -> "Affine":
        """The normal form."""
        kept = tuple(sorted((name, factor) for name, factor in terms.items() if factor))
        return Affine(constant, kept)

    def __add__(self, other: "Affine | int") -> "Affine":
        if isinstance(other, int):
            return Affine(self.constant + other, self.terms)
        terms = dict(self.terms)
        for name, factor in other.terms:
            terms[name] = terms.get(name, 0) + factor
        return Affine.make(self.constant + other.constant, terms)

    def __mul__(self, factor: int) -> "Affine":
        return Affine.make(self.constant * factor, {n: f * factor for n, f in self.terms})

    def substitute(self, name: str, value: "Affine") -> "Affine":
        """With ``value`` in the place of variable ``name``."""
        terms = dict(self.terms)
        factor = terms.pop(name, 0)
        return Affine.make(self.constant, terms) + value * factor

    def coefficient(self, name: str) -> int:
        """What ``name`` is multiplied with."""
        return dict(self.terms).get(name, 0)

    def limits(self, extents: Mapping[str, int]) -> tuple[int, int]:
        """Smallest and largest value, each variable running from 0 to its extent less 1."""
        spans = [factor * (extents[name] - 1) for name, factor in self.terms]
        return (
            self.constant + sum(min(span, 0) for span in spans),
            self.constant + sum(max(span, 0) for span in spans),
        )

    def __str__(self) -> str:
        parts = [name if factor == 1 else f"{factor}*{name}" for name, factor in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)


def var(name: str) -> Affine:
    """The variable ``name`` as an index."""
    return Affine(0, ((name, 1),))


@dataclass(frozen=True, slots=True)
class Ref:
    """An element of a buffer."""

    buffer: Buffer
    indices: tuple[Affine, ...]

    @property
    def offset(self) -> Affine:
        """Its place in the buffer, in elements."""
        total = Affine()
        for index, stride in zip(self.indices, self.buffer.strides, strict=True):
            total = total + index * stride
        return total

    def substitute(self, name: str, value: Affine) -> "Ref":
        """With ``value`` in the place of variable ``name``."""
        return Ref(self.buffer, tuple(index.substitute(name, value) for index in self.indices))

    def __str__(self) -> str:
        return f"{self.buffer.name}[{', '.join(map(str, self.indices))}]"


@dataclass(frozen=True, slots=True)
class Product:
    """``left * (right + offset)``, exact in int32."""

    left: Ref
    right: Ref
    offset: int = 0

    def __str__(self) -> str:
        right = f"({self.right} + {self.offset})" if self.offset else str(self.right)
        return f"{self.left} * {right}"


@dataclass(frozen=True, slots=True)
class Scaled:
    """``ref * factor``, exact in int32."""

    ref: Ref
    factor: int

    def __str__(self) -> str:
        return f"{self.ref} * {self.factor}"


@dataclass(frozen=True, slots=True)
class Total:
    """``left + right``, in int32."""

    left: Scaled
    right: Scaled

    def __str__(self) -> str:
        return f"{self.left} + {self.right}"


Value = Ref | Product | Scaled | Total


@dataclass(frozen=True, slots=True)
class Requantized:
    """``clip(rint(float32(x + bias) * scale) + zero_point, low, high)``: the stage's int8
    result.
    """

    bias: Ref
    scale: Ref
    zero_point: int
    low: int
    high: int

    def __str__(self) -> str:
        limits = f"{self.zero_point}, {self.low}, {self.high}"
        return f"requantize {self.bias}, {self.scale}, {limits}"


@dataclass(frozen=True, slots=True)
class Loop:
    """``extent`` iterations of ``name``."""

    name: str
    extent: int
    kind: LoopKind = LoopKind.SERIAL

    def __str__(self) -> str:
        return f"for {self.name} in {self.extent} {self.kind.value}"


@dataclass(frozen=True, slots=True)
class Stage:
    """``target = finish(table(fold over the reduction loops(value)))`` for every iteration of the
    others.

    loops: from the outermost.  reduction: names of the loops that fold.  table: int8[256, lanes],
    or None.
    Raises GraphError when an index names no loop, is one too many or too few for its buffer, or
    leaves it.
    """

    name: str
    loops: tuple[Loop, ...]
    reduction: frozenset[str]
    target: Ref
    fold: Fold
    value: Value
    finish: Requantized | None = None
    table: Buffer | None = None

    def __post_init__(self) -> None:
        extents = self.extents
        if len(extents) != len(self.loops):
            raise GraphError(f"stage {self.name}: two loops have one name")
        for ref in self.refs:
            if len(ref.indices) != len(ref.buffer.shape):
                raise GraphError(
                    f"stage {self.name}: {ref} has {len(ref.indices)} indices; its buffer has "
                    f"{len(ref.buffer.shape)} dimensions"
                )
            for axis, index in enumerate(ref.indices):
                unknown = {name for name, _ in index.terms} - set(extents)
                if unknown:
                    raise GraphError(
                        f"stage {self.name}: {ref} is indexed by {min(unknown)!r}; required one "
                        f"of its loops: {', '.join(extents)}"
                    )
                low, high = index.limits(extents)
                if low < 0 or high >= ref.buffer.shape[axis]:
                    raise GraphError(
                        f"stage {self.name}: {ref} runs from {low} to {high} in dimension {axis}; "
                        f"required 0 to {ref.buffer.shape[axis] - 1}"
                    )

    @property
    def extents(self) -> dict[str, int]:
        """Iterations of each loop, by name."""
        return {loop.name: loop.extent for loop in self.loops}

    @property
    def refs(self) -> tuple[Ref, ...]:
        """Every element the stage touches: target, operands, parameters."""
        match self.value:
            case Ref():
                operands: tuple[Ref, ...] = (self.value,)
            case Product(left=left, right=right):
                operands = (left, right)
            case Scaled(ref=ref):
                operands = (ref,)
            case Total(left=left_term, right=right_term):
                operands = (left_term.ref, right_term.ref)
        parameters = (self.finish.bias, self.finish.scale) if self.finish else ()
        return (self.target, *operands, *parameters)

    @property
    def macs(self) -> int:
        """Iterations of all loops."""
        total = 1
        for loop in self.loops:
            total *= loop.extent
        return total


@dataclass(frozen=True, slots=True)
class Kernel:
    """Stages that run one after the other for each iteration of their common SERIAL loops.

    The SERIAL loops of all stages come first and have the same names and extents, as far as each
    has them. macs: useful multiply-accumulates, padding lanes not counted.
    """

    name: str
    stages: tuple[Stage, ...]
    macs: int = 0

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(kernel: Kernel) -> list[str]:
    buffers = {ref.buffer for stage in kernel.stages for ref in stage.refs}
    lines = [f"kernel {kernel.name}"]
    for buffer in sorted(buffers, key=lambda b: b.name):
        shape = ", ".join(map(str, buffer.shape))
        lines.append(f"  {buffer.name}: {buffer.dtype}[{shape}] in {buffer.scope.value}")
    for stage in kernel.stages:
        lines.append(f"  stage {stage.name}")
        for depth, loop in enumerate(stage.loops):
            mark = " reduces" if loop.name in stage.reduction else ""
            lines.append(f"  {'  ' * (depth + 1)}{loop}{mark}")
        text = str(stage.value)
        if stage.fold is not Fold.NONE:
            text = f"{stage.fold.value}({text})"
        if stage.finish:
            text = f"{stage.finish} of {text}"
        if stage.table:
            text = f"{stage.table.name}[{text}]"
        lines.append(f"  {'  ' * (len(stage.loops) + 1)}{stage.target} = {text}")
    return lines
