"""The rules that every loop program keeps, and the first one that a program breaks."""

from collections.abc import Mapping
from dataclasses import field

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from ..errors import GraphError
from ..graph.operators.functions import BITWISE, SHIFTS
from .accesses import Access, accesses
from .affine import Linear
from .bounds import Bounds
from .expressions import (
    COMPARISONS,
    SCRATCHPADS,
    Binary,
    BinaryFunction,
    Bitcast,
    Buffer,
    Constant,
    Expr,
    Load,
    Scope,
    Unary,
    UnaryFunction,
    Variable,
)
from .intrinsic import Intrinsic
from .ir import Allocate, For, Function, If, Invoke, Let, LoopKind, Stmt, Store, Update, While
from .legality import describe, race
from .simplify import Simplifier
from .text import expr_to_text, statement_to_text
from .traverse import bodies, expressions, own_expressions, walk

__all__ = ["verify"]

OF_BITS = BITWISE | {UnaryFunction.NOT}
COUNTED = frozenset({LoopKind.VECTOR, LoopKind.UNROLLED})
"""Kinds whose extent is constant, and whose variables may index registers."""

OUTLIVING = (Scope.GLOBAL, *SCRATCHPADS)
"""Memories that outlive a function: those of its parameters."""


def verify(
    function: Function,
    intrinsics: Mapping[str, Intrinsic] | None = None,
    *,
    scheduled: bool = False,
    trust_data: bool = False,
) -> None:
    """Raise GraphError, naming the statement, unless the function keeps these rules.

    Names: parameters and allocations have different names where both are seen; a variable or
    buffer is used where it is bound; nothing hides a variable.  Types: conditions are bool, indices
    and extents int64, functions are defined for their dtype.  Inputs are not written.  Every index
    is in range, which its form, the loops and the guards around it prove.  Iterations that run at
    once touch different elements.  Extents of vector and unrolled loops are constant; once the
    function is ``scheduled``, only their variables index registers.

    With ``trust_data``, indices that depend on elements of buffers are taken to be in range.
    """
    parameters = (*function.inputs, *function.outputs)
    names: dict[str, Buffer] = {}
    for buffer in parameters:
        if buffer.name in names:
            raise GraphError(f"{function.name}: two parameters are named {buffer.name}")
        if buffer.scope not in OUTLIVING:
            raise GraphError(
                f"{function.name}: parameter {buffer.name} is {buffer.scope}; required "
                f"{' or '.join(OUTLIVING)}"
            )
        _verify_held(function.name, buffer)
        names[buffer.name] = buffer
    inputs = frozenset(buffer.name for buffer in function.inputs)
    verifier = _Verifier(function.name, inputs, intrinsics or {}, scheduled, trust_data)
    verifier.statement(function.body, _Scope(names, {}, {}))
    verifier.indices(function.body)
    verifier.races(function.body, Bounds())


@frozen
class _Scope:
    buffers: Mapping[str, Buffer]
    variables: Mapping[str, DType]
    kinds: Mapping[str, LoopKind] = field(default_factory=dict)


