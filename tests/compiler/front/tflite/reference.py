"""LiteRT's reference kernels on a model."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

__all__ = ["litert"]

Array = NDArray[Any]
NO_REFERENCE = ("CEIL", "ELU", "ROUND")
"""Operators that LiteRT has no reference kernel of; its other one is taken."""


def litert(content: bytes, inputs: tuple[Array, ...], kind: str = "") -> list[Array]:
    """The outputs of a model, by its operators' reference kernels.

    Skips the test when LiteRT is not installed.
    """
    interpreter = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="ai-edge-litert, the reference, is not installed"
    )
    types = interpreter.OpResolverType
    without = types.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    runner = interpreter.Interpreter(
        model_content=content,
        experimental_op_resolver_type=without if kind in NO_REFERENCE else types.BUILTIN_REF,
        num_threads=1,
    )
    runner.allocate_tensors()
    for detail, value in zip(runner.get_input_details(), inputs, strict=True):
        runner.set_tensor(detail["index"], value)
    runner.invoke()
    return [np.array(runner.get_tensor(each["index"])) for each in runner.get_output_details()]
