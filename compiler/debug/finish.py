"""Requantisation that goes wrong: parameters in PAR, tables in TAB, fields of the instruction."""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.instructions import Finish, Rounding
from dovetail.isa.memories import Memory
from dovetail.runtime.debug.session import Session

from ..graph.ir import Array, Node
from ..graph.operators.integer.fixed_point import RequantizeFixed
from ..graph.operators.integer.products import Conv2d
from ..graph.operators.integer.values import Lookup
from ..graph.operators.integer.windows import AveragePool2d
from ..targets.vta.layers.fixed_sums import parameters_of
from ..targets.vta.operators import AnyRequantize
from ..targets.vta.passes.fuse import Layer
from .expected import Reference
from .results import Result

__all__ = ["average_cause", "finish_cause", "folded_bias"]


def folded_bias(reference: Reference, convolution: Node) -> NDArray[np.int32]:
    """``bias - zero_point * sum(weights)`` for each channel: what PAR ought to have; int32[O]."""
    operator = convolution.operator
    assert isinstance(operator, Conv2d)
    weights, bias = (reference.values[name] for name in convolution.inputs[1:3])
    factors = weights.astype(np.int64) - operator.weight_zero_point
    sums = factors.reshape(len(factors), -1).sum(axis=1)
    return (bias.astype(np.int64) - operator.zero_point * sums).astype(np.int32)


def finish_cause(
    session: Session, reference: Reference, layer: Layer, result: Result, bias: NDArray[np.int32]
) -> tuple[int, str] | None:
    """The sum is right: what is wrong after it."""
    node = next(n for n in layer.nodes if isinstance(n.operator, AnyRequantize))
    given = [np.asarray(reference.values[name]).reshape(-1) for name in node.inputs[1:]]
    parameters = parameters_of(bias, [np.broadcast_to(each, bias.shape) for each in given])
    found = _parameter_cause(session, result, *parameters)
    if found is not None:
        return found
    vector, requantize = result.vector, node.operator
    assert isinstance(requantize, AnyRequantize)
    rounding = Rounding.FIXED if isinstance(requantize, RequantizeFixed) else Rounding.FLOAT
    if vector.rounding is not rounding:
        has, wants = vector.rounding.name.lower(), rounding.name.lower()
        return result.index, f"its rounding is {has}, the model has {wants}"
    for name in ("zero_point", "low", "high"):
        has, wants = getattr(vector, name), getattr(requantize, name)
        if has != wants:
            return result.index, f"its {name} is {has}, the model has {wants}"
    table = next((n for n in layer.nodes if isinstance(n.operator, Lookup)), None)
    if table is not None:
        return _table_cause(session, reference, table, result)
    return None


def average_cause(
    session: Session, average: AveragePool2d, result: Result
) -> tuple[int, str] | None:
    """A scale or zero point of an average that is not the model's."""
    if result.vector.finish is not Finish.REQUANTIZE:
        return None
    if result.vector.zero_point != average.zero_point:
        has, wants = result.vector.zero_point, average.zero_point
        return result.index, f"its zero_point is {has}, the model has {wants}"
    size = average.kernel[0] * average.kernel[1]
    channels = result.channel + 1
    bias = np.full(channels, -average.x_zero_point * size, np.int32)
    scales = np.full(channels, average.scale, np.float32)
    return _parameter_cause(session, result, bias, scales)


def _parameter_cause(
    session: Session, result: Result, bias: Array, scales: Array
) -> tuple[int, str] | None:
    """A bias or a scale in PAR that is not the model's; of fixed point, as the bits are."""
    session.position = result.before
    state, channel = session.replayed_state, result.channel
    held = state.par.scale.view(scales.dtype)
    pair = state.par.bias[result.par, result.lane], held[result.par, result.lane]
    if pair == (bias[channel], scales[channel]):
        return None
    right = (state.par.bias[:, result.lane] == bias[channel]) & (
        held[:, result.lane] == scales[channel]
    )
    if right.any():
        word = int(np.flatnonzero(right)[0])
        return result.index, (
            f"it takes bias and scale of channel {channel} from par {result.par}; "
            f"they are in par {word}"
        )
    what, has, wants = (
        ("bias", pair[0], bias[channel])
        if pair[0] != bias[channel]
        else ("scale", pair[1], scales[channel])
    )
    writer = session.writer(Memory.PAR, result.par)
    loaded = "which nobody wrote"
    if writer.instruction is not None:
        loaded = f"loaded by instruction {writer.instruction.index} from {writer.loaded_from:#x}"
    reason = (
        f"{what} of channel {channel} in par {result.par}, lane {result.lane}, is {has}, "
        f"the model has {wants}; {loaded}"
    )
    return (writer.instruction.index if writer.instruction else result.index), reason


def _table_cause(
    session: Session, reference: Reference, table: Node, result: Result
) -> tuple[int, str] | None:
    session.position = result.before
    state, vector = session.replayed_state, result.vector
    if not vector.lookup:
        return result.index, f"it has no lookup, the model has {table.origin!r}"
    first = vector.tab_address % state.config.tab_depth
    has = state.tab[first : first + 256, result.lane]
    wants = np.asarray(reference.values[table.inputs[1]]).reshape(-1)
    wrong = np.flatnonzero(has != wants)
    if not wrong.size:
        return None
    word = first + int(wrong[0])
    writer = session.writer(Memory.TAB, word).instruction
    return (writer.index if writer else result.index), (
        f"entry {int(wrong[0]) - 128} of the table in tab {word} is {has[wrong[0]]}, "
        f"the model has {wants[wrong[0]]}"
    )
