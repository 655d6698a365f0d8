"""Resizes of images, which graphs have as elements that are picked, weighted and added.

x[rows][columns]                                     ->  Resize, nearest
sums of x[rows][columns] * weights of each of these  ->  Resize, linear
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from ....graph.ir import Array
from ....graph.operators.elementwise import Binary
from ....graph.operators.functions import BinaryFunction as B
from ....graph.operators.indexing import Gather
from .writing import Writing

__all__ = ["linear_resize", "nearest_resize"]

MOST_TERMS = 8
FIRST_SPATIAL = 2
NEAR = 1e-5
Places = Callable[[Array, int, int], Array]
"""The place in ``x`` of each place of the result, of their numbers."""

NEAREST: dict[tuple[str, str], Places] = {
    ("asymmetric", "floor"): lambda at, size, wanted: np.floor(at * size / wanted),
    ("half_pixel", "round_prefer_ceil"): lambda at, size, wanted: np.floor(
        (at + 0.5) * size / wanted
    ),
}
LINEAR: dict[str, Places] = {
    "half_pixel": lambda at, size, wanted: (at + 0.5) * size / wanted - 0.5,
    "align_corners": lambda at, size, wanted: at * (size - 1) / max(wanted - 1, 1),
    "asymmetric": lambda at, size, wanted: at * size / wanted,
}


@dataclass(slots=True)
class _Picked:
    """Elements of ``x`` along some dimensions, and what each is multiplied by."""

    x: str
    places: dict[int, Array] = field(default_factory=dict)
    weights: dict[int, Array] = field(default_factory=dict)


def nearest_resize(w: Writing) -> str | None:
    """Rows and columns, each the nearest of the image's."""
    if not isinstance(w.node.operator, Gather):
        return None
    picked = _picked(w, w.node.output)
    shape = w.type(picked.x).shape
    if not picked.places or w.value(picked.x) is not None:
        return None
    for (mode, rounding), places in NEAREST.items():
        if all(
            axis >= FIRST_SPATIAL
            and len(own) >= shape[axis]
            and np.array_equal(places(np.arange(len(own)), shape[axis], len(own)), own)
            for axis, own in picked.places.items()
        ):
            return _resize(w, picked.x, "nearest", mode, nearest_mode=rounding)
    return None


def linear_resize(w: Writing) -> str | None:
    """Rows and columns, each the weighted sum of the two nearest of the image's."""
    found = _summed(w, w.node.output)
    if found is None:
        return None
    x, matrices = found
    before = _summed(w, x)
    if before is not None and before[1].keys().isdisjoint(matrices):
        x, matrices = before[0], {**matrices, **before[1]}
    for mode, places in LINEAR.items():
        if all(
            axis >= FIRST_SPATIAL and np.allclose(_linear(places, *each.shape), each, atol=NEAR)
            for axis, each in matrices.items()
        ):
            return _resize(w, x, "linear", mode)
    return None


def _resize(w: Writing, x: str, kind: str, mode: str, **attributes: str) -> str:
    sizes = w.integers(w.type(w.node.output).shape)
    how = {"coordinate_transformation_mode": mode, **attributes}
    return w.emit("Resize", x, "", "", sizes, mode=kind, **how)


def _linear(places: Places, wanted: int, size: int) -> Array:
    """The weight of each of the image's rows in each of the result's."""
    at = np.clip(places(np.arange(wanted), size, wanted), 0, size - 1)
    low = np.floor(at).astype(np.int64)
    found = np.zeros((wanted, size))
    np.add.at(found, (np.arange(wanted), low), 1 - (at - low))
    np.add.at(found, (np.arange(wanted), np.minimum(low + 1, size - 1)), at - low)
    return found


def _summed(w: Writing, name: str) -> tuple[str, dict[int, Array]] | None:
    """A tensor, and by dimension the weights of its rows in each of those that ``name`` has."""
    terms = list(_terms(w, name))
    if not 1 < len(terms) <= MOST_TERMS:
        return None
    parts = [_picked(w, each) for each in terms]
    first = parts[0]
    if not first.places or any(
        each.x != first.x or each.places.keys() != first.places.keys() for each in parts
    ):
        return None
    kinds: dict[int, dict[bytes, tuple[Array, Array]]] = {axis: {} for axis in first.places}
    keys = []
    for each in parts:
        if not each.weights.keys() <= each.places.keys():
            return None
        key = []
        for axis, places in each.places.items():
            weights = each.weights.get(axis, np.ones(len(places), np.float32))
            if weights.shape != places.shape:
                return None
            key.append(places.tobytes() + weights.tobytes())
            kinds[axis][key[-1]] = places, weights
        keys.append(tuple(key))
    if sorted(keys) != sorted(product(*(kinds[axis] for axis in first.places))):
        return None
    shape = w.type(first.x).shape
    return first.x, {axis: _matrix(own.values(), shape[axis]) for axis, own in kinds.items()}


def _matrix(taps: Collection[tuple[Array, Array]], size: int) -> Array:
    found = np.zeros((max(len(places) for places, _ in taps), size))
    for places, weights in taps:
        np.add.at(found, (np.arange(len(places)), places), weights)
    return found


def _terms(w: Writing, name: str, depth: int = MOST_TERMS) -> Iterator[str]:
    """The terms that add up to ``name``, or ``name`` itself if no Add makes it."""
    node = w.graph.producer(name)
    operator = node.operator if node is not None else None
    if node is None or not depth or not isinstance(operator, Binary) or operator.function != B.ADD:
        yield name
        return
    for each in node.inputs:
        yield from _terms(w, each, depth - 1)


def _picked(w: Writing, name: str) -> _Picked:
    """The tensor that ``name`` has elements of, picked and weighted by constants."""
    found = _Picked(name)
    while (node := w.graph.producer(found.x)) is not None:
        value = w.value(node.inputs[1]) if len(node.inputs) > 1 else None
        rank = w.type(found.x).rank
        if value is None:
            break
        if isinstance(node.operator, Binary) and node.operator.function == B.MUL:
            wide = [axis for axis, size in enumerate(value.shape) if size != 1]
            axis = rank - value.ndim + wide[0] if wide else -1
            if len(wide) != 1 or axis in found.weights or found.places:
                break
            found.weights[axis] = value.reshape(-1)
        elif isinstance(node.operator, Gather) and value.ndim == 1:
            axis = node.operator.axis
            if axis in found.places:
                break
            size = w.type(node.inputs[0]).shape[axis]
            found.places[axis] = np.where(value < 0, value + size, value)
        else:
            break
        found.x = node.inputs[0]
    return found
