"""Operands and attributes that ONNX allows for operators.

A converter takes what it knows, and computes with whatever numbers it is given.  An attribute or an
operand that the operator does not have, or one of another type, is a mistake in the model all the
same: other runtimes refuse it, and what it was meant to say would go unheard.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, repeat

import onnx

from dovetail.isa.frozen import frozen

from ...errors import ModelError
from .context import Tensor, Value
from .element_types import ELEMENT_TYPES
from .narrow import NARROW_TYPES
from .node import OnnxNode

__all__ = ["require_schema"]

NAMES: Mapping[object, str] = {
    kind: f"tensor({onnx.TensorProto.DataType.Name(number).lower()})"
    for number, kind in chain(ELEMENT_TYPES.items(), NARROW_TYPES.items())
}
"""Types as ONNX's schemas name them."""

AS_ONNX = ("QuantizeLinear", "DequantizeLinear")
"""Operators of ONNX Runtime's own domain, which has no schemas here, that ONNX has as well."""

INTERNAL = "__"
"""Attributes whose names begin so are a runtime's own notes."""


@frozen
class _Schema:
    """operands: of each, what stands for its type, "" where it is like no other's, and the types it
    may have.  most: of them; the last may stand for several.  required: attributes without which
    a node means nothing.
    """

    operands: tuple[tuple[str, frozenset[str]], ...]
    most: int
    attributes: frozenset[str]
    required: tuple[str, ...]


def require_schema(node: OnnxNode, opset: int, inputs: Sequence[Value | None]) -> None:
    """Raise ModelError for an attribute or an operand that the operator does not have in ``opset``,
    a missing attribute that it must have, an operand of a type that it may not have there, or of
    another type than an operand before that it must be like.

    Sequences and optionals are the converters' matter, and operators without a schema.
    """
    schema = _schema(node.kind, node.domain, opset)
    if schema is None:
        return
    for name in node.attributes:
        if name not in schema.attributes and not name.startswith(INTERNAL):
            known = ", ".join(sorted(schema.attributes)) or "none"
            raise ModelError(
                f"{node}: attribute {name!r}; in opset {opset} there are: {known}; "
                "leave it out, or change the opset"
            )
    if len(inputs) > schema.most:
        raise ModelError(
            f"{node}: {len(inputs)} inputs; in opset {opset} there are at most {schema.most}"
        )
    operands = chain(schema.operands, repeat(schema.operands[-1])) if schema.operands else ()
    alike: dict[str, tuple[str, str]] = {}
    for name, value, (variable, types) in zip(node.inputs, inputs, operands, strict=False):
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
    for name in schema.required:
        if name not in node.attributes:
            raise ModelError(
                f"{node}: attribute {name!r} is missing; in opset {opset} it is required; give it"
            )


@cache
def _schema(kind: str, domain: str, opset: int) -> _Schema | None:
    try:
        if domain == "com.microsoft" and kind in AS_ONNX:
            schema = onnx.defs.get_schema(kind)
        else:
            schema = onnx.defs.get_schema(kind, opset, "" if domain == "ai.onnx" else domain)
    except onnx.defs.SchemaError:
        return None
    operands = tuple(
        (each.type_str if each.is_homogeneous else "", frozenset(filter(_is_tensor, each.types)))
        for each in schema.inputs
    )
    attributes = schema.attributes
    required = tuple(name for name, each in attributes.items() if each.required)
    return _Schema(operands, schema.max_input, frozenset(attributes), required)


def _is_tensor(name: str) -> bool:
    return name.startswith("tensor(")


def _short(name: str) -> str:
    return name.removeprefix("tensor(").removesuffix(")")