class _Verifier:
    def __init__(
        self,
        name: str,
        inputs: frozenset[str],
        intrinsics: Mapping[str, Intrinsic],
        scheduled: bool,
        trust_data: bool,
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.intrinsics = intrinsics
        self.scheduled = scheduled
        self.trust_data = trust_data

    def error(self, stmt: Stmt, message: str) -> GraphError:
        line = statement_to_text(stmt).splitlines()[0]
        return GraphError(f"{self.name}: {line!r}: {message}")

    def statement(self, stmt: Stmt, scope: _Scope) -> None:
        for expr in own_expressions(stmt):
            self.expression(expr, stmt, scope)
        match stmt:
            case Store(buffer=buffer, indices=indices) | Update(buffer=buffer, indices=indices):
                self.use(buffer, stmt, scope, writes=True)
                self.index(buffer, indices, stmt, scope)
                if isinstance(stmt, Update):
                    self.defined(stmt.function, buffer.dtype, stmt)
            case For(variable=name, extent=extent, kind=kind):
                self.required(extent, DType.INT64, "extent", stmt)
                if kind in COUNTED and not isinstance(Simplifier(Bounds()).expr(extent), Constant):
                    raise self.error(stmt, f"the extent of a {kind} loop must be constant")
                scope = self.bind(name, DType.INT64, stmt, scope, kind)
            case If(condition=condition) | While(condition=condition):
                self.required(condition, DType.BOOL, "condition", stmt)
            case Let(variable=variable, value=value):
                self.required(value, variable.dtype, "value", stmt)
                scope = self.bind(variable.name, variable.dtype, stmt, scope, None)
            case Allocate(buffer=buffer):
                if buffer.name in scope.buffers:
                    raise self.error(stmt, f"there is a buffer {buffer.name} already")
                if any(size < 0 for size in buffer.shape):
                    raise self.error(stmt, "a size is negative")
                _verify_held(self.name, buffer)
                scope = _Scope({**scope.buffers, buffer.name: buffer}, scope.variables, scope.kinds)
            case Invoke():
                self.invoke(stmt, scope)
        for body in bodies(stmt):
            self.statement(body, scope)

    def bind(
        self, name: str, dtype: DType, stmt: Stmt, scope: _Scope, kind: LoopKind | None
    ) -> _Scope:
        if name in scope.variables:
            raise self.error(stmt, f"there is a variable {name} already")
        kinds = scope.kinds if kind is None else {**scope.kinds, name: kind}
        return _Scope(scope.buffers, {**scope.variables, name: dtype}, kinds)

    def required(self, expr: Expr, dtype: DType, what: str, stmt: Stmt) -> None:
        if expr.dtype is not dtype:
            raise self.error(stmt, f"the {what} is {expr.dtype}; required {dtype}")

    def use(self, buffer: Buffer, stmt: Stmt, scope: _Scope, *, writes: bool = False) -> None:
        known = scope.buffers.get(buffer.name)
        if known is None:
            raise self.error(stmt, f"no buffer {buffer.name} here")
        if known != buffer:
            raise self.error(stmt, f"{buffer.name} is {buffer}; it was declared as {known}")
        if writes and buffer.name in self.inputs:
            raise self.error(stmt, f"input {buffer.name} is written")

    def index(self, buffer: Buffer, indices: tuple[Expr, ...], stmt: Stmt, scope: _Scope) -> None:
        for index in indices:
            self.required(index, DType.INT64, f"index of {buffer.name}", stmt)
            register = self.scheduled and buffer.scope is Scope.REGISTER
            if not register or isinstance(index, Constant):
                continue
            for node in expressions(index):
                named = isinstance(node, Variable) and scope.kinds.get(node.name) not in COUNTED
                if named or isinstance(node, Load):
                    raise self.error(
                        stmt,
                        f"register {buffer.name} is indexed by {expr_to_text(node)}; required "
                        "constants and variables of unrolled and vector loops",
                    )

    def expression(self, root: Expr, stmt: Stmt, scope: _Scope) -> None:
        for node in expressions(root):
            match node:
                case Variable(name=name, dtype=dtype):
                    known = scope.variables.get(name)
                    if known is not dtype:
                        found = "no variable" if known is None else f"{known} variable"
                        raise self.error(stmt, f"{found} {name} here; required {dtype}")
                case Load(buffer=buffer, indices=indices):
                    self.use(buffer, stmt, scope)
                    self.index(buffer, indices, stmt, scope)
                case Binary(function=function, left=left):
                    self.defined(function, left.dtype, stmt)
                case Unary(function=test, operand=operand):
                    self.defined(test, operand.dtype, stmt)
                case Bitcast(dtype=dtype, operand=operand) if dtype.bytes != operand.dtype.bytes:
                    raise self.error(stmt, f"bitcast of {operand.dtype} to {dtype}, of other size")

    def defined(self, function: BinaryFunction | UnaryFunction, dtype: DType, stmt: Stmt) -> None:
        if function in OF_BITS and dtype.is_float:
            raise self.error(stmt, f"{function} of {dtype}; required integers or bool")
        if function in SHIFTS and (dtype.is_float or dtype is DType.BOOL):
            raise self.error(stmt, f"{function} of {dtype}; required integers")
        allowed = function in OF_BITS or function in COMPARISONS
        extremes = (BinaryFunction.MIN, BinaryFunction.MAX)
        if (
            dtype is DType.BOOL
            and isinstance(function, BinaryFunction)
            and not (allowed or function in extremes)
        ):
            raise self.error(stmt, f"{function} of bool; cast to an integer")

    def invoke(self, stmt: Invoke, scope: _Scope) -> None:
        intrinsic = self.intrinsics.get(stmt.intrinsic)
        if intrinsic is not None:
            intrinsic.check(stmt)
        for number, region in enumerate(stmt.operands):
            writes = intrinsic is not None and number >= len(intrinsic.meaning.inputs)
            self.use(region.buffer, stmt, scope, writes=writes)
            if not len(region.start) == len(region.shape) == len(region.buffer.shape):
                raise self.error(stmt, f"the region of {region.buffer.name} has a wrong rank")

    def indices(self, body: Stmt) -> None:
        for access in accesses(body, Bounds(), self.intrinsics):
            if not access.bounds.empty:
                self.in_range(access)

    def in_range(self, access: Access) -> None:
        for axis, (form, size) in enumerate(zip(access.index, access.buffer.shape, strict=True)):
            low, high = access.bounds.lower(form), access.bounds.upper(form)
            if (low < 0 or high >= size) and not (self.trust_data and _of_data(access, form)):
                raise self.error(
                    access.statement,
                    f"index {expr_to_text(form.to_expr())} of {access.buffer.name}, dimension "
                    f"{axis}, may be {low} to {high}; required 0 to {size - 1}; guard or clamp it",
                )

    def races(self, stmt: Stmt, bounds: Bounds) -> None:
        """Every loop whose iterations run at once, wherever it is."""
        match stmt:
            case For(variable=name, extent=extent, body=body):
                conflict = race(stmt, bounds, self.intrinsics)
                if conflict is not None:
                    raise self.error(
                        stmt, f"iterations touch the same element of {describe(conflict)}"
                    )
                inside = bounds.loop(name, Simplifier(bounds).expr(extent))
                self.races(body, inside.surviving(body))
            case If(condition=condition, then=then, otherwise=otherwise):
                test = Simplifier(bounds).expr(condition)
                self.races(then, bounds.where(test))
                if otherwise is not None:
                    self.races(otherwise, bounds.where(test, False))
            case _:
                if any(isinstance(each, For) for each in walk(stmt)):
                    for body in bodies(stmt):
                        self.races(body, bounds.surviving(stmt))


def _verify_held(name: str, buffer: Buffer) -> None:
    held = SCRATCHPADS.get(buffer.scope)
    if held is not None and buffer.dtype not in held:
        raise GraphError(
            f"{name}: buffer {buffer.name} is {buffer.dtype} in {buffer.scope}, which holds "
            f"{' or '.join(held)}"
        )


def _of_data(access: Access, form: Linear) -> bool:
    """True if an index depends on elements of buffers, maybe by way of a ``Let``."""
    known = {loop.variable for loop in access.loops} | access.within
    return any(
        isinstance(node, Load) or (isinstance(node, Variable) and node.name not in known)
        for atom in form.terms
        for node in expressions(atom)
    )
