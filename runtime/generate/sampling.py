"""Choosing a token from logits."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

__all__ = ["Choose", "greedy", "sampler"]

Choose: TypeAlias = Callable[[NDArray[Any]], int]
"""Logits, float[vocabulary], to a token."""


def greedy(logits: NDArray[Any]) -> int:
    """The token with the largest logit, the first of equal ones."""
    return int(np.argmax(logits))


def sampler(temperature: float, seed: int = 0) -> Choose:
    """Tokens with the probabilities ``softmax(logits / temperature)``, the same for each seed.

    temperature: 0 is ``greedy``.  Raises InputError below 0.
    """
    if not 0 <= temperature < np.inf:
        raise InputError(f"temperature {temperature}; required 0 (the likeliest token) or more")
    if temperature == 0:
        return greedy
    rng = np.random.default_rng(seed)

    def choose(logits: NDArray[Any]) -> int:
        exact = logits.astype(np.float64)
        shares = np.exp((exact - exact.max()) / temperature)
        return int(rng.choice(len(shares), p=shares / shares.sum()))

    return choose
