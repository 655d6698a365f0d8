"""Operators that move elements: Transpose, Reshape, Expand, Slice, PadTensor, Gather and joins."""

from dataclasses import replace
from math import prod

import numpy as np

from ...ir import Node
from ...operators.indexing import Gather
from ...operators.integer.windows import Pad
from ...operators.movement import Concatenate, Expand, PadMode, PadTensor, Reshape, Slice, Transpose
from .constant_tensors import as_tensor
from .layouts import (
    image_of_rows,
    is_as_made,
    join_tensors,
    model_shape,
    permuted,
    reshaped_order,
    rows_of_image,
    to_model_order,
    to_nhwc,
)
from .repetition import repeated
from .state import State, UnrecognisedError
from .values import (
    F32,
    NCHW_TO_NHWC,
    Averaged,
    Floating,
    Foreign,
    Function,
    Integer,
    Joined,
    Moved,
    Pending,
    Real,
    RealConstant,
    Value,
    identity_order,
)

__all__ = [
    "moved",
    "recognise_concatenate",
    "recognise_movement",
    "recognise_pad",
    "recognise_slice",
    "with_tensor",
]


def recognise_movement(state: State, node: Node) -> Value:
    """Transpose, Reshape or Expand of any value; of what is not quantised yet, of its bytes."""
    value = state.value(node.inputs[0])
    if isinstance(node.operator, Reshape) and isinstance(value, Averaged):
        dropped = _without_size(state, node, node.operator, value)
        if dropped is not None:
            return dropped
    if isinstance(value, Moved):
        return replace(value, moves=(*value.moves, node))
    if isinstance(value, Pending):
        return Moved(value, (node,))
    return moved(state, node, value)


def moved(state: State, node: Node, value: Value) -> Value:
    """A stored or dequantised tensor after a Transpose, Reshape or Expand."""
    match node.operator:
        case Transpose() as operator:
            return _transposed(operator, value)
        case Reshape() as operator:
            return _reshaped(state, node, operator, value)
        case operator:
            assert isinstance(operator, Expand)
            return _expanded(state, node, operator, value)


def _transposed(operator: Transpose, value: Value) -> Value:
    """Kept as a permutation of the tensor's dimensions; nothing moves yet."""
    order = operator.permutation
    if isinstance(value, RealConstant):
        axis = order.index(value.axis) if value.scales.size > 1 else 0
        return replace(value, values=value.values.transpose(order), axis=axis)
    tensor = _stored(value)
    permutation = tuple(order.index(axis) for axis in tensor.permutation)
    return with_tensor(value, replace(tensor, permutation=permutation))


def _without_size(state: State, node: Node, operator: Reshape, value: Averaged) -> Averaged | None:
    """A mean of whole images less its dimensions of size 1; None for another reshape."""
    kept = state.source.types[node.inputs[0]].shape
    if operator.shape == kept:
        return value
    if value.keeps and operator.shape == kept[:2] and value.permutation == NCHW_TO_NHWC:
        return replace(value, keeps=False)
    return None


def _reshaped(state: State, node: Node, operator: Reshape, value: Value) -> Value:
    """As it is stored, where the dimensions that become one, or were one, are side by side there;
    else in the model's order of dimensions.
    """
    if isinstance(value, RealConstant):
        return _reshaped_constant(value, operator.shape)
    tensor = _stored(value)
    given = model_shape(state.builder, tensor)
    orders = reshaped_order(given, operator.shape, tensor.permutation)
    if orders is not None and isinstance(tensor, Integer):
        name = permuted(state.builder, tensor, orders[0], node.origin)
        order = orders[1]
        shape = tuple(operator.shape[axis] for axis in order)
        if shape != state.builder.types[name].shape:
            name = state.builder.node(Reshape(shape), (name,), node.output, node.origin)
        return with_tensor(value, replace(tensor, name=name, permutation=order))
    name = to_model_order(state.builder, tensor, node.origin)
    if operator.shape != state.builder.types[name].shape:
        name = state.builder.node(operator, (name,), node.output, node.origin)
    permutation = identity_order(len(operator.shape))
    return with_tensor(value, replace(tensor, name=name, permutation=permutation))


