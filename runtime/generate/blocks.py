"""Prompts in blocks: a second model of a decoder, which reads several tokens a run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accelerator.part import AcceleratorPart
from ..errors import ModuleError
from ..result import RunResult
from ..session import Session
from ..tensors import TensorSignature
from .roles import Roles

__all__ = ["Blocks"]

Array = NDArray[Any]


class Blocks:
    """A session of the model that ``dovetail compile --tokens`` makes of a decoder.

    It takes the decoder's token, position, mask and caches, of ``size`` tokens at once and with
    fewer positions of the caches, ``past``; its outputs are the decoder's new rows, of each token.
    """

    def __init__(self, session: Session, decoder: Session, roles: Roles) -> None:
        """decoder: of single tokens; roles: what its tensors are for.

        Raises ModuleError for a model that was not made of this decoder.
        """
        self.session, self.roles = session, roles
        given = {each.name: each for each in session.inputs}
        made = {each.name: each for each in session.outputs}
        token = given.get(roles.token.name)
        first = given.get(roles.caches[0].past.name)
        axis = roles.caches[0].axis
        self.size = token.shape[0] if token and token.shape else 0
        self.past = first.shape[axis] if first and len(first.shape) > axis else 0
        each_token = (roles.token, roles.position, roles.mask)
        inputs = [_several(each, self.size) for each in each_token if each]
        for each in roles.caches:
            shape = list(each.past.shape)
            shape[each.axis] = self.past
            inputs.append(TensorSignature(each.past.name, tuple(shape), each.past.dtype))
        outputs = [
            TensorSignature(each.new.name, (self.size, *each.row), each.new.dtype)
            for each in roles.caches
        ]
        wanted = [{each.name: each for each in both} for both in (inputs, outputs)]
        if [given, made] != wanted or self.size < 2:
            listed = ", ".join(map(str, (*given.values(), *made.values())))
            raise ModuleError(
                f"a model for blocks of tokens with inputs and outputs {listed}; required what "
                "dovetail compile --tokens makes of the same decoder"
            )
        self.least = max(2, -(-_cycles(session) // max(_cycles(decoder), 1)))

    def fits(self, position: int, tokens: int) -> bool:
        """True if a run at ``position`` that reads so many tokens is possible, and takes no longer
        than the decoder.
        """
        return position <= self.past and tokens >= self.least

    def read(self, caches: Mapping[str, Array], tokens: Sequence[int], position: int) -> RunResult:
        """Run the model on up to ``size`` tokens, from ``position`` on.

        Their rows are written to ``caches``, which has the decoder's, by their inputs' names.
        Raises what ``Session.run`` raises.
        """
        roles, count = self.roles, len(tokens)
        # What stands behind the last token is read too, and its rows are not kept.
        filled = [*tokens, *[tokens[-1]] * (self.size - count)]
        last = (roles.capacity or 1) - 1
        places = np.minimum(np.arange(position, position + self.size), last)
        found: dict[str, Array] = {}
        for tensor, values in ((roles.token, filled), (roles.position, places)):
            if tensor is not None:
                shape = (self.size, *tensor.shape[1:])
                found[tensor.name] = np.array(values, tensor.dtype).reshape(shape)
        if roles.mask is not None:
            seen = np.stack([roles.seen(int(place)) for place in places])
            shape = (self.size, *roles.mask.shape[1:])
            found[roles.mask.name] = seen.astype(roles.mask.dtype).reshape(shape)
        for each in roles.caches:
            rows = np.moveaxis(caches[each.past.name], each.axis, 0)[: self.past]
            found[each.past.name] = np.ascontiguousarray(np.moveaxis(rows, 0, each.axis))
        result = self.session.run(found)
        for each in roles.caches:
            for number, new in enumerate(result.outputs[each.new.name][:count]):
                each.after(caches[each.past.name], new, position + number)
        return result


def _several(tensor: TensorSignature, count: int) -> TensorSignature:
    """An input of one element as one of several."""
    return TensorSignature(tensor.name, (count, *tensor.shape[1:]), tensor.dtype)


def _cycles(session: Session) -> int:
    """Cycles of a run on the accelerator; 0 without one."""
    parts = session.module.parts
    return sum(each.expected_cycles for each in parts if isinstance(each, AcceleratorPart))
