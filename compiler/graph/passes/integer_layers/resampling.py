"""Images whose rows and columns are weighted sums of another's: linear resizes.

    q(sum of weights * dq(x) at neighbours)  ->  Assemble(Requantize(Conv2d(x)), ...)

The weights come again after a period of rows and columns.  Each phase of it is a depthwise
convolution, whose int8 weights are the products of row and column weights in whole steps; beyond
its edges the image is repeated.  Only results half way between two int8 values may differ from ONNX
Runtime's, whose float32 sums may round either way there.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from dovetail.isa.frozen import frozen

from ...ir import Node
from ...operators.assembly import Assemble
from ...operators.elementwise import BinaryFunction
from ...operators.indexing import Gather
from ...operators.integer.products import Conv2d
from ...operators.integer.values import Requantize
from ...operators.integer.windows import Upsample2d
from .layouts import model_shape, to_nhwc
from .state import State, UnrecognisedError
from .values import F32, NCHW_TO_NHWC, Array, Integer, Real, Resampled, Value

__all__ = ["picked", "quantize_resampled", "weighted"]

LONGEST = 8
"""The largest period of rows or columns."""
MOST = 64
"""Convolutions that an image is put together from, at most."""
LARGEST = 255
"""The largest weight: with a zero point of -128 it is int8."""
FINEST = 1024
"""Steps of weights in a unit, at most."""
NEAR = 1e-4


@frozen
class _Phases:
    """Row ``period * t + a`` is the sum of ``weights[a][d]`` times row ``step * t + first + d``."""

    period: int
    step: int
    first: int
    weights: Array


def picked(value: Value, axis: int, places: Array) -> Value | None:
    """Rows or columns ``places`` of a resampled image; None for another value."""
    if not isinstance(value, Resampled):
        return None
    if axis == 2:
        return replace(value, rows=value.rows[places])
    return replace(value, columns=value.columns[places])


def weighted(state: State, node: Node, function: BinaryFunction) -> Value | None:
    """An image with weights of rows or columns, or the sum of two; None for all else."""
    values = [state.values.get(name) for name in node.inputs]
    a, b = values
    if function is BinaryFunction.ADD and isinstance(a, Resampled) and isinstance(b, Resampled):
        return _sum(a, b)
    if function is not BinaryFunction.MUL or state.source.types[node.output].rank != 4:
        return None
    for value, other in ((a, node.inputs[1]), (b, node.inputs[0])):
        factors = state.array(other)
        image = _resampled(state, value) if value is not None else None
        if image is None or factors is None:
            continue
        shape = (1,) * (4 - factors.ndim) + factors.shape
        if shape == (1, 1, len(image.rows), 1):
            return replace(image, rows=image.rows * factors.reshape(-1, 1))
        if shape == (1, 1, 1, len(image.columns)):
            return replace(image, columns=image.columns * factors.reshape(-1, 1))
    return None


def quantize_resampled(
    state: State, value: Resampled, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    """Add the operators.  Raises UnrecognisedError for weights that are not whole steps."""
    repeats = _repeats(value.rows), _repeats(value.columns)
    if max(repeats) > 1:
        return _repeated(state, value, repeats, scale, zero_point, stem, origin)
    graph, real = state.builder, value.real
    down, across = _phases(value.rows), _phases(value.columns)
    if down.period * across.period > MOST:
        raise UnrecognisedError(
            f"weights of {down.period} rows and {across.period} columns; required at most {MOST}"
        )
    x = to_nhwc(graph, real.tensor, origin)
    for axis, phases, matrix in ((1, down, value.rows), (2, across, value.columns)):
        count, size = len(matrix) // phases.period, matrix.shape[1]
        reach = (count - 1) * phases.step + phases.weights.shape[1]
        places = np.clip(phases.first + np.arange(reach), 0, size - 1)
        if not np.array_equal(places, np.arange(size)):
            constant = graph.constant(f"{stem}/places", places)
            x = graph.node(Gather(axis), (x, constant), f"{stem}/edges", origin)
    channels = graph.types[x].shape[3]
    names, starts = [], list(product(range(down.period), range(across.period)))
    for row, column in starts:
        kernel, unit = _whole(np.outer(down.weights[row], across.weights[column]))
        center = -128 if kernel.max() > 127 else 0
        weights = np.broadcast_to(
            (kernel + center)[None, :, :, None], (channels, *kernel.shape, 1)
        ).astype(np.int8)
        conv = Conv2d((down.step, across.step), (0, 0, 0, 0), channels, real.zero_point, center)
        inputs = (
            x,
            graph.constant(f"{stem}/weights", weights),
            graph.constant(f"{stem}/bias", np.zeros(channels, np.int32)),
        )
        total = graph.node(conv, inputs, f"{stem}/sum", origin)
        ratio = F32(real.scale / scale / F32(unit))
        factors = graph.constant(f"{stem}/scale", np.full(channels, ratio, F32))
        finish = Requantize(zero_point, -128, 127)
        names.append(graph.node(finish, (total, factors), f"{stem}/part", origin))
    if len(names) == 1:
        return Integer(names[0], NCHW_TO_NHWC)
    size = len(value.rows), len(value.columns)
    whole = Assemble(size, tuple(starts), (down.period, across.period))
    return Integer(graph.node(whole, tuple(names), stem, origin), NCHW_TO_NHWC)


def _repeats(matrix: Array) -> int:
    """How often the only row or column of an image comes, always with one weight; 1 for others."""
    same = matrix.shape[1] == 1 and np.allclose(matrix, matrix[0], rtol=0, atol=NEAR)
    return len(matrix) if same else 1


def _repeated(
    state: State,
    value: Resampled,
    repeats: tuple[int, int],
    scale: np.float32,
    zero_point: int,
    stem: str,
    origin: str,
) -> Integer:
    """A result of the only row, or the only column, as often as it is there."""
    graph = state.builder
    once = replace(
        value,
        rows=value.rows[: len(value.rows) // repeats[0]],
        columns=value.columns[: len(value.columns) // repeats[1]],
    )
    x = quantize_resampled(state, once, scale, zero_point, stem, origin).name
    for factors in ((repeats[0], 1), (1, repeats[1])):
        if max(factors) > 1:
            x = graph.node(Upsample2d(factors), (x,), f"{stem}/repeated", origin)
    return Integer(x, NCHW_TO_NHWC)


def _resampled(state: State, value: Value) -> Resampled | None:
    """A value as resampled: rows and columns that were picked of an image, or weighted ones."""
    if isinstance(value, Resampled):
        return value
    if not isinstance(value, Real) or value.tensor.name not in state.picked:
        return None
    before, axis, places = state.picked[value.tensor.name]
    if not isinstance(before, Real):
        return None
    inner = _resampled(state, before)
    if inner is None:
        _, _, height, width = model_shape(state.builder, before.tensor)
        inner = Resampled(before, np.eye(height), np.eye(width))
    found = picked(inner, axis, places)
    assert isinstance(found, Resampled)
    return found


def _sum(a: Resampled, b: Resampled) -> Resampled | None:
    if a.real == b.real and np.array_equal(a.columns, b.columns):
        return replace(a, rows=a.rows + b.rows)
    if a.real == b.real and np.array_equal(a.rows, b.rows):
        return replace(a, columns=a.columns + b.columns)
    return None


def _phases(matrix: Array) -> _Phases:
    """The least period of the rows of ``matrix``, [results, image]."""
    results, size = matrix.shape
    for period in range(1, min(results, LONGEST) + 1):
        step, rest = divmod(period * size, results)
        if results % period or rest:
            continue
        rows = [_phase(matrix[phase::period], step) for phase in range(period)]
        places = {place for row in rows for place in row}
        first, last = min(places, default=0), max(places, default=0)
        weights = np.array(
            [[row.get(place, 0.0) for place in range(first, last + 1)] for row in rows]
        )
        found = np.zeros(matrix.shape)
        for row, offset in product(range(results), range(last - first + 1)):
            place = min(max(row // period * step + first + offset, 0), size - 1)
            found[row, place] += weights[row % period, offset]
        if np.allclose(found, matrix, rtol=0, atol=NEAR):
            return _Phases(period, step, first, weights)
    raise UnrecognisedError(
        f"{results} weighted sums of {size}; required weights that come again after at most "
        f"{LONGEST}"
    )


def _phase(rows: Array, step: int) -> dict[int, float]:
    """Weights of a row of the middle, by their places from its beginning; where the edge cuts some
    off there, of the row with the most.

    rows: [results of a phase, image].  step: from the beginning of one to that of the next.
    """
    used = np.abs(rows) > NEAR
    near = sorted(range(len(rows)), key=lambda number: abs(number - len(rows) // 2))
    number = max(near, key=lambda number: int(used[number].sum()))
    places = np.flatnonzero(used[number]).tolist()
    return {place - number * step: float(rows[number, place]) for place in places}


def _whole(weights: Array) -> tuple[Array, int]:
    """The weights as whole numbers of the largest possible steps, and the steps in a unit."""
    for unit in range(1, FINEST + 1):
        steps = weights * unit
        if np.abs(steps - np.rint(steps)).max() < NEAR * unit and _fits(np.rint(steps)):
            return np.rint(steps).astype(np.int64), unit
    raise UnrecognisedError(
        f"weights from {float(weights.min())!r} to {float(weights.max())!r}; required at most "
        f"{LARGEST} steps of at least 1/{FINEST}"
    )


def _fits(steps: Array) -> bool:
    """True if steps are int8 with a zero point of 0 or, if some are above 127, of -128."""
    return bool(steps.max() <= LARGEST and steps.min() >= (0 if steps.max() > 127 else -128))
