"""Products of bytes that become ones for tensor cores, and mean the same."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import contract
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction, Cast
from dovetail.compiler.graph.passes.byte_pairs import BytePairs
from dovetail.compiler.graph.types import TensorType


def product(rows: int, inner: int, columns: int) -> Graph:
    """``(int32(a) - 3) @ (int32(b) + 5)``."""
    builder, wide, sizes = GraphBuilder(), [], ((rows, inner), (inner, columns))
    for name, size, zero in zip("ab", sizes, (3, -5), strict=True):
        x = builder.input(name, TensorType(size, "int8"))
        cast = builder.node(Cast(DType.INT32), (x,), f"{name}_wide", name)
        point = builder.constant(f"{name}_zero", np.int32(zero))
        wide.append(builder.node(Binary(BinaryFunction.SUB), (cast, point), f"{name}_own", name))
    kinds = TensorType(sizes[0], "int32"), TensorType(sizes[1], "int32")
    operator = contract(kinds, ((0, 1), (1, 2)), (0, 2), DType.INT32)
    return builder.build((builder.node(operator, tuple(wide), "y", "y"),))


@pytest.mark.parametrize(
    ("sizes", "changes"),
    [
        ((16, 16, 16), True),
        ((17, 20, 30), True),
        ((15, 16, 16), False),
        ((16, 15, 16), False),
        ((16, 16, 15), False),
    ],
)
def test_products_as_large_as_tensor_cores_take_are_of_bytes(
    sizes: tuple[int, int, int], changes: bool
) -> None:
    graph = product(*sizes)
    found = BytePairs().run(graph)
    assert (found is not graph) == changes
    rng = np.random.default_rng(0)
    inputs = {
        name: rng.integers(-128, 128, graph.types[name].shape).astype(np.int8) for name in "ab"
    }
    a, b = (inputs[name].astype(np.int32) for name in "ab")
    (output,) = found.outputs
    result = run(found, inputs)[output]
    np.testing.assert_array_equal(result, (a - 3) @ (b + 5))
