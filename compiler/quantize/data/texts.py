"""Texts that a decoder reads token by token: each run's inputs, its caches too, are a sample."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from dovetail.runtime.generate.decoder import Decoder
from dovetail.runtime.generate.tokenizer import Tokenizer

from ...errors import CalibrationError
from ..signature import Sample
from .dataset import Source

__all__ = ["TEXTS", "ReadText", "text_source"]

TEXTS = (".txt",)
MOST_TOKENS = 4096
"""Tokens that are read of a file; each takes a run of the decoder, each time they are read."""

ReadText = Callable[[str, Path], Source]
"""The samples of a file, by its name and its path."""


def text_source(name: str, path: Path, decoder: Decoder, tokenizer: Tokenizer) -> Source:
    """A sample for each token of a text.

    A text that is longer than the caches is read in pieces, each from empty caches and with what
    begins any text in front; of one longer than ``MOST_TOKENS``, pieces evenly spread.
    Raises CalibrationError for a file that is not UTF-8, or without tokens of this model.
    """
    capacity = decoder.roles.capacity
    if capacity is None:
        raise CalibrationError(
            f"text {path} for caches of any length; required fixed ones: --dim NAME=SIZE"
        )
    try:
        tokens = tokenizer.encode(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationError(f"text {path}: {error}; required a file in UTF-8") from None
    begin, vocabulary = tokenizer.encode(""), decoder.roles.vocabulary
    if len(tokens) <= len(begin):
        raise CalibrationError(f"text {path} has no tokens")
    if max(tokens) >= vocabulary:
        raise CalibrationError(
            f"text {path} has token {max(tokens)}, and the model {vocabulary} tokens; required the "
            "tokenizer that the model was trained with: --tokenizer"
        )
    size = capacity - len(begin)
    if size < 1:
        raise CalibrationError(f"caches of {capacity} positions; required more than {len(begin)}")
    rest = tokens[len(begin) :]
    pieces = [[*begin, *rest[start : start + size]] for start in range(0, len(rest), size)]
    most = max(1, MOST_TOKENS // capacity)
    if len(pieces) > most:
        pieces = [pieces[place] for place in np.arange(most) * len(pieces) // most]

    def read(places: Sequence[int]) -> Iterator[Sample]:
        first = 0
        for piece in pieces:
            inside = [place - first for place in places if 0 <= place - first < len(piece)]
            yield from _samples(decoder, piece, inside)
            first += len(piece)

    return Source(name, sum(map(len, pieces)), read)


def _samples(decoder: Decoder, tokens: Sequence[int], places: Sequence[int]) -> Iterator[Sample]:
    """The inputs of the decoder's runs at some places of a text, in order."""
    decoder.reset()
    for place in range(max(places, default=-1) + 1):
        if place in places:
            # The decoder writes to its caches afterwards.
            yield {name: each.copy() for name, each in decoder.inputs(tokens[place]).items()}
        decoder.step(tokens[place])