def _expanded(state: State, node: Node, operator: Expand, value: Value) -> Value:
    """An image repeated along its dimensions of size 1."""
    tensor = _stored(value)
    if isinstance(tensor, Floating):
        raise UnrecognisedError("repeats a float tensor; required a quantised one")
    whole = repeated(state, tensor, operator.shape, node.origin)
    if whole is tensor:
        return value
    state.expanded[whole.name] = tensor
    return with_tensor(value, whole)


def _reshaped_constant(value: RealConstant, shape: tuple[int, ...]) -> RealConstant:
    values, axis = value.values.reshape(shape), 0
    if value.scales.size > 1:
        old = value.values.shape
        before, size = prod(old[: value.axis]), old[value.axis]
        kept = [
            place
            for place, each in enumerate(shape)
            if each == size and prod(shape[:place]) == before
        ]
        if not kept:
            raise UnrecognisedError(
                f"a constant of {list(old)} with scales along axis {value.axis} as {list(shape)}; "
                "required that the axis stays"
            )
        axis = kept[0]
    return replace(value, values=values, axis=axis)


def recognise_slice(state: State, node: Node) -> Value:
    """First, step and count along each dimension of the model."""
    operator = node.operator
    assert isinstance(operator, Slice)
    value, tensor = state.integer(node.inputs[0])
    starts, steps, shape = (
        tuple(each[axis] for axis in tensor.permutation)
        for each in (operator.starts, operator.steps, operator.shape)
    )
    if 0 in shape:
        raise UnrecognisedError("nothing is left; required some elements")
    whole = state.builder.types[tensor.name].shape
    if shape == whole and all(step > 0 for step in steps):
        return value
    is_row = len(shape) == 3 and tensor.permutation[0] == 0 and whole[0] == 1
    if not is_row or shape[1] == whole[1]:
        stored = Slice(starts, steps, shape)
        name = state.builder.node(stored, (tensor.name,), node.output, node.origin)
        return with_tensor(value, replace(tensor, name=name))
    # Places of a row are the columns of an image one pixel high.
    axis = tensor.permutation[1]
    image = image_of_rows(state.builder, tensor, axis, node.origin)
    stored = Slice((0, *starts), (1, *steps), (1, *shape))
    name = state.builder.node(stored, (image.name,), node.output, node.origin)
    rows = rows_of_image(state.builder, replace(image, name=name), axis, node.output, node.origin)
    return with_tensor(value, rows)


def recognise_concatenate(state: State, node: Node) -> Value:
    """A concatenation of dequantised tensors, which the quantisation after it brings to one scale;
    or of stored ones of one element type.
    """
    operator = node.operator
    assert isinstance(operator, Concatenate)
    values = [as_tensor(state, state.value(name), name) for name in node.inputs]
    reals = [value for value in values if isinstance(value, Real)]
    if len(reals) == len(values):
        return Joined(tuple(reals), operator.axis)
    tensors = [value for value in values if isinstance(value, Integer)]
    if len(tensors) < len(values):
        raise UnrecognisedError(
            f"joins {', '.join(type(value).__name__ for value in values)}; required quantised "
            "tensors"
        )
    return join_tensors(state.builder, tensors, operator.axis, node.output, node.origin)


def recognise_pad(state: State, node: Node) -> Value:
    """A border of one value around an image, and channels of it before and behind its own."""
    operator = node.operator
    assert isinstance(operator, PadTensor)
    value = state.value(node.inputs[0])
    tensor = _stored(value)
    if not any((*operator.before, *operator.after)):
        return value
    if isinstance(tensor, Integer) and len(tensor.permutation) == 3:
        return _padded_rows(state, node, operator, value, tensor)
    if isinstance(tensor, Floating) or len(tensor.permutation) != 4:
        raise UnrecognisedError("required a quantised tensor of 3 or 4 dimensions")
    return _padded(state, node, operator, value, tensor)


def _padded_rows(
    state: State, node: Node, operator: PadTensor, value: Value, tensor: Integer
) -> Value:
    """A border at the ends of rows, as one beside an image one pixel high."""
    before, after = operator.before, operator.after
    axes = [axis for axis in range(3) if before[axis] or after[axis]]
    if axes not in ([1], [2]):
        raise UnrecognisedError(f"pads {[*before, *after]}; required borders of rows only")
    (axis,) = axes
    image = image_of_rows(state.builder, tensor, axis, node.origin)
    wide = replace(operator, before=(0, 0, 0, before[axis]), after=(0, 0, 0, after[axis]))
    padded = _stored(_padded(state, node, wide, with_tensor(value, image), image))
    assert isinstance(padded, Integer)
    rows = rows_of_image(state.builder, padded, axis, node.output, node.origin)
    return with_tensor(value, rows)


