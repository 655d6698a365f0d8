"""Where positions are in the rows of a block's scores, and which of them a token sees."""

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx

from dovetail.isa.frozen import frozen

from .places import ROWS, Emitter, Spread

__all__ = ["Slots"]


@frozen
class Slots:
    """tokens: of a block.  size: positions of the decoder's cache.  given: the input with each
    token's position, or, if ``masked``, with its mask: [tokens, size + 1].

    The decoder's rows have ``size + 1`` places: the positions before, and the token's own.  A
    block's have ``past`` positions of the cache, and then the block's tokens.
    """

    tokens: int
    size: int
    given: str
    masked: bool = False

    @property
    def past(self) -> int:
        """Positions of the block's cache."""
        return self.size + 1 - self.tokens

    def bias(self, emitter: Emitter, given: Spread, scores: Sequence[int]) -> Spread:
        """A bias of scores of the shape ``scores`` of one token, such as a mask, with the decoder's
        places along its last axis: of each token, as rows of the block's places.

        A token sees the positions before the block, those of the tokens before it, and its own.
        For all others stands the decoder's last position, which is masked in every run.
        """
        last, own, tokens, size = self.size - 1, self.size, self.tokens, self.size + 1
        *outer, rows, _ = (1,) * (len(scores) - len(given.shape)) + given.shape
        heads, count = prod(outer), tokens * scores[-2]
        token, row = np.divmod(np.arange(count)[:, None], scores[-2])
        other = np.arange(tokens)[None]
        behind = np.where(token == other, own, last)
        head = np.arange(heads)[:, None, None]
        number = (token * heads + head) * rows + row % rows
        first = self._first(emitter)
        columns = emitter.constant(np.arange(self.past), "tokens_columns")
        there = emitter.node("Less", (columns, first), "tokens_there")
        hidden = emitter.constant(np.array([last]), "tokens_hidden")
        before = emitter.node("Where", (there, columns, hidden), "tokens_before")
        offsets = emitter.constant(number * size, "tokens_offsets")
        before = emitter.node("Add", (before, offsets), "tokens_before")
        ahead = emitter.constant(np.broadcast_to(other < token, behind.shape), "tokens_ahead")
        steps = emitter.constant(np.arange(tokens), "tokens_steps")
        place = emitter.node("Add", (steps, first), "tokens_place")
        place = emitter.node(
            "Where", (ahead, place, emitter.constant(behind, "tokens_behind")), "tokens_place"
        )
        place = emitter.node("Add", (place, offsets), "tokens_place")
        index = emitter.node("Concat", (before, place), "tokens_index", axis=2)
        flat = emitter.reshape(emitter.front(given).name, (tokens * prod(given.shape),))
        picked = emitter.node("Gather", (flat, index), f"{given.name}_rows")
        picked = emitter.reshape(picked, (*outer, count, size))
        return Spread(emitter.bytes_of(picked, given.name), ROWS, (*outer, scores[-2], size))

    def _first(self, emitter: Emitter) -> str:
        """The position of the block's first token; a mask counts it, and those before."""
        zero, one = (emitter.constant(np.array([each]), "tokens_number") for each in (0, 1))
        first = emitter.node("Gather", (self.given, zero), "tokens_first")
        first = emitter.node("Cast", (first,), "tokens_first", to=onnx.TensorProto.INT64)
        if not self.masked:
            return first
        seen = emitter.node("ReduceSum", (first, one), "tokens_seen")
        return emitter.node("Sub", (seen, one), "tokens_first")
