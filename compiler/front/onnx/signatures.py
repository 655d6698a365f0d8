"""The inputs that a model declares."""

import shlex
from collections.abc import Mapping

import onnx

from ...errors import ModelError, UnsupportedOperatorError
from ..source import InputSignature
from .element_types import ELEMENT_TYPES, type_name

__all__ = ["bind_dimensions", "input_signatures", "open_shape_error"]


def input_signatures(model: onnx.ModelProto) -> tuple[InputSignature, ...]:
    """Signatures of the inputs that have no value of their own.

    Raises UnsupportedOperatorError for an input that is not a tensor, ModelError for one of unknown
    rank.
    """
    constants = {each.name for each in model.graph.initializer}
    found = []
    for value in model.graph.input:
        if value.name in constants:
            continue
        if not value.type.HasField("tensor_type"):
            raise UnsupportedOperatorError(f"input {value.name!r} is not a tensor")
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            raise ModelError(
                f"input {value.name!r} has no shape; required its number of dimensions"
            )
        shape = tuple(
            dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim
        )
        if any(size is not None and size < 0 for size in shape):
            raise ModelError(f"input {value.name!r} has shape {list(shape)}; required sizes from 0")
        kind = ELEMENT_TYPES.get(tensor.elem_type)
        if kind is None:
            said = type_name(tensor.elem_type)
            raise UnsupportedOperatorError(f"input {value.name!r} has elements of type {said}")
        found.append(InputSignature(value.name, shape, str(kind)))
    return tuple(found)


def open_shape_error(
    model: onnx.ModelProto, name: str, shape: tuple[int | None, ...]
) -> ModelError:
    """The error for an input whose ``shape`` is open: how each size that has a name is given."""
    (value,) = (each for each in model.graph.input if each.name == name)
    dims = value.type.tensor_type.shape.dim
    sizes = [
        (dim.dim_param or "?") if size is None else str(size)
        for dim, size in zip(dims, shape, strict=True)
    ]
    named = [
        f"--dim {shlex.quote(dim.dim_param)}=SIZE"
        for dim, size in zip(dims, shape, strict=True)
        if size is None and dim.dim_param
    ]
    bind = f"bind its open sizes ({' '.join(dict.fromkeys(named))}), or " if named else ""
    return ModelError(
        f"input {name!r} has shape [{', '.join(sizes)}]; {bind}export the model with fixed ones"
    )


def bind_dimensions(model: onnx.ModelProto, dims: Mapping[str, int]) -> onnx.ModelProto:
    """The model with symbolic dimensions of its inputs fixed; the model itself without ``dims``.

    Raises ModelError for a name that no input's dimension has, and for a size below 1.
    """
    if not dims:
        return model
    bound = onnx.ModelProto()
    bound.CopyFrom(model)
    known: set[str] = set()
    for value in bound.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            known.update({dim.dim_param} if dim.dim_param else ())
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]
    for name, size in dims.items():
        if name not in known:
            listed = ", ".join(map(repr, sorted(known))) or "none"
            raise ModelError(f"no input has a dimension {name!r}; symbolic dimensions: {listed}")
        if size < 1:
            raise ModelError(f"dimension {name!r} is {size}; required at least 1")
    return bound
