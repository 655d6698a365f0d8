"""From an exported program and the sizes of its inputs to graph operators."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.ir import GraphBuilder
from ...pipeline.limits import Budget
from ..faults import faults_of
from .cells import Cell
from .context import Context, Value
from .forms import plain
from .schema import Argument, Node, Program, Spec, element_type
from .symbols import evaluate
from .table import CONVERTERS, IGNORED
from .views import VIEWS
from .weights import Weights

__all__ = ["Result", "convert_program"]

RENAMED = {
    "self": "x",
    "input": "x",
    "min": "low",
    "max": "high",
    "N": "n",
    "C": "c",
    "HxW": "hxw",
    "ord": "order",
    "sorted": "in_order",
}
"""Arguments of the schema that are called otherwise in converters."""

STORED = ("parameter", "buffer", "tensor_constant")
"""Kinds of inputs whose values are in the archive."""


@frozen
class Result:
    """A program's outputs by name, its nodes' operators, and what it writes to.

    tensors: names of the graph's tensors in the program.  changed: inputs that are written to, by
    the names of their buffers or inputs.
    """

    outputs: tuple[tuple[str, Term], ...]
    kinds: Mapping[str, str]
    tensors: Mapping[str, str]
    changed: frozenset[str]


def convert_program(
    program: Program,
    weights: Weights,
    builder: GraphBuilder,
    inputs: Mapping[str, str],
    sizes: Mapping[str, int],
    budget: Budget,
) -> Result:
    """Add a program to ``builder``.

    inputs: the graph's inputs, by the tensors of the program that they are.  sizes: of symbols.
    Raises ModelError for a malformed program, UnsupportedOperatorError for an operator or a type
    that there is no code for, each naming the node; CompileLimitError.
    """
    walker = _Walker(Context(builder, budget=budget), program, weights, sizes)
    for spec in program.inputs:
        walker.declare(spec, inputs)
    for node in program.nodes:
        walker.node(node)
    walker.context.origin = ""
    return walker.result()


@dataclass(slots=True)
class _Walker:
    """Converts nodes in order; ``values``: what names of the program stand for."""

    context: Context
    program: Program
    weights: Weights
    sizes: Mapping[str, int]
    values: dict[str, Any] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    """Names of parameters, buffers and constants that are not read yet, by their tensors."""
    kinds: dict[str, str] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)

    def declare(self, spec: Spec, inputs: Mapping[str, str]) -> None:
        """Make an input known."""
        kind, name = spec.argument.kind, spec.tensor
        if spec.kind in ("token", "custom_obj"):
            raise UnsupportedOperatorError(f"input {name!r} is a {spec.kind}; required tensors")
        if not name:
            return
        if name in self.values or name in self.stored:
            raise ModelError(f"input {name!r} is defined twice")
        if name in inputs:
            self.values[name] = Cell(Term(self.context, self.context.tensor(inputs[name])))
        elif spec.kind in STORED:
            self.stored[name] = spec.target
        elif kind == "as_sym_int" and name in self.sizes:
            self.values[name] = self.sizes[name]
        elif kind != "as_none":
            raise UnsupportedOperatorError(f"input {name!r} is {kind}; required tensors")

    def cell(self, name: object) -> Cell:
        """The tensor called ``name``.  Raises ModelError when there is none."""
        if isinstance(name, str) and name in self.stored:
            array = self.weights[self.stored.pop(name)]
            self.values[name] = Cell(Term(self.context, self.context.constant(array)))
        found = self.values.get(name) if isinstance(name, str) else None
        if not isinstance(found, Cell):
            raise ModelError(
                f"{self.context.where} reads {name!r}, which no node before it computes"
            )
        return found

    def node(self, node: Node) -> None:
        """Convert one node; its outputs become known."""
        context = self.context
        context.origin = node.name
        context.budget.step(str(node))
        target = node.target.removeprefix("torch.ops.")
        self.kinds[node.name] = ".".join(target.split(".")[:2])
        if target in IGNORED or self.kinds[node.name] in IGNORED:
            return
        with faults_of(node, node.name):
            context.declared = tuple(self.declared(each) for each in node.outputs)
            self.call(node, target)

    def call(self, node: Node, target: str) -> None:
        """Convert a call, and what it means for tensors that are written to or looked at."""
        plain = ".".join(target.split(".")[:2])
        converter, writes = CONVERTERS.get(target) or CONVERTERS.get(plain), False
        if converter is None and plain.endswith("_") and not plain.endswith("__"):
            overload = target.removeprefix(plain)
            plain, writes = plain[:-1], True
            converter = CONVERTERS.get(plain + overload) or CONVERTERS.get(plain)
        if converter is None:
            raise UnsupportedOperatorError(
                f"{node}: operator {target} is not supported; program.run_decompositions(), before "
                "it is saved, may express it by others"
            )
        arguments = {
            RENAMED.get(name, name): self.value(argument) for name, argument in node.inputs
        }
        first = node.inputs[0][1] if node.inputs else Argument("as_none", True)
        base = self.cell(first.value.get("name")) if first.kind == "as_tensor" else None
        if plain == "aten.as_strided":
            self.requireplain(str(first.value.get("name")))
        result = converter(self.context, **arguments)
        if writes and base is not None and isinstance(result, Term):
            old = base.read()
            base.write(result.cast(old.dtype).expand(*old.shape))
            self.bind(node.outputs[0], base)
            return
        results = result if len(node.outputs) > 1 else (result,)
        if not isinstance(results, tuple) or len(results) < len(node.outputs):
            raise ModelError(f"{node} has {len(node.outputs)} outputs")
        for place, (output, found) in enumerate(zip(node.outputs, results, strict=False)):
            if base is None or plain not in VIEWS:
                self.bind(output, found)
                continue
            parts = found if isinstance(found, tuple) else (found,)
            rest = dict(list(arguments.items())[1:])
            key = RENAMED.get(node.inputs[0][0], node.inputs[0][0])
            views = tuple(
                Cell.of_view(
                    each, base, _view(converter, self.context, key, rest, place, part, found)
                )
                for part, each in enumerate(parts)
            )
            self.bind(output, views if isinstance(found, tuple) else views[0])

    def requireplain(self, name: str) -> None:
        """Raise UnsupportedOperatorError unless a tensor is its storage, in row-major order."""
        meta = self.program.meta(name)
        strides = [prod(map(int, meta.sizes[n + 1 :])) for n in range(len(meta.sizes))]
        kept = [n for n, size in enumerate(meta.sizes) if size != 1]
        if meta.offset or any(meta.strides[n] != strides[n] for n in kept):
            raise UnsupportedOperatorError(
                f"{self.context.where}: as_strided of {name!r}, which is a part of its storage"
            )

    def value(self, argument: Argument) -> Value:
        """An argument's value."""
        given = argument.value
        match argument.kind:
            case "as_none":
                return None
            case "as_tensor":
                return self.cell(given.get("name")).read()
            case "as_tensors":
                return tuple(self.cell(each.get("name")).read() for each in given)
            case "as_optional_tensors" | "as_sym_ints" | "as_sym_floats" | "as_sym_bools":
                return tuple(self.member(each) for each in given)
            case "as_sym_int" | "as_sym_float" | "as_sym_bool" | "as_optional_tensor":
                return self.member(given)
            case "as_int" | "as_float" | "as_bool" | "as_string":
                return plain(argument.kind, given)
            case "as_ints" | "as_floats" | "as_bools" | "as_strings":
                return tuple(plain(argument.kind[:-1], each) for each in given)
            case "as_scalar_type":
                return element_type(given, argument.kind)
            case "as_memory_format" | "as_layout" | "as_device":
                return None
        raise UnsupportedOperatorError(f"{self.context.where}: an argument {argument.kind}")

    def member(self, given: Mapping[str, Any]) -> Value:
        """An element of a list: a tensor or nothing, a number or the name of one."""
        if "as_tensor" in given:
            return self.cell(given["as_tensor"].get("name")).read()
        if "as_none" in given:
            return None
        if "as_name" in given:
            found = self.values.get(given["as_name"])
            if not isinstance(found, int | float):
                raise ModelError(f"{self.context.where} reads {given['as_name']!r}, no number")
            return found
        ((kind, number),) = given.items()
        return plain(kind, number)

    def declared(self, output: Argument) -> DType | None:
        """The element type of an output that is a tensor, as the file says."""
        if output.kind != "as_tensor":
            return None
        return self.program.meta(output.value.get("name")).dtype

    def bind(self, output: Argument, result: Any) -> None:
        """Make a result known.  Raises ModelError when it is of another type than declared."""
        match output.kind:
            case "as_tensor":
                self.bind_tensor(output.value.get("name"), result)
            case "as_tensors":
                for each, part in zip(output.value, result, strict=True):
                    self.bind_tensor(each.get("name"), part)
            case "as_sym_int" | "as_sym_float" | "as_sym_bool":
                name = output.value.get("as_name")
                if name is not None:
                    self.values[name] = result
            case "as_none" | "as_int" | "as_float" | "as_bool":
                pass
            case kind:
                raise UnsupportedOperatorError(f"{self.context.where}: a result {kind}")

    def bind_tensor(self, name: object, result: Any) -> None:
        """As ``bind``."""
        if not isinstance(name, str):
            raise ModelError(f"{self.context.where}: a result has no name")
        if result is None:
            return  # What converters do not compute is not known to later nodes.
        cell = result if isinstance(result, Cell) else Cell(result)
        found, meta = cell.value.tensor.type, self.program.meta(name)
        wanted = [
            size if isinstance(size, int) else evaluate(size, self.sizes) for size in meta.sizes
        ]
        fits = len(wanted) == found.rank and all(
            size in (None, own) for size, own in zip(wanted, found.shape, strict=True)
        )
        if not fits or meta.dtype != found.dtype:
            raise ModelError(
                f"{self.context.where} ({self.kinds.get(self.context.origin)}) gives {found}; the "
                f"file says {meta.dtype}{list(meta.sizes)}"
            )
        if name in self.values or name in self.stored:
            raise ModelError(f"{self.context.where} defines {name!r} a second time")
        self.values[name] = cell
        self.tensors.setdefault(cell.value.tensor.name, name)

    def result(self) -> Result:
        """The outputs: the user's, then tensors that are written to, called NAME.updated."""
        user, updated = list[tuple[str, Term]](), dict[str, Term]()
        for spec in self.program.outputs:
            kind = spec.argument.kind
            if kind == "as_none" or kind in ("as_int", "as_float", "as_bool", "as_string"):
                continue
            if kind != "as_tensor":
                raise UnsupportedOperatorError(f"an output {kind}; required tensors")
            term = self.cell(spec.tensor).read()
            if spec.kind in ("user_output", "loss_output"):
                user.append((spec.tensor, term))
            elif spec.kind.endswith("_mutation"):
                updated[spec.target] = term
            else:
                raise UnsupportedOperatorError(f"an output that is a {spec.kind}")
        for spec in self.program.inputs:
            cell = self.values.get(spec.tensor)
            if isinstance(cell, Cell) and cell.writes:
                updated.setdefault(spec.target or spec.tensor, cell.read())
        outputs = (*user, *((f"{name}.updated", term) for name, term in updated.items()))
        return Result(outputs, self.kinds, self.tensors, frozenset(updated))


def _view(
    converter: Any, context: Context, key: str, rest: dict[str, Value], place: int, part: int,
    found: Any,
) -> Any:  # fmt: skip
    def view(base: Term) -> Term:
        result: Any = converter(context, **{key: base}, **rest)
        return result[part] if isinstance(found, tuple) else result

    return view
