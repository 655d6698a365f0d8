"""Graphs as text; ``parse`` reads it back.

    input "x": int8[1, 8, 8, 3]
    constant "w": int8[2] = [1, -2]
    constant "v": int8[16, 3, 3, 3] sha256 0123456789abcdef
    node "y": int32[1, 8, 8, 16] = Conv2d(strides=(1, 1), ...)("x", "v", "b") from "conv"
    node "v": float32[4, 2], "p": int64[4, 2] = Sort(count=2, descending=True)("s") from "sort"
    output "y"

Names are JSON strings, attributes Python literals, graphs among them strings of their text.
Constants of at most 16 elements are written out; of others the text holds a digest, and the parser
is given the arrays.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import Protocol

import numpy as np

from .operators.protocol import Array, TensorOperator
from .types import TensorType

__all__ = ["INLINE_ELEMENTS", "digest", "to_text"]

INLINE_ELEMENTS = 16
"""Constants of at most as many elements are written out."""


class _Node(Protocol):
    @property
    def operator(self) -> TensorOperator: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def origin(self) -> str: ...


class _Graph(Protocol):
    """The part of ``ir.Graph`` that the printer reads; ``Graph`` prints itself by this module."""

    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def nodes(self) -> Sequence[_Node]: ...
    @property
    def constants(self) -> Mapping[str, Array]: ...
    @property
    def types(self) -> Mapping[str, TensorType]: ...


def to_text(graph: _Graph) -> str:
    """The graph, one line an input, constant, node and output."""
    lines = [f"input {_name(name)}: {graph.types[name]}" for name in graph.inputs]
    for name, array in graph.constants.items():
        lines.append(f"constant {_name(name)}: {graph.types[name]} {_contents(array)}")
    for node in graph.nodes:
        arguments = ", ".join(map(_name, node.inputs))
        results = ", ".join(f"{_name(name)}: {graph.types[name]}" for name in node.outputs)
        call = f"{_operator(node.operator)}({arguments})"
        lines.append(f"node {results} = {call} from {_name(node.origin)}")
    lines += [f"output {_name(name)}" for name in graph.outputs]
    return "\n".join(lines)


def _name(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _operator(operator: TensorOperator) -> str:
    pairs = ", ".join(f"{f.name}={_plain(getattr(operator, f.name))!r}" for f in fields(operator))
    return f"{type(operator).__name__}({pairs})"


def _plain(value: object) -> object:
    """Enums by their values, graphs by their text."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value if isinstance(value, str | int | float | None) else str(value)


def _contents(array: Array) -> str:
    if array.size <= INLINE_ELEMENTS:
        return f"= {array.tolist()!r}"
    return f"sha256 {digest(array)}"


def digest(array: Array) -> str:
    """The first 16 digits of the SHA-256 of the elements, little-endian."""
    ordered = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return hashlib.sha256(ordered.tobytes()).hexdigest()[:16]
