"""Calls of torch's operators with known tensors: their results are computed as they are converted.

Expected values of tests come from NumPy, by the formulas of PyTorch's documentation.
"""

from typing import Any

import numpy as np

from dovetail.compiler.dtypes import DType
from dovetail.compiler.front.torch.context import Context
from dovetail.compiler.front.torch.table import CONVERTERS
from dovetail.compiler.graph.formulas import Term
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder

__all__ = ["I", "X", "Y", "call", "check"]

RNG = np.random.default_rng(5)
X = RNG.normal(0, 2, (2, 3, 4)).astype(np.float32)
Y = RNG.normal(0, 2, (2, 3, 4)).astype(np.float32)
I = RNG.integers(-9, 9, (2, 3, 4))  # noqa: E741


def call(name: str, *given: Any, declared: Any = None, **named: Any) -> Any:
    """Results as arrays; ``declared``: the type of the first, by default that of the first
    array.
    """
    context = Context(GraphBuilder())

    def argument(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return context.term(value, DType(str(value.dtype)))
        if isinstance(value, tuple | list):
            return tuple(map(argument, value))
        return value

    def result(value: Any) -> Any:
        if isinstance(value, Term):
            if context.known(value.tensor):
                return context.known_value(value)
            graph = context.builder.build((value.tensor.name,))  # of nodes that stay as they are
            return run(graph, {})[value.tensor.name]
        return tuple(map(result, value)) if isinstance(value, tuple) else value

    flat = [*given, *named.values()]
    flat += [each for value in flat if isinstance(value, tuple | list) for each in value]
    first = next((each.dtype for each in flat if isinstance(each, np.ndarray)), np.float32)
    context.declared = (DType(str(np.dtype(declared or first))),)
    converted = {key: argument(value) for key, value in named.items()}
    return result(CONVERTERS[name](context, *map(argument, given), **converted))


def check(name: str, given: tuple[Any, ...], named: dict[str, Any], expected: Any) -> None:
    """Compare results, one or several, and their shapes; types where the expected is no float64."""
    found = call(name, *given, **named)
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    assert len(found) == len(expected)
    for own, wanted in zip(found, expected, strict=True):
        if isinstance(wanted, np.ndarray | np.generic) and wanted.dtype != np.float64:
            assert own.dtype == wanted.dtype
        np.testing.assert_allclose(own, wanted, rtol=2e-5, atol=2e-5, strict=False)
        assert np.shape(own) == np.shape(wanted)
