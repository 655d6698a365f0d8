"""Reading the values and finishes of nests from expressions."""

from dataclasses import dataclass, field

from dovetail.isa.frozen import frozen, replace
from dovetail.isa.instructions import Row

from ...dtypes import DType
from ...errors import CompilerError
from ...loops.affine import Linear, linear
from ...loops.expressions import (
    Binary,
    BinaryFunction,
    Bitcast,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    Scope,
    Select,
    Unary,
    UnaryFunction,
    Variable,
)
from ...loops.ir import Store
from ...loops.simplify import simplify
from ...loops.text import expr_to_text
from ...loops.traverse import fold, loads
from .finishes import scaled_fixed
from .nest import (
    OWN_FINISH,
    OwnTable,
    Product,
    Ref,
    Requantized,
    RowFinish,
    Scaled,
    Total,
    Value,
)
from .row_finishes import ROOT_SHIFT, over_root

__all__ = ["Copy", "NestError", "Values"]


SHIFTS = (ROOT_SHIFT, *(shift for shift in range(32) if shift != ROOT_SHIFT))
"""Powers of two of a root's scale, the usual one first."""


class NestError(CompilerError):
    """A loop program has a statement that no instruction could be."""


@frozen
class Copy:
    """A copy in a scratchpad, by the name of what it is of; ``moved``: what to add to an index."""

    buffer: Buffer
    moved: tuple[int, ...]

    @staticmethod
    def of(stmt: Store, source: Load) -> "Copy":
        shape, moved = list(stmt.buffer.shape), [0] * len(stmt.buffer.shape)
        for axis, (inside, outside) in enumerate(zip(stmt.indices, source.indices, strict=True)):
            start = (linear(outside) - linear(inside)).value
            if start is not None:
                shape[axis], moved[axis] = source.buffer.shape[axis], start
        name = source.buffer.name
        return Copy(replace(stmt.buffer, name=name, shape=tuple(shape)), tuple(moved))

    def ref(self, indices: tuple[Linear, ...]) -> Ref:
        return Ref(
            self.buffer,
            tuple(i.shifted(start) for i, start in zip(indices, self.moved, strict=True)),
        )


