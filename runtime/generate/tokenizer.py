"""Tokenizers: text to a model's tokens, and back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ..errors import InputError

__all__ = ["Bytes", "TextReader", "Tokenizer", "open_tokenizer"]


class Tokenizer(Protocol):
    """Text to tokens and back; satisfied structurally."""

    @property
    def size(self) -> int:
        """Tokens are from 0 to below this."""
        ...

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end a text."""
        ...

    def encode(self, text: str) -> list[int]:
        """The tokens of a text's beginning, with the token before them that begins any text."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens that stand together; parts of characters as U+FFFD."""
        ...


class Bytes:
    """The bytes of UTF-8 as tokens; 0 begins a text, and ends it."""

    size = 256
    ends = frozenset([0])

    def encode(self, text: str) -> list[int]:
        """0, and the bytes."""
        return [0, *text.encode()]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of bytes; 0 has none."""
        return bytes(each for each in tokens if each).decode(errors="replace")


class TextReader:
    """Gives the text of tokens as they come, in whole characters.

    Each piece is what new tokens change in the text of the last ones: what a token says can depend
    on the one before it.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._before: list[int] = []
        self._new: list[int] = []

    def add(self, tokens: Sequence[int]) -> str:
        """The text of more tokens, and of those before that were part of a character."""
        self._new += tokens
        text = self.rest()
        if text.endswith("\N{REPLACEMENT CHARACTER}"):
            return ""
        self._before, self._new = self._new, []
        return text

    def rest(self) -> str:
        """The text of tokens that no ``add`` has given yet."""
        known = self._tokenizer.decode(self._before)
        return self._tokenizer.decode(self._before + self._new)[len(known) :]


def open_tokenizer(path: Path | str | None) -> Tokenizer:
    """The tokenizer in a file: ``.bin`` of llama2.c, or ``tokenizer.json`` of Hugging Face.  None:
    ``Bytes``.

    Raises InputError for other files and damaged ones, and where a package is not installed.
    """
    if path is None:
        return Bytes()
    path = Path(path)
    if path.suffix == ".bin":
        from .llama2 import Llama2

        return Llama2.load(path)
    if path.suffix == ".json":
        from .hugging_face import HuggingFace

        return HuggingFace(path)
    raise InputError(
        f"tokenizer {path}; required a file of llama2.c (.bin) or of Hugging Face (tokenizer.json)"
    )
