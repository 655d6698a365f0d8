"""VECTOR on symbols."""

from operator import itemgetter

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import (
    column_elements,
    element_words,
    is_window,
    nest,
    outer_extent,
    raised_elements,
    results_written,
    window_taps,
)
from dovetail.isa.instructions import Finish, Fold, Multiplier, Rounding, Row, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.requantize import low_bits

from ..errors import TranslationError
from .rows import over_root, over_sum, widened
from .state import State
from .symbol_sums import chosen, largest, linear, requantized, saturated
from .symbols import (
    BYTES,
    NOT_A_BYTE,
    Array,
    Parameters,
    Symbols,
    apply_table,
    balanced,
    digest,
    function,
    integers,
    of_pairs,
    write,
)

__all__ = ["vector"]

EVERY = (slice(None), 0), (slice(None), 1)
"""The first and the second element of each result."""


def vector(state: State, instruction: Vector) -> None:
    """Fold every result, finish it, write it."""
    config, outer = state.config, outer_extent(instruction)
    results = int(np.prod(outer))
    words = element_words(instruction, config)
    found = state.words[instruction.source].moved(lambda x: x[words])
    if is_window(instruction) and instruction.row is not Row.NONE:
        raise TranslationError(f"no rule for parameters of rows of windows: {instruction}")
    if is_window(instruction):
        result = _finished(state, _windows(state, found, instruction), instruction, outer)
    else:
        shape = (results, -1, config.block)
        elements = found.moved(lambda x: x.reshape(shape))
        if instruction.row is not Row.NONE:
            _row(state, _folded(state, elements, instruction), instruction, outer)
            return
        result = _of_pairs(state, elements, instruction, outer) or _finished(
            state, _folded(state, elements, instruction), instruction, outer
        )
    if instruction.lookup:
        first = instruction.tab_address % config.tab_depth
        result = apply_table(result, state.tables[first : first + 256].T)
    places = nest(
        instruction.destination_address,
        outer,
        instruction.destination_stride,
        config.depth(instruction.destination),
    )
    written = results_written(instruction)
    write(state.words[instruction.destination], places[written], result.moved(lambda x: x[written]))


def _row(state: State, x: Symbols, vector: Vector, outer: tuple[int, ...]) -> None:
    """Write to PAR the result of all lanes, for all lanes alike; x: [results, lanes]."""
    par_depth = state.config.par_depth
    places = nest(vector.destination_address, outer, vector.destination_stride, par_depth)
    shape = x.values.shape
    if vector.row is Row.LESS and vector.fold is Fold.MAX:
        if (x.tables == NOT_A_BYTE).any():
            raise TranslationError(f"no rule for the largest of integers: {vector}")
        most = largest(x.moved(itemgetter((slice(None), lane))) for lane in range(shape[1]))
        bias, scale = balanced(vector.m1 - most.values), np.ones(len(most.values), np.float32)
    else:
        bias, scale = _of_sum(_parameters_of(state, vector, outer), x.values.sum(axis=1), vector)
    words = (bias.astype(np.int32), scale.view(np.int32))
    lanes = [np.broadcast_to(word[:, None], shape) for word in words]
    state.parameters[places] = np.concatenate(lanes, axis=1).view(np.uint8)
    state.made[places] = True


def _of_sum(given: Parameters, total: Array, vector: Vector) -> tuple[Array, Array]:
    """The bias and the scale that a sum over all lanes becomes.

    given: what PAR holds, whose scale counts without its sign; one that VECTOR wrote has none.
    """
    if np.any(given.made) and vector.row is not Row.ROOT:
        raise TranslationError(f"no rule for a scale of rows over another sum: {vector}")
    more, factor = given.bias[:, 0], np.where(given.made, given.scale, np.abs(given.scale))
    match vector.row:
        case Row.LESS:
            return balanced(vector.m1 - total), factor[:, 0]
        case Row.OVER:
            start = np.full(len(total), vector.m1)
            return start, over_sum(factor[:, 0], balanced(total + more))
    return more, over_root(factor[:, 0], balanced(total + vector.m1), vector.shift)


def _of_pairs(state: State, x: Symbols, vector: Vector, outer: tuple[int, ...]) -> Symbols | None:
    """The requantised result of two bytes, as a table of all pairs; None for others.

    So fixed-point formulas are equal to others that give the same bytes.
    """
    wanted = vector.multiplier in (Multiplier.IMMEDIATE, Multiplier.PAIR)
    if x.values.shape[1] != 2 or vector.fold is not Fold.MAC or not wanted:
        return None
    if vector.finish is not Finish.REQUANTIZE or (x.tables == NOT_A_BYTE).any():
        return None
    parameters = _parameters_of(state, vector, outer)
    if np.any(parameters.made):
        return None
    bias, bits = parameters.bias, parameters.scale.view(np.int32)
    keys = np.stack([bias.reshape(-1), bits.reshape(-1)])
    cases, numbers = np.unique(keys, axis=1, return_inverse=True)
    numbers = numbers.reshape(bias.shape)
    a, b = BYTES[:, None], BYTES
    m0, m1 = vector.m0, vector.m1
    if vector.multiplier is Multiplier.PAIR:
        first, second = low_bits(np.array((m0, m1)), 9)
        sums = (a + first) * (b + second)
    else:
        sums = a * m0 + b * m1
    limits = vector.zero_point, vector.low, vector.high
    found: Symbols | None = None
    for number, case in enumerate(cases.T):
        words = case[:1], case[1:].view(np.float32)
        table = parameters.meaning(sums.astype(np.int32), *words, *limits)
        made = of_pairs(table, x.moved(itemgetter(EVERY[0])), x.moved(itemgetter(EVERY[1])))
        found = made if found is None else chosen(numbers == number, made, found)
    return found


