"""Arrays, lists and None, as a model's caller sees them, and the tensors that carry them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, UnsupportedOperatorError
from ..front.onnx.context import OptionalValue, Tensor, TensorSequence, Value, narrow_of
from ..graph.types import TensorType

__all__ = ["Argument", "arguments_key", "flatten", "restore"]

Array = NDArray[Any]
Argument = Any
"""An array, a list of arguments, or None."""


def flatten(
    name: str, argument: Argument, declare: Callable[[str, TensorType], str]
) -> tuple[Value, dict[str, Array]]:
    """The value that stands for ``argument``, and its arrays by the names of their tensors.

    Raises UnsupportedOperatorError for text.
    """
    if argument is None:
        return OptionalValue(None), {}
    if isinstance(argument, list | tuple):
        elements, arrays = [], {}
        for place, each in enumerate(argument):
            value, inner = flatten(f"{name}.{place}", each, declare)
            elements.append(value)
            arrays.update(inner)
        return TensorSequence(tuple(elements)), arrays
    array = np.asarray(argument)
    narrow = narrow_of(array)
    if narrow is not None:
        array = array.view(np.uint8)
    if array.dtype.kind in "OUS":
        raise UnsupportedOperatorError(f"input {name!r} holds text; required numbers or bool")
    kind = TensorType(array.shape, str(array.dtype))
    declared = declare(name, kind)
    return Tensor(declared, kind, narrow), {declared: array}


def restore(value: Value | None, arrays: Mapping[str, Array]) -> Argument:
    """``value`` as the caller sees it."""
    match value:
        case None:
            return None
        case Tensor(name=name, narrow=narrow):
            return arrays[name] if narrow is None else arrays[name].view(narrow.numpy)
        case TensorSequence(elements=elements):
            return [restore(each, arrays) for each in elements]
        case OptionalValue(value=inner):
            return restore(inner, arrays)
        case _:
            raise ModelError(f"{value!r} is not a value")


def arguments_key(arguments: Mapping[str, Argument]) -> tuple[object, ...]:
    """Equal for arguments of the same shapes and element types."""
    return tuple((name, _key(each)) for name, each in sorted(arguments.items()))


def _key(argument: Argument) -> object:
    if argument is None:
        return None
    if isinstance(argument, list | tuple):
        return tuple(_key(each) for each in argument)
    array = np.asarray(argument)
    return (array.shape, str(array.dtype))
