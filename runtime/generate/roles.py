"""Roles of a language model's inputs and outputs: token, position, mask, caches, logits."""

import re
from collections.abc import Sequence
from dataclasses import field
from math import prod

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..errors import ModuleError
from ..tensors import TensorSignature
from .cache import Cache, Update, relate

__all__ = ["Named", "Roles", "find_roles"]

NAMES = {"position": r"position|^pos$", "mask": r"mask", "token": r"token|input_ids?$|^ids?$"}
"""Parts of the names of such inputs, in the order in which they are looked for."""
AGES = (
    r"past|present|new|next|updated|key_values|kv_cache|cache"
    r"|input|output|(?<![a-z])(?:in|out)(?![a-z])"
)
"""Words that the names of a cache's input and output do not share."""


@frozen
class Named:
    """Names of a model's tensors that the user gives; None, and caches not listed, are found.

    caches: input, output, axis of positions or None.
    """

    token: str | None = None
    position: str | None = None
    mask: str | None = None
    logits: str | None = None
    caches: tuple[tuple[str, str, int | None], ...] = ()


@frozen
class Roles:
    """token: int[1], of any number of axes.  position, mask: None where the model has none.

    logits: floats, one for each token of the vocabulary.
    """

    token: TensorSignature
    logits: TensorSignature
    position: TensorSignature | None = None
    mask: TensorSignature | None = None
    caches: tuple[Cache, ...] = field(default=())

    @property
    def vocabulary(self) -> int:
        """The number of logits."""
        return self.logits.shape[-1]

    @property
    def capacity(self) -> int | None:
        """Positions that all caches hold; None for any number."""
        sizes = [each.size for each in self.caches if each.size is not None]
        return min(sizes, default=None)

    def seen(self, position: int) -> NDArray[np.bool_]:
        """The positions that there are for the token at ``position``, its own included: bool, as
        long as the mask, or, where its length is open, ``position + 1``.
        """
        assert self.mask is not None
        length, capacity = self.mask.shape[-1], self.capacity
        if length < 0:
            return np.ones(position + 1, bool)
        seen = np.arange(length) < position
        # Behind the cache's positions where the model puts the new one there, else among them.
        seen[capacity if length != capacity else position] = True
        return seen


def find_roles(
    inputs: Sequence[TensorSignature],
    outputs: Sequence[TensorSignature],
    named: Named | None = None,
) -> Roles:
    """Roles of a model's tensors, from the user's options, their names and their shapes.

    Raises ModuleError for a model that is not one of single tokens with caches, saying what it has.
    """
    named = named or Named()
    given = {each.name: each for each in inputs}
    made = {each.name: each for each in outputs}
    found = {role: _take(given, role, named) for role in NAMES}
    caches = [
        relate(_one(given, past, "input"), _one(made, new, "output"), axis)
        for past, new, axis in named.caches
    ]
    for each in caches:
        given.pop(each.past.name)
        made.pop(each.new.name)
    caches += _caches(given, made)
    token, logits = found["token"], _logits(made, named.logits)
    if token is None or logits is None or not caches:
        missing = "token" if token is None else "logits" if logits is None else "cache"
        raise ModuleError(
            f"no {missing} among inputs {_list(inputs)} and outputs {_list(outputs)}; required a "
            "model of one token: inputs token, position or mask, and caches; outputs logits, and "
            "what is new in each cache; say which is which (--token, --cache PAST=NEW, ...)"
        )
    roles = Roles(token, logits, found["position"], found["mask"], tuple(caches))
    _check(roles)
    return roles


def _take(given: dict[str, TensorSignature], role: str, named: Named) -> TensorSignature | None:
    """The input for ``role``, taken out of ``given``; None where none, or several, could be it."""
    asked = getattr(named, role)
    if asked is not None:
        return given.pop(_one(given, asked, "input").name)
    pasts = {past for past, _, _ in named.caches}
    hits = [
        name
        for name, each in given.items()
        if ("int" in each.dtype or (role == "mask" and each.dtype == "bool"))
        and name not in pasts
        and re.search(NAMES[role], name.lower())
    ]
    return given.pop(hits[0]) if len(hits) == 1 else None


def _one(known: dict[str, TensorSignature], name: str, kind: str) -> TensorSignature:
    if name not in known:
        raise ModuleError(
            f"no {kind} {name!r} that is not taken; there are: {', '.join(known) or 'none'}"
        )
    return known[name]


def _list(tensors: Sequence[TensorSignature]) -> str:
    return "(" + ", ".join(map(str, tensors)) + ")"


def _stem(name: str) -> tuple[str, ...]:
    """Part that a cache's input and output have in common: (0, key) of "past_key_values.0.key"."""
    return tuple(re.findall(r"[a-z]+|\d+", re.sub(AGES, " ", name.lower())))


def _caches(given: dict[str, TensorSignature], made: dict[str, TensorSignature]) -> list[Cache]:
    """A cache for each input that is left; its output is taken out of ``made``."""
    found = []
    for name, past in given.items():
        same = [each for each in made if _stem(each) == _stem(name)]
        if len(same) != 1:
            raise ModuleError(
                f"input {past} has no other role, and {len(same)} outputs are called like it "
                f"(there are: {_list(list(made.values()))}); required one, such as "
                f"'present.0.key' beside 'past_key_values.0.key'; name it: --cache {name}=OUTPUT"
            )
        found.append(relate(past, made.pop(same[0])))
    return found


def _logits(made: dict[str, TensorSignature], asked: str | None) -> TensorSignature | None:
    if asked is not None:
        return _one(made, asked, "output")
    hits = [each for each in made if "logits" in each.lower()] or list(made)
    return made[hits[0]] if len(hits) == 1 else None


def _check(roles: Roles) -> None:
    """Raises ModuleError for shapes and types that the roles cannot have."""
    for tensor in filter(None, (roles.token, roles.position)):
        if abs(prod(tensor.shape)) != 1:
            raise ModuleError(f"input {tensor}; required one element: a model of one token a run")
    rows = prod(roles.logits.shape[:-1])
    if not roles.logits.shape or abs(rows) != 1 or roles.logits.shape[-1] < 2:
        raise ModuleError(f"output {roles.logits}; required one row of logits")
    if len({each.size for each in roles.caches}) > 1:
        sizes = ", ".join(f"{each.past.name}: {each.size or 'any'}" for each in roles.caches)
        raise ModuleError(f"caches of different lengths ({sizes}); required one length")
    for each in roles.caches:
        closed = [size for axis, size in enumerate(each.past.shape) if axis != each.axis]
        if min(closed, default=1) < 0:
            raise ModuleError(
                f"input {each.past} has open sizes besides its positions; "
                "give them: --dim NAME=SIZE"
            )
        if each.update is Update.LAST and roles.mask is None:
            raise ModuleError(
                f"output {each.new} is the cache {each.past} and a row behind it, but nothing "
                "says how much of the cache is filled; required an input such as attention_mask"
            )
    size = roles.capacity
    if roles.mask is None:
        if roles.position is None and size is not None:
            raise ModuleError("caches of fixed length; required an input for position or mask")
        return
    length = roles.mask.shape[-1] if roles.mask.shape else 0
    wanted = (-1,) if size is None else (size, size + 1)
    if length not in wanted or abs(prod(roles.mask.shape[:-1])) != 1:
        raise ModuleError(
            f"input {roles.mask}; required a mask of 0 and 1 as long as the caches, "
            f"{size or 'of any length'}, or one longer, with the new position behind them"
        )
