"""A model with its caches: one token after another in, logits out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accelerator.part import AcceleratorPart
from ..errors import InputError
from ..result import RunResult
from ..session import Session
from .blocks import Blocks
from .roles import Named, Roles, find_roles

__all__ = ["Decoder"]

Array = NDArray[Any]


class Decoder:
    """A session of a model that takes one token a run, and what the host keeps between its runs.

    Attributes: ``session``, ``roles``, ``position`` (of the next token; those before it are in the
    caches), ``last`` (all that is known about the last run, None before it), ``blocks`` (reads
    several tokens at once, or None).
    """

    def __init__(
        self, session: Session, named: Named | None = None, blocks: Session | None = None
    ) -> None:
        """named: what the model's tensors are for, where their names do not say it.

        blocks: of the model that ``dovetail compile --tokens`` makes of this one.
        Raises ModuleError for a model that is not one of single tokens with caches, and where
        ``blocks`` is not one of this model.
        """
        self.session = session
        self.roles: Roles = find_roles(session.inputs, session.outputs, named)
        self.blocks = None if blocks is None else Blocks(blocks, session, self.roles)
        self.last: RunResult | None = None
        self.reset()

    @property
    def launches(self) -> int:
        """Programs of the accelerator that a run starts."""
        return sum(isinstance(each, AcceleratorPart) for each in self.session.module.parts)

    @property
    def clock_hz(self) -> int | None:
        """The accelerator's clock; None where there is no accelerator."""
        clocks = (
            each.configuration.clock_hz
            for each in self.session.module.parts
            if isinstance(each, AcceleratorPart)
        )
        return next(clocks, None)

    @property
    def is_full(self) -> bool:
        """True if the caches hold no further position."""
        capacity = self.roles.capacity
        return capacity is not None and self.position >= capacity

    def reset(self) -> None:
        """Begin a text: forget all tokens."""
        self.position = 0
        self._caches = {each.past.name: each.empty() for each in self.roles.caches}

    def step(self, token: int) -> Array:
        """Run the model on ``token`` and keep what it adds to the caches.

        Gives float[vocabulary]: the logits of the token that follows.
        Raises InputError for a token that is not in the vocabulary, and where the caches are full;
        what ``Session.run`` raises.
        """
        roles = self.roles
        self._require(token)
        if self.is_full:
            raise InputError(f"the caches hold {roles.capacity} positions, and all are taken")
        result = self.session.run(self.inputs(token))
        self.keep(result.outputs)
        self.last = result
        return result.outputs[roles.logits.name].reshape(-1)

    def keep(self, outputs: Mapping[str, Array]) -> None:
        """Add a run's results, ``outputs`` by name, to the caches as those of the next position."""
        for each in self.roles.caches:
            past, new = self._caches[each.past.name], outputs[each.new.name]
            self._caches[each.past.name] = each.after(past, new, self.position)
        self.position += 1

    def read(self, tokens: Sequence[int]) -> int:
        """Run as many of ``tokens``, which follow, as a block takes; keep what they add to the
        caches.

        Gives how many these are: 0 where ``step`` is as fast, or there are no blocks.
        Raises InputError for tokens that are not in the vocabulary; what ``Session.run`` raises.
        """
        for token in tokens:
            self._require(token)
        if self.blocks is None:
            return 0
        read = tokens[: self.blocks.size]
        if not self.blocks.fits(self.position, len(read)):
            return 0
        self.last = self.blocks.read(self._caches, read, self.position)
        self.position += len(read)
        return len(read)

    def _require(self, token: int) -> None:
        """Raises InputError for a token that is not in the vocabulary."""
        if not 0 <= token < self.roles.vocabulary:
            raise InputError(f"token {token}; the model's are 0 to {self.roles.vocabulary - 1}")

    def inputs(self, token: int) -> dict[str, Array]:
        """Inputs of a run on ``token``, by the names of the model's inputs."""
        roles = self.roles
        found = dict(self._caches)
        for tensor, value in ((roles.token, token), (roles.position, self.position)):
            if tensor is not None:
                found[tensor.name] = np.full([1] * len(tensor.shape), value, tensor.dtype)
        if roles.mask is not None:
            shape = [1] * (len(roles.mask.shape) - 1)
            seen = roles.seen(self.position).astype(roles.mask.dtype)
            found[roles.mask.name] = seen.reshape(*shape, -1)
        return found