def _padded(state: State, node: Node, operator: PadTensor, value: Value, tensor: Integer) -> Value:
    before, after = operator.before, operator.after
    plain = tensor.permutation == identity_order(4) and is_as_made(state.builder, tensor.name)
    order = identity_order(4) if plain else NCHW_TO_NHWC
    sides = [(before[axis], after[axis]) for axis in order]
    constant = operator.mode is PadMode.CONSTANT
    if any(sides[0]) or (any(sides[3]) and not constant):
        raise UnrecognisedError(
            f"pads {[*before, *after]}; required borders of height and width, or channels of a "
            "constant"
        )
    if not constant:
        return _repeated(state, node, operator, value, tensor)
    border = _border(state, node.inputs[1], value, tensor)
    name = permuted(state.builder, tensor, order, node.origin)
    if any(sides[3]):
        name = _more_channels(state, node, name, sides[3], border)
    if any((*sides[1], *sides[2])):
        pad = Pad((sides[1][0], sides[2][0], sides[1][1], sides[2][1]), border)
        name = state.builder.node(pad, (name,), node.output, node.origin)
    return with_tensor(value, replace(tensor, name=name, permutation=order))


def _more_channels(
    state: State, node: Node, image: str, counts: tuple[int, int], border: int
) -> str:
    """Channels of ``border`` before and behind those of an image, NHWC."""
    _, height, width, _ = state.builder.types[image].shape
    first, last = (
        (state.builder.constant(f"{node.output}/{side}", np.full(shape, border, np.int8)),)
        if (shape := (1, height, width, count))[3]
        else ()
        for side, count in zip(("first", "last"), counts, strict=True)
    )
    return state.builder.node(Concatenate(3), (*first, image, *last), node.output, node.origin)


def _repeated(
    state: State, node: Node, operator: PadTensor, value: Value, tensor: Integer
) -> Value:
    """A border of rows and columns of the image itself."""
    name = to_nhwc(state.builder, tensor, node.origin)
    for axis in (1, 2):
        size = state.builder.types[name].shape[axis]
        pad = PadTensor(
            operator.before[axis + 1 : axis + 2], operator.after[axis + 1 : axis + 2], operator.mode
        )
        (places,) = pad.evaluate([np.arange(size), np.array(0)])
        if len(places) != size:
            constant = state.builder.constant(f"{node.output}/places", places.astype(np.int64))
            inputs = (name, constant)
            name = state.builder.node(Gather(axis), inputs, node.output, node.origin)
    return with_tensor(value, replace(tensor, name=name, permutation=NCHW_TO_NHWC))


def _border(state: State, name: str, value: Value, tensor: Integer) -> int:
    """The int8 value of the border."""
    given = float(state.constant(name, "the border").reshape(-1)[0])
    if isinstance(value, Function):
        places = np.flatnonzero(value.values == F32(given))
        if not places.size:
            raise UnrecognisedError(
                f"the border {given!r} is not a value of the function of int8 that it is put around"
            )
        return int(places[0]) - 128
    if not isinstance(value, Real):
        return int(given) - 128 * tensor.unsigned
    exact = given / float(value.scale)
    nearest = round(exact) + value.zero_point if np.isfinite(exact) else 128
    if nearest not in range(-128, 128) or abs(exact - round(exact)) > 1e-3:
        raise UnrecognisedError(
            f"the border {given!r} is not a value of its input's quantisation "
            f"(scale {float(value.scale)!r}, zero point {value.zero_point})"
        )
    return nearest


def _stored(value: Value) -> Integer | Floating:
    match value:
        case Integer() | Floating():
            return value
        case Real(tensor=tensor) | Function(tensor=tensor, axis=None):
            return tensor
        case Foreign(reason=reason):
            raise UnrecognisedError(reason)
        case _:
            raise UnrecognisedError(
                f"moves a {type(value).__name__}; required a quantised tensor; put QuantizeLinear "
                "and DequantizeLinear in front of it"
            )


def with_tensor(value: Value, tensor: Integer | Floating) -> Value:
    if isinstance(value, Real | Function) and isinstance(tensor, Integer):
        return replace(value, tensor=tensor)
    return tensor
