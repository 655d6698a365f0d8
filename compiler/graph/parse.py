"""Reads the text of graphs that ``text`` prints."""

import ast
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..errors import GraphError
from .ir import Array, Graph, Node
from .operators.repetition import Repeat
from .operators.table import OPERATORS
from .text import digest
from .types import TensorType

__all__ = ["parse_text"]


def parse_text(text: str, constants: Mapping[str, Array] | None = None) -> Graph:
    """The graph that ``to_text`` printed.

    constants: the arrays that the text only gives digests of; others are ignored.
    Raises GraphError, naming the line, for text of another form, a missing array or a wrong digest.
    """
    parser = _Parser(constants or {})
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            parser.line(line.strip())
        except (ValueError, KeyError, TypeError, SyntaxError, GraphError) as error:
            raise GraphError(f"line {number}: {error}: {line.strip()!r}") from None
    return Graph(
        tuple(parser.inputs),
        tuple(parser.outputs),
        tuple(parser.nodes),
        MappingProxyType(parser.constants),
        MappingProxyType(parser.types),
    )


class _Parser:
    """Reads line by line; ``rest`` is what remains of the current one."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}
        self.types: dict[str, TensorType] = {}
        self.rest = ""

    def line(self, line: str) -> None:
        """Read one line."""
        keyword, _, self.rest = line.partition(" ")
        match keyword:
            case "input":
                self.inputs.append(self._typed_name())
            case "output":
                self.outputs.append(self._string())
            case "constant":
                self._constant()
            case "node":
                self._node()
            case _:
                raise GraphError(f"found {keyword!r}, required input, constant, node or output")
        if self.rest:
            raise GraphError(f"unexpected {self.rest!r} at the end")

    def _take(self, text: str) -> None:
        if not self.rest.startswith(text):
            raise GraphError(f"found {self.rest[:20]!r}, required {text!r}")
        self.rest = self.rest[len(text) :].lstrip()

    def _until(self, text: str) -> str:
        found, separator, rest = self.rest.partition(text)
        if not separator:
            raise GraphError(f"found {self.rest[:20]!r}, required {text!r} in it")
        self.rest = rest.lstrip()
        return found

    def _string(self) -> str:
        value, end = json.JSONDecoder().raw_decode(self.rest)
        if not isinstance(value, str):
            raise GraphError(f"found {value!r}, required a name in quotes")
        self.rest = self.rest[end:].lstrip()
        return value

    def _typed_name(self) -> str:
        name = self._string()
        if name in self.types:
            raise GraphError(f"{name!r} is defined a second time")
        self._take(":")
        dtype = self._until("[")
        shape = ast.literal_eval(f"({self._until(']')},)".replace("(,", "("))
        self.types[name] = TensorType(shape, dtype)
        return name

    def _constant(self) -> None:
        name = self._typed_name()
        kind = self.types[name]
        if self.rest.startswith("="):
            self._take("=")
            array = np.asarray(ast.literal_eval(self.rest), kind.dtype.numpy).reshape(kind.shape)
        else:
            self._take("sha256")
            array = np.array(self.arrays[name])
            if digest(array) != self.rest:
                raise GraphError(f"the array given for {name!r} has digest {digest(array)}")
        array.setflags(write=False)
        self.constants[name], self.rest = array, ""

    def _node(self) -> None:
        outputs = [self._typed_name()]
        while self.rest.startswith(","):
            self._take(",")
            outputs.append(self._typed_name())
        self._take("=")
        name = self._until("(")
        operator: Any = OPERATORS[name]
        call = ast.parse(f"f({self._attributes()})", mode="eval").body
        assert isinstance(call, ast.Call)
        values = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        if operator is Repeat:
            values["body"] = parse_text(values["body"], self.arrays)
        inputs = []
        self._take("(")
        while not self.rest.startswith(")"):
            inputs.append(self._string())
            if not self.rest.startswith(")"):
                self._take(",")
        self._take(")")
        self._take("from")
        extra = tuple(outputs[1:])
        self.nodes.append(
            Node(operator(**values), tuple(inputs), outputs[0], self._string(), extra)
        )

    def _attributes(self) -> str:
        """Up to the parenthesis that closes the attributes."""
        depth, quote, escaped = 1, "", False
        for place, character in enumerate(self.rest):
            if quote:
                quote = "" if character == quote and not escaped else quote
                escaped = character == "\\" and not escaped
                continue
            quote = character if character in "'\"" else ""
            depth += (character == "(") - (character == ")")
            if not depth:
                found, self.rest = self.rest[:place], self.rest[place + 1 :].lstrip()
                return found
        raise GraphError("an attribute list is not closed")
