"""The words of the text of loop programs."""

import json
import re

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from ..errors import GraphError
from .text import RESERVED

__all__ = ["Line", "Token"]

TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>-?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|inf(?![\w.]))|nan(?![\w.]))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)"
    r"|(?P<sign>//|<=|==|!=|[-+*/%<=&|()\[\]{},:]))"
)
"""The printer puts a space after a subtraction's sign, so that no number starts with it."""


@frozen
class Token:
    kind: str
    text: str

    def __str__(self) -> str:
        return self.text


class Line:
    """The tokens of a line, consumed from the left."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.indent = len(text) - len(text.lstrip(" "))
        self.tokens: list[Token] = []
        self.position = 0
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if found is None or found.lastgroup is None:
                raise self.error(f"found {text[at:].strip()[:20]!r}; required a name or a sign")
            token = Token(found.lastgroup, found.group(found.lastgroup))
            at = found.end()
            self.tokens.append(token)

    def error(self, message: str) -> GraphError:
        return GraphError(f"line {self.number}: {message}")

    def peek(self) -> str:
        """The next token, or nothing at the end; of a string, its quotes too."""
        return self.tokens[self.position].text if self.position < len(self.tokens) else ""

    def take(self) -> Token:
        if self.position == len(self.tokens):
            raise self.error("ends too early")
        self.position += 1
        return self.tokens[self.position - 1]

    def accept(self, text: str) -> bool:
        if self.peek() == text:
            self.position += 1
            return True
        return False

    def require(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"found {self.peek() or 'the end'!r}; required {text!r}")

    def name(self) -> str:
        token = self.take()
        if token.kind == "string":
            self.position -= 1
            return self.string()
        if token.kind != "name" or token.text in RESERVED:
            raise self.error(f"found {token.text!r}; required a name")
        return token.text

    def string(self) -> str:
        """The next token, which is a JSON string, read."""
        token = self.take()
        try:
            return str(json.loads(token.text))
        except ValueError:
            raise self.error(f"{token.text} is not a JSON string") from None

    def integer(self) -> int:
        token = self.take()
        if token.kind != "number" or not token.text.lstrip("-").isdigit():
            raise self.error(f"found {token.text!r}; required an integer")
        return int(token.text)

    def dtype(self) -> DType:
        token = self.take()
        if token.text not in set(DType):
            raise self.error(f"found {token.text!r}; required a dtype")
        return DType(token.text)

    def end(self) -> None:
        if self.position < len(self.tokens):
            raise self.error(f"found {self.peek()!r}; required the end of the line")
