"""Element types that ONNX allows for operands.

A converter computes with whatever numbers it is given.  A type that the operator does not have is a
mistake in the model all the same, and other runtimes would refuse it or give other results.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, repeat

import onnx

from ...errors import ModelError
from .context import Tensor, Value
from .element_types import ELEMENT_TYPES
from .narrow import NARROW_TYPES
from .node import OnnxNode

__all__ = ["require_types"]

NAMES: Mapping[object, str] = {
    kind: f"tensor({onnx.TensorProto.DataType.Name(number).lower()})"
    for number, kind in chain(ELEMENT_TYPES.items(), NARROW_TYPES.items())
}
"""Types as ONNX's schemas name them."""

AS_ONNX = ("QuantizeLinear", "DequantizeLinear")
"""Operators of ONNX Runtime's own domain, which has no schemas here, that ONNX has as well."""


def require_types(node: OnnxNode, opset: int, inputs: Sequence[Value | None]) -> None:
    """Raise ModelError for an operand of a type that the operator does not have in ``opset``, or
    of another type than an operand before that it must be like.  Sequences and optionals are the
    converters' matter."""
    alike: dict[str, tuple[str, str]] = {}
    for name, value, (variable, types) in zip(
        node.inputs, inputs, _operands(node.kind, node.domain, opset), strict=False
    ):
        if not (isinstance(value, Tensor) and types):
            continue
        found = NAMES[value.narrow or value.type.dtype]
        if found not in types:
            allowed = ", ".join(sorted(map(_short, types)))
            raise ModelError(
                f"{node}: input {name!r} is {_short(found)}; in opset {opset} it may be {allowed}; "
                "put a Cast before it"
            )
        other, wanted = alike.setdefault(variable, (name, found)) if variable else (name, found)
        if found != wanted:
            raise ModelError(
                f"{node}: input {name!r} is {_short(found)}, and input {other!r} is "
                f"{_short(wanted)}; required the same type; put a Cast before one of them"
            )


def _operands(kind: str, domain: str, opset: int) -> Iterator[tuple[str, frozenset[str]]]:
    """For each operand, what stands for its type, "" where it is like no other's, and the types it
    may have; nothing for an operator without a schema."""
    known, rest = _schema(kind, domain, opset)
    return chain(known, repeat(rest) if rest else ())


@cache
def _schema(
    kind: str, domain: str, opset: int
) -> tuple[
    tuple[tuple[str, frozenset[str]], ...],
    tuple[str, frozenset[str]] | None,
]:
    try:
        if domain == "com.microsoft" and kind in AS_ONNX:
            schema = onnx.defs.get_schema(kind)
        else:
            schema = onnx.defs.get_schema(kind, opset, "" if domain == "ai.onnx" else domain)
    except onnx.defs.SchemaError:
        return (), None
    operands = tuple(
        (each.type_str if each.is_homogeneous else "", frozenset(filter(_is_tensor, each.types)))
        for each in schema.inputs
    )
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    many = bool(operands) and schema.inputs[-1].option == variadic
    return operands, operands[-1] if many else None


def _is_tensor(name: str) -> bool:
    return name.startswith("tensor(")


def _short(name: str) -> str:
    return name.removeprefix("tensor(").removesuffix(")")
