"""Tokenizers of llama2.c: a vocabulary with scores, whose best pairs are merged.

The file (``export`` of llama2.c's ``tokenizer.py``): uint32, the length of the longest piece; then
for each token its score, float32, the length of its piece, int32, and the piece, UTF-8; all
little-endian.
"""

import struct
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError

__all__ = ["Llama2"]

BEGIN, END, FIRST_BYTE = 1, 2, 3
"""Tokens of SentencePiece: <unk>, <s>, </s>, and then the 256 bytes."""
HEAD = struct.Struct("<fi")


class Llama2:
    """A vocabulary with scores; see ``Tokenizer``.  A text ends at <s> or </s>."""

    ends = frozenset([BEGIN, END])

    def __init__(self, pieces: Sequence[bytes], scores: Sequence[float]) -> None:
        """pieces: of each token, as the file has them; scores: a higher one is merged first.

        Raises InputError for fewer tokens than the special ones and those of bytes.
        """
        if len(pieces) < FIRST_BYTE + 256:
            raise InputError(
                f"a vocabulary of {len(pieces)} tokens; required <unk>, <s>, </s>, 256 bytes"
            )
        self._scores = tuple(scores)
        self._known = {piece: token for token, piece in reversed(list(enumerate(pieces)))}
        singles = [bytes([each]) for each in range(256)]
        self._pieces = tuple(pieces)
        self._texts = (b"", b"", b"", *singles, *pieces[FIRST_BYTE + 256 :])

    @classmethod
    def load(cls, path: Path) -> "Llama2":
        """Read a file.

        Raises InputError when it cannot be read, or is not such a file.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read tokenizer {path}: {error.strerror}") from None
        pieces: list[bytes] = []
        scores: list[float] = []
        at = 4
        while at < len(data):
            begin = at + HEAD.size
            score, size = HEAD.unpack_from(data, at) if begin <= len(data) else (0.0, -1)
            at = begin + size
            if size < 0 or at > len(data):
                raise InputError(
                    f"{path} ends, or has a length of {size}, within token {len(pieces)}; "
                    "required a tokenizer of llama2.c"
                )
            pieces.append(data[begin:at])
            scores.append(score)
        return cls(pieces, scores)

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        """<s>, then the text with a space before it: its characters, or the bytes of those that the
        vocabulary does not have, merged as long as a pair is a token, the best-scored pair first.
        """
        tokens = [BEGIN]
        for each in f" {text}" if text else "":
            code = each.encode()
            own = self._known.get(code)
            tokens += [byte + FIRST_BYTE for byte in code] if own is None else [own]
        while True:
            best = max(self._merges(tokens), default=None)
            if best is None:
                return tokens
            _, place, merged = best
            tokens[-place : 2 - place] = [merged]

    def _merges(self, tokens: Sequence[int]) -> list[tuple[float, int, int]]:
        """Each pair that is a token: its score, its place (negative, so that the first of equal
        scores is the largest), and the token.
        """
        found = []
        for index in range(1, len(tokens) - 1):
            pair = self._pieces[tokens[index]] + self._pieces[tokens[index + 1]]
            merged = self._known.get(pair)
            if merged is not None:
                found.append((self._scores[merged], -index, merged))
        return found

    def decode(self, tokens: Sequence[int]) -> str:
        """The pieces; the space that follows <s> is left out, as llama2.c does."""
        text = b""
        for index, token in enumerate(tokens):
            piece = self._texts[token]
            begins = index > 0 and tokens[index - 1] == BEGIN
            text += piece.removeprefix(b" ") if begins else piece
        return text.decode(errors="replace")
