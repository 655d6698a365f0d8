"""Converters of operators that make tensors: constants, ranges, masks."""

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto, numpy_helper

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.operators.movement import Iota
from .context import Converter, ImportContext
from .element_types import element_type
from .inputs import Inputs, normalise_axis, optional_term, scalar, terms
from .movement import integers_at
from .narrow import NARROW_TYPES
from .node import OnnxNode

__all__ = ["GENERATORS"]


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
    return (Term(ctx, ctx.constant(array.reshape(()))).expand(*shape).tensor,)


def convert_range(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``start + i * delta``, as many as fit below ``limit``."""
    start, limit, delta = terms(ctx, inputs, 3)
    first, last, step = (
        ctx.value(each.tensor).reshape(()).item() for each in (start, limit, delta)
    )
    count = max(0, int(np.ceil((last - first) / step)))
    line = Term(ctx, ctx.emit(Iota((count,), 0))).cast(start.dtype)
    return ((line * delta.reshape() + start.reshape()).tensor,)


def convert_eye_like(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Ones on a diagonal."""
    (x,) = terms(ctx, inputs, 1)
    dtype = element_type(node.integer("dtype", 0)) if "dtype" in node.attributes else x.dtype
    rows, columns = _places(ctx, x.shape)
    return ((rows + node.integer("k", 0)).equal(columns).cast(dtype).tensor,)


def convert_trilu(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The upper or lower triangle, 0 elsewhere."""
    (x,) = terms(ctx, inputs[:1], 1)
    k = optional_term(ctx, inputs, 1) or scalar(ctx, 0, DType.INT64)
    rows, columns = _places(ctx, x.shape[-2:])
    diagonal = rows + k.reshape()
    kept = diagonal <= columns if node.integer("upper", 1) else columns <= diagonal
    return (kept.where(x, 0, x.dtype).tensor,)


def _places(ctx: ImportContext, shape: tuple[int, ...]) -> tuple[Term, Term]:
    """The row and the column of each element of a matrix."""
    rows, columns = (Term(ctx, ctx.emit(Iota(shape, axis))) for axis in (0, 1))
    return rows, columns


def convert_one_hot(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``on`` where the index along the new axis is the one given, else ``off``."""
    indices, depth, values = terms(ctx, inputs, 3)
    size = int(ctx.value(depth.tensor).reshape(()).item())
    axis = normalise_axis(node.integer("axis", -1), indices.rank + 1)
    places = indices.cast(DType.INT64)
    places = (places < 0).where(places + size, places, DType.INT64)
    shape = indices.shape
    column = places.unsqueeze(axis)
    line = Term(ctx, ctx.emit(Iota((*shape[:axis], size, *shape[axis:]), axis)))
    hot = line.equal(column)
    off, on = (values.slice(0, place, place + 1).reshape() for place in (0, 1))
    return (hot.where(on, off, values.dtype).tensor,)


GENERATORS: Mapping[str, Converter] = {
    "Constant": convert_constant,
    "ConstantOfShape": convert_constant_of_shape,
    "EyeLike": convert_eye_like,
    "OneHot": convert_one_hot,
    "Range": convert_range,
    "Trilu": convert_trilu,
}
