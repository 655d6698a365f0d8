"""Tokenizers of Hugging Face, from ``tokenizer.json``, by their own package."""

from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError

__all__ = ["HuggingFace"]

ENDS = ("</s>", "<|endoftext|>", "<|im_end|>", "<|end|>", "<|eot_id|>", "<|end_of_text|>", "<eos>")
"""Names of tokens that end a text, where the vocabulary has them: the file does not say which."""


class HuggingFace:
    """A ``tokenizer.json``; see ``Tokenizer``."""

    def __init__(self, path: Path) -> None:
        """Raises InputError when the file cannot be read, or the package is not installed."""
        try:
            from tokenizers import Tokenizer
        except ModuleNotFoundError:
            raise InputError(
                f"{path} is read with tokenizers, which is not installed; "
                "install the extra: pip install 'dovetail[generate]'"
            ) from None
        try:
            self._own = Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except Exception as error:  # The package raises no class of its own.
            raise InputError(f"cannot read tokenizer {path}: {error}") from None
        self.ends = frozenset(
            token for name in ENDS if (token := self._own.token_to_id(name)) is not None
        )

    @property
    def size(self) -> int:
        """The number of tokens, those that were added later included."""
        return int(self._own.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """As the file's steps say, with the tokens that they put before a text; a token that they
        put behind it is left out.
        """
        tokens = list(self._own.encode(text).ids)
        while len(tokens) > 1 and tokens[-1] in self.ends:
            tokens.pop()
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """The text, without special tokens."""
        return str(self._own.decode(list(tokens)))
