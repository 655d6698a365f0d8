"""Python functions to LLVM: the statements, and all functions that are needed."""

import ast
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any

import llvmlite.ir as ir

from .expressions import Expressions, global_names
from .kinds import INT, Scalar, Value, kind_of
from .language import Native
from .library import Substitute
from .words import Words

__all__ = ["translate"]


def translate(
    functions: Iterable[Native], words: Words | None, own: Substitute | None = None
) -> ir.Module:
    """A module with ``functions``, by the names of their modules and their own, and all they call.

    words: of the core; None when nothing has to do with lanes.  own: a function in place of one
    that is called.
    Raises TranslationError for what is not of the language.
    """
    module = _Module(words, own)
    for function in functions:
        module.function(function).linkage = ""
    while module.pending:
        source, target = module.pending.pop()
        _Body(module, source, target).emit()
    return module.ir


class _Module:
    def __init__(self, words: Words | None, own: Substitute | None) -> None:
        self.ir, self.words, self.own = ir.Module("native"), words, own
        self.known: dict[Native, Any] = {}
        self.pending: list[tuple[Native, Any]] = []

    def function(self, source: Native) -> Any:
        """The LLVM function of ``source``, or of what it means; its body may be pending."""
        if self.own and source is self.own.declared:
            source = self.own.means
        if source not in self.known:
            types = Expressions(ir.IRBuilder(), global_names(source), self.words, self.function)
            annotations = dict(source.__annotations__)
            result = types.type_of(kind_of(annotations.pop("return")))
            kinds = [types.type_of(kind_of(annotation)) for annotation in annotations.values()]
            name = f"{source.__module__}.{source.__name__}"
            target = ir.Function(self.ir, ir.FunctionType(result, kinds), name)
            target.linkage = "internal"
            self.known[source] = target
            self.pending.append((source, target))
        return self.known[source]


class _Body:
    """The statements of one function."""

    def __init__(self, module: _Module, source: Native, target: Any) -> None:
        self.source = source
        tree = ast.parse(textwrap.dedent(inspect.getsource(source))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        self.tree = tree
        self.entry = ir.IRBuilder(target.append_basic_block("entry"))
        self.b = ir.IRBuilder(target.append_basic_block("body"))
        self.e = Expressions(self.b, global_names(source), module.words, module.function)
        annotations = dict(source.__annotations__)
        self.result = kind_of(annotations.pop("return"))
        assigned = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for value, (name, annotation) in zip(target.args, annotations.items(), strict=True):
            argument = Value(kind_of(annotation), value)
            if name in assigned:
                self._assign_name(name, self._as_int(argument))
            else:
                self.e.arguments[name] = argument
        self.loops: list[tuple[Any, Any]] = []
        """Where ``continue`` and ``break`` go, for each loop around."""

    def emit(self) -> None:
        self._block(self.tree.body)
        if not self.b.block.is_terminated:
            if self.result is Scalar.NOTHING:
                self.b.ret_void()
            else:
                self.b.unreachable()
        self.entry.branch(self.b.function.basic_blocks[1])

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)
            if self.b.block.is_terminated:
                return

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=effect):
                self.e.emit(effect)
            case ast.Assign(targets=[ast.Tuple(elts=places)], value=ast.Tuple(elts=sources)):
                values = [self.e.emit(source) for source in sources]
                for place, value in zip(places, values, strict=True):
                    self._assign(place, value)
            case ast.Assign(targets=targets, value=source):
                value = self.e.emit(source)
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as source):
                self._assign(target, self.e.emit(source))
            case ast.AugAssign(target=target, op=op, value=source):
                before = self.e.emit(_as_load(target))
                self._assign(target, self.e.binary(node, before, op, self.e.emit(source)))
            case ast.Return(value=None):
                self.b.ret_void()
            case ast.Return(value=ast.expr() as source):
                value = self.e.emit(source)
                self.b.ret(self.e.convert(value, self.e.type_of(self.result)))
            case ast.If():
                self._if(node)
            case ast.While():
                self._while(node)
            case ast.For():
                self._for(node)
            case ast.Break():
                self.b.branch(self.loops[-1][1])
            case ast.Continue():
                self.b.branch(self.loops[-1][0])
            case ast.Pass():
                pass
            case _:
                raise self.e.refuse(node, "no such statement")

    def _as_int(self, value: Value) -> Value:
        """A bool as the int that variables keep."""
        if value.kind is Scalar.BOOL:
            return Value(Scalar.INT, self.b.zext(value.ir, INT))
        return value

    def _assign(self, target: ast.expr, value: Value) -> None:
        value = self._as_int(value)
        match target:
            case ast.Name(id=name):
                self._assign_name(name, value)
            case ast.Attribute(value=base):
                self.e.store(self.e.slot(target, self.e.emit(base)), value)
            case ast.Subscript():
                self.e.store(self.e.place(target), value)
            case _:
                raise self.e.refuse(target, "cannot be assigned to")

    def _assign_name(self, name: str, value: Value) -> None:
        local = self.e.locals.get(name)
        if local is None:
            kept = self.entry.alloca(self.e.type_of(value.kind), name=name)
            local = self.e.locals[name] = Value(value.kind, kept)
        elif local.kind != value.kind:
            raise self.e.refuse(self.tree, f"{name} changes its kind")
        self.b.store(value.ir, local.ir)

    def _if(self, node: ast.If) -> None:
        then, end = self.b.append_basic_block("then"), self.b.append_basic_block("end")
        other = self.b.append_basic_block("else") if node.orelse else end
        self.b.cbranch(self.e.condition(node.test), then, other)
        self.b.position_at_end(then)
        self._block(node.body)
        self._go(end)
        if node.orelse:
            self.b.position_at_end(other)
            self._block(node.orelse)
            self._go(end)
        self.b.position_at_end(end)

    def _go(self, block: Any) -> None:
        if not self.b.block.is_terminated:
            self.b.branch(block)

    def _while(self, node: ast.While) -> None:
        names = ("while", "repeat", "done")
        test, body, end = (self.b.append_basic_block(name) for name in names)
        self.b.branch(test)
        self.b.position_at_end(test)
        self.b.cbranch(self.e.condition(node.test), body, end)
        self.b.position_at_end(body)
        self.loops.append((test, end))
        self._block(node.body)
        self.loops.pop()
        self._go(test)
        self.b.position_at_end(end)

    def _for(self, node: ast.For) -> None:
        """``for name in range(...)``; the name is not to be assigned in the body."""
        match node:
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range"), args=[*arguments]),
                orelse=[],
            ) if len(arguments) in (1, 2):
                bounds = [self.e.integer(argument).ir for argument in arguments]
            case _:
                raise self.e.refuse(node, "only range with one or two bounds")
        first, last = bounds if len(bounds) == 2 else (INT(0), bounds[0])
        self._assign_name(name, Value(Scalar.INT, first))
        counter = self.e.locals[name].ir
        names = ("for", "repeat", "next", "done")
        test, body, step, end = (self.b.append_basic_block(name) for name in names)
        self.b.branch(test)
        self.b.position_at_end(test)
        self.b.cbranch(self.b.icmp_signed("<", self.b.load(counter, typ=INT), last), body, end)
        self.b.position_at_end(body)
        self.loops.append((step, end))
        self._block(node.body)
        self.loops.pop()
        self._go(step)
        self.b.position_at_end(step)
        self.b.store(self.b.add(self.b.load(counter, typ=INT), INT(1)), counter)
        self.b.branch(test)
        self.b.position_at_end(end)


def _as_load(target: ast.expr) -> ast.expr:
    """``target`` as it is read."""
    result = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(result, target)
