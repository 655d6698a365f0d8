"""Converters of operators that make tensors: constants, ranges, masks."""

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto, numpy_helper

from ...dtypes import DType
from ...graph.operators.elementwise import BinaryFunction
from ...graph.operators.movement import Iota
from .build import (
    add,
    binary,
    broadcast,
    cast,
    equal,
    less,
    mul,
    normalise_axis,
    reshape,
    scalar,
    slice_axis,
    where,
)
from .context import Converter, ImportContext, Tensor, optional, required
from .element_types import element_type
from .movement import integers_at
from .narrow import NARROW_TYPES
from .node import OnnxNode

__all__ = ["GENERATORS"]

Inputs = tuple[Tensor | None, ...]


def convert_constant(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """A constant of the model."""
    attributes = node.attributes
    value = attributes.get("value")
    if isinstance(value, TensorProto):
        if value.data_type not in NARROW_TYPES:
            element_type(value.data_type)
        return (ctx.constant(numpy_helper.to_array(value)),)
    kinds: dict[str, type[np.generic]] = {"value_float": np.float32, "value_floats": np.float32}
    kinds["value_int"] = kinds["value_ints"] = np.int64
    for name, kind in kinds.items():
        if name in attributes:
            return (ctx.constant(np.asarray(attributes[name], kind)),)
    raise ValueError(f"a constant given by {', '.join(attributes)}")


def convert_constant_of_shape(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """One value everywhere."""
    value = node.attributes.get("value")
    array = numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.zeros(1, "f4")
    shape = integers_at(ctx, inputs, 0) or ()
    return (broadcast(ctx, ctx.constant(array.reshape(())), shape),)


def convert_range(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``start + i * delta``, as many as fit below ``limit``."""
    start, limit, delta = required(inputs, 3)
    first, last, step = (ctx.value(each).reshape(()).item() for each in (start, limit, delta))
    count = max(0, int(np.ceil((last - first) / step)))
    line = cast(ctx, ctx.emit(Iota((count,), 0)), start.type.dtype)
    return (add(ctx, mul(ctx, line, reshape(ctx, delta, ())), reshape(ctx, start, ())),)


def convert_eye_like(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Ones on a diagonal."""
    (x,) = required(inputs, 1)
    dtype = element_type(node.integer("dtype", 0)) if "dtype" in node.attributes else x.type.dtype
    rows, columns = (ctx.emit(Iota(x.type.shape, axis)) for axis in (0, 1))
    diagonal = equal(ctx, add(ctx, rows, node.integer("k", 0)), columns)
    return (cast(ctx, diagonal, dtype),)


def convert_trilu(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The upper or lower triangle, 0 elsewhere."""
    (x,) = required(inputs[:1], 1)
    k = optional(inputs, 1) or scalar(ctx, 0, DType.INT64)
    shape = x.type.shape[-2:]
    rows, columns = (ctx.emit(Iota(shape, axis)) for axis in (0, 1))
    diagonal = add(ctx, rows, reshape(ctx, k, ()))
    upper = bool(node.integer("upper", 1))
    function = BinaryFunction.LE
    kept = binary(ctx, function, *((diagonal, columns) if upper else (columns, diagonal)))
    return (where(ctx, kept, x, scalar(ctx, 0, x)),)


def convert_one_hot(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``on`` where the index along the new axis is the one given, else ``off``."""
    indices, depth, values = required(inputs, 3)
    size = int(ctx.value(depth).reshape(()).item())
    axis = normalise_axis(node.integer("axis", -1), indices.type.rank + 1)
    places = cast(ctx, indices, DType.INT64)
    places = where(ctx, less(ctx, places, 0), add(ctx, places, size), places)
    shape = indices.type.shape
    column = reshape(ctx, places, (*shape[:axis], 1, *shape[axis:]))
    hot = equal(ctx, ctx.emit(Iota((*shape[:axis], size, *shape[axis:]), axis)), column)
    off, on = (reshape(ctx, _element(ctx, values, place), ()) for place in (0, 1))
    return (where(ctx, hot, on, off),)


def _element(ctx: ImportContext, x: Tensor, place: int) -> Tensor:
    return slice_axis(ctx, x, 0, place, 1)


GENERATORS: Mapping[str, Converter] = {
    "Constant": convert_constant,
    "ConstantOfShape": convert_constant_of_shape,
    "EyeLike": convert_eye_like,
    "OneHot": convert_one_hot,
    "Range": convert_range,
    "Trilu": convert_trilu,
}