@dataclass(slots=True)
class Values:
    """Reads expressions; ``copies``: in scratchpads, by the names of their buffers."""

    copies: dict[str, Copy] = field(default_factory=dict)

    def finish(
        self, value: Expr
    ) -> tuple[Requantized | RowFinish | None, Buffer | OwnTable | None, Expr]:
        """The finish and the table of a result, and what they are applied to."""
        match value:
            case Load(
                buffer=Buffer(name=name),
                indices=(Binary(BinaryFunction.ADD, Cast(operand=inner), Constant(value=row)), _),
            ) if name == OWN_FINISH:
                return None, OwnTable(int(row) // 256), inner
            case Load(
                buffer=table,
                indices=(
                    Binary(
                        BinaryFunction.ADD,
                        Cast(
                            operand=Binary(
                                BinaryFunction.MAX,
                                Binary(BinaryFunction.ADD, base, Load() as less),
                                Constant(value=first),
                            )
                        ),
                        Constant(value=255),
                    ),
                    _,
                ),
            ) if less.buffer.scope is Scope.PAR:
                moved_up = Requantized(self.ref(less), None, 127, int(first) + 127, 127)
                return moved_up, self.buffer(table), base
            case Binary(
                BinaryFunction.DIV,
                Load() as scale,
                Cast(
                    DType.FLOAT32,
                    Binary(
                        BinaryFunction.MAX,
                        Binary(BinaryFunction.ADD, base, Load() as bias),
                        Constant(value=1),
                    ),
                ),
            ):
                return RowFinish(Row.OVER, self.ref(bias), self.ref(scale)), None, base
            case Binary(BinaryFunction.SUB, Constant(0, DType.INT32), base):
                return RowFinish(Row.LESS), None, _uncast(base)
            case Bitcast() if root := _root_of(value):
                base, epsilon, factor, shift = root
                return RowFinish(Row.ROOT, None, self.ref(factor), epsilon, shift), None, base
            case Load(
                buffer=table,
                indices=(Binary(BinaryFunction.ADD, Cast(operand=inner), Constant(value=128)), _),
            ):
                finish, nested, base = self.finish(inner)
                if nested is None:
                    return finish, self.buffer(table), base
            case Cast(
                DType.INT8 | DType.INT32,
                Binary(
                    BinaryFunction.MIN,
                    Binary(BinaryFunction.MAX, moved, Constant(value=low)),
                    Constant(value=high),
                ),
            ):
                zero_point, scaled = _split(moved)
                match scaled:
                    case Unary(
                        UnaryFunction.RINT,
                        Binary(
                            BinaryFunction.MUL,
                            Cast(DType.FLOAT32, Binary(BinaryFunction.ADD, base, Load() as bias)),
                            Load() as scale,
                        ),
                    ):
                        parameters = self.ref(bias), self.ref(scale)
                        limits = (zero_point, int(low), int(high))
                        return Requantized(*parameters, *limits), None, base
                    case Unary(
                        UnaryFunction.RINT,
                        Binary(BinaryFunction.MUL, Cast(DType.FLOAT32, base), Load() as scale),
                    ):
                        found_scale = self.ref(scale)
                        limits = (zero_point, int(low), int(high))
                        return Requantized(None, found_scale, *limits), None, base
                    case Select(
                        Binary(BinaryFunction.LT, Cast(DType.INT64, Binary(_, base, _))), _, _
                    ):
                        limits = (zero_point, int(low), int(high))
                        found = _fixed_parameters(base, scaled)
                        if found and scaled_fixed(base, *found) == scaled:
                            parameters = self.ref(found[0]), self.ref(found[1])
                            return Requantized(*parameters, *limits), None, base
        return None, None, value

    def value(self, expr: Expr) -> Value:
        match expr:
            case Load() | Cast(DType.INT32, Load()):
                return self.operand(expr)
            case Binary(
                BinaryFunction.MUL,
                Cast(DType.INT32, Cast(DType.INT16, Load() as a)),
                Constant(value=factor),
            ):
                return Scaled(self.operand(a), int(factor), is_low=True)
            case Binary(BinaryFunction.MUL, a, Constant(value=factor)):
                return Scaled(self.operand(a), int(factor))
            case Binary(BinaryFunction.MUL, a, b):
                (left_offset, left), (offset, right) = _split(a), _split(b)
                return Product(self.operand(left), self.operand(right), offset, left_offset)
            case Binary(BinaryFunction.ADD, a, b):
                return Total(self.scaled(a), self.scaled(b))
        raise NestError(f"{expr_to_text(expr)} is not a value of an instruction")

    def scaled(self, expr: Expr) -> Scaled:
        match self.value(expr):
            case Scaled() as scaled:
                return scaled
            case Ref() as ref:
                return Scaled(ref, 1)
        raise NestError(f"{expr_to_text(expr)} is not an element with a factor")

    def operand(self, expr: Expr) -> Ref:
        if isinstance(expr, Cast) and expr.dtype is DType.INT32:
            expr = expr.operand
        if isinstance(expr, Load) and expr.dtype in (DType.INT8, DType.INT32):
            return self.ref(expr)
        raise NestError(f"{expr_to_text(expr)} is not an operand of an instruction")

    def ref(self, load: Load) -> Ref:
        indices = tuple(linear(index) for index in load.indices)
        for index in indices:
            if not all(isinstance(atom, Variable) for atom in index.terms):
                raise NestError(f"{expr_to_text(load)}: an index is not a sum of loop variables")
        copied = self.copies.get(load.buffer.name)
        return copied.ref(indices) if copied else Ref(load.buffer, indices)

    def buffer(self, buffer: Buffer) -> Buffer:
        """The buffer that a copy is of, or the buffer itself."""
        copied = self.copies.get(buffer.name)
        return copied.buffer if copied else buffer


def _fixed_parameters(base: Expr, scaled: Expr) -> tuple[Load, Load] | None:
    """The only two loads of ``scaled`` that are not of ``base``, in their order."""
    inside = set(loads(base))
    match [each for each in dict.fromkeys(loads(scaled)) if each not in inside]:
        case [word, multiplier]:
            return word, multiplier
    return None


def _root_of(value: Expr) -> tuple[Expr, int, Load, int] | None:
    """The operands of ``over_root``, with its epsilon, scale and shift, if ``value`` is one."""

    def divisor(node: Expr, below: tuple[Expr | None, ...]) -> Expr | None:
        match node:
            case Binary(BinaryFunction.MAX, left=Binary(BinaryFunction.ADD), dtype=DType.INT32):
                return node.left
        return next((each for each in below if each is not None), None)

    match fold(value, divisor):
        case Binary(left=base, right=Constant(value=epsilon)):
            scales = [each for each in loads(value) if each.dtype is DType.FLOAT32]
            simple = simplify(value)
            for shift in SHIFTS if scales else ():
                if simplify(over_root(base, int(epsilon), scales[0], shift)) == simple:
                    return base, int(epsilon), scales[0], shift
    return None


def _uncast(value: Expr) -> Expr:
    """The value that is converted to int32, or ``value`` itself."""
    return value.operand if isinstance(value, Cast) and value.dtype is DType.INT32 else value


def _split(expr: Expr) -> tuple[int, Expr]:
    """A number that is added, and the rest."""
    match expr:
        case Binary(BinaryFunction.ADD, rest, Constant(value=number)):
            return int(number), rest
        case Binary(BinaryFunction.SUB, rest, Constant(value=number)):
            return -int(number), rest
    return 0, expr