def _parameters_of(state: State, vector: Vector, outer: tuple[int, ...]) -> Parameters:
    """The words of every result: [results, lanes]."""
    places = nest(vector.par_address, outer, vector.par_stride, state.config.par_depth)
    words = state.parameters[places]
    half = words.shape[1] // 2
    return Parameters(
        np.ascontiguousarray(words[:, :half]).view(np.int32),
        np.ascontiguousarray(words[:, half:]).view(np.float32),
        vector.rounding,
        state.made[places][:, None],
    )


def _finished(state: State, x: Symbols, vector: Vector, outer: tuple[int, ...]) -> Symbols:
    if vector.finish is Finish.REQUANTIZE:
        parameters = _parameters_of(state, vector, outer)
        if vector.rounding is Rounding.WIDE:
            return widened(x.values, parameters.bias, parameters.scale, vector.zero_point)
        return requantized(x, parameters, vector.zero_point, vector.low, vector.high)
    if vector.finish is Finish.SHIFT:
        x = integers(function(digest("shift", vector.shift), x.values))
    if vector.finish is Finish.CUSTOM:
        x = _own(state.config, x, vector)
    if vector.destination is Memory.ACC:
        return x
    return saturated(x, vector.low, vector.high)


def _own(config: HardwareConfig, x: Symbols, vector: Vector) -> Symbols:
    """The configuration's own finish: what makes bytes of bytes is a table."""
    own = config.own_finish
    assert own is not None, "legality refuses it"
    results = own.meaning(np.arange(-128, 128, dtype=np.int32), vector.shift)
    if vector.destination is Memory.ACT:
        results = np.clip(results, vector.low, vector.high)
    if (x.tables != NOT_A_BYTE).all() and (results.astype(np.int8) == results).all():
        return apply_table(x, results)
    return integers(function(digest("own", own.pinned, vector.shift), x.values))


def _folded(state: State, x: Symbols, vector: Vector) -> Symbols:
    """Results before their finish; x: [results, elements, lanes]."""
    count = x.values.shape[1]
    index = np.arange(count)[:, None] % vector.extent[0]
    m0, m1 = vector.m0, vector.m1
    match vector.fold:
        case Fold.MAX:
            return largest(x.moved(itemgetter((slice(None), n))) for n in range(count))
        case Fold.MIN:
            raise TranslationError(f"no rule for the fold MIN: {vector}")
        case Fold.ADD | Fold.SUB if count == 1:
            return x.moved(lambda each: each[:, 0])
        case Fold.ADD:
            return _products(x, np.ones((count, 1), np.int64))
        case Fold.SUB:
            return _products(x, np.where(index == 0, 1, -1))
    if vector.multiplier is Multiplier.TAP:
        depth = state.config.tap_depth
        places = nest(vector.tap_address, vector.extent, vector.tap_stride, depth)
        taps = state.taps[places] + low_bits(np.array(m0), 9)
        taps = taps.reshape(x.values.shape)
        return _products(x, taps, raised_elements(vector, state.config) * taps.sum(axis=1))
    if vector.multiplier is Multiplier.IMMEDIATE:
        return _products(x, np.where(index == 0, m0, m1))
    if vector.extent[0] % 2:
        raise TranslationError(f"no rule for pairs of an odd number of elements: {vector}")
    second = m1 if vector.row is Row.NONE else m0
    raised = balanced(x.values + low_bits(np.array((m0, second)), 9)[index % 2])
    return integers(balanced(raised[:, 1::2] * raised[:, ::2]).sum(axis=1))


def _products(x: Symbols, factors: Array, added: Array | int = 0) -> Symbols:
    """Sums over the elements of their products with ``factors``, and of ``added``."""
    factors = np.broadcast_to(factors, x.values.shape)
    return linear(x, factors, lambda each, by: balanced(each * by).sum(axis=1), added)


def _windows(state: State, x: Symbols, vector: Vector) -> Symbols:
    """As ``isa.semantics.window_sums``, in the field; x: [elements, lanes]."""
    taps = state.taps[window_taps(vector, state.config)]
    factors = taps + low_bits(np.array(vector.m0), 9)
    extent, levels = vector.extent, vector.reduction_levels
    groups, run = (*extent, 1)[levels], int(np.prod(extent[: levels + 1]))
    lanes, column = state.config.block, column_elements(vector)

    def rule(values: Array, factors: Array) -> Array:
        products = balanced(values[:, None] * factors)
        columns = products.reshape(-1, run // column, column, 3, lanes).sum(axis=2)
        total = columns[:, :, 2].copy()
        total[:, 1:] += columns[:, :-1, 1]
        total[:, 2:] += columns[:, :-2, 0]
        return total.reshape(len(total), groups, -1, lanes)[:, :, -1].reshape(-1, lanes)

    return linear(x, factors, rule)
