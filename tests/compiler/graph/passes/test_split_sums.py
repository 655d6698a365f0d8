"""Long sums of few results go in parts, and mean the same."""

import numpy as np
import pytest

from dovetail.compiler.define.group import define_group
from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.groups import group_nodes
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Contract, contract
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.passes.split_sums import SplitSums
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.ir import Invoke
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.targets.gpu.tensor_cores import INTRINSICS
from tests.ptx.running import run_ptx


def dense(rows: int, columns: int, depth: int, dtype: str, total: DType) -> Graph:
    """``x @ w.T + bias``."""
    builder = GraphBuilder()
    kinds = TensorType((rows, depth), dtype), TensorType((columns, depth), dtype)
    names = [builder.input(name, kind) for name, kind in zip("xw", kinds, strict=True)]
    bias = builder.input("bias", TensorType((columns,), str(total)))
    product = contract(kinds, ((0, 1), (2, 1)), (0, 2), total)
    y = builder.node(product, tuple(names), "y", "dense")
    return builder.build((builder.node(Binary(BinaryFunction.ADD), (y, bias), "z", "bias"),))


def parts(graph: Graph) -> int:
    (operator,) = (each.operator for each in graph.nodes if isinstance(each.operator, Contract))
    return operator.sizes[-1] if len(operator.sizes) == 4 else 1


def inputs(graph: Graph) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    rng = np.random.default_rng(0)
    return {
        name: rng.integers(-9, 9, graph.types[name].shape).astype(graph.types[name].dtype.numpy)
        for name in graph.inputs
    }


def in_four(*_: int) -> int:
    return 4


@pytest.mark.parametrize(
    ("sizes", "dtype", "total", "expected"),
    [
        ((16, 256, 1024), "float16", DType.FLOAT32, 4),
        ((16, 256, 1024), "int8", DType.INT32, 4),
        ((16, 256, 1024), "float16", DType.FLOAT16, 1),  # parts would be rounded
        ((8, 256, 4096), "float32", DType.FLOAT32, 1),  # threads of a block share each
    ],
)
def test_sums_go_in_parts_and_stay_the_same(
    sizes: tuple[int, int, int], dtype: str, total: DType, expected: int
) -> None:
    before = dense(*sizes, dtype, total)
    after = SplitSums(in_four).run(before)
    assert parts(after) == expected
    given = inputs(before)
    np.testing.assert_array_equal(run(after, given)["z"], run(before, given)["z"])
    assert SplitSums(in_four).run(after) is after


def test_the_estimate_is_asked_about_rows_in_memory_and_elements() -> None:
    asked: list[tuple[int, ...]] = []

    def one(*numbers: int) -> int:
        asked.append(numbers)
        return 1

    before = dense(48, 32, 1024, "float16", DType.FLOAT32)
    assert SplitSums(one).run(before) is before
    assert asked == [(1, 48, 32, 1024, 2, 1024)]


def test_parts_are_on_tensor_cores_and_what_follows_is_in_the_second_kernel() -> None:
    graph = SplitSums(in_four).run(dense(16, 32, 512, "float16", DType.FLOAT32))
    first, second = group_nodes(graph)
    assert [type(each.operator).__name__ for each in second] == ["Reduce", "Binary"]
    given = inputs(graph)
    values = dict(given)
    for nodes in (first, second):
        definition = define_group(graph, nodes)
        function = schedule_group(definition, INTRINSICS).function
        if nodes is first:
            calls = {each.intrinsic for each in walk(function.body) if isinstance(each, Invoke)}
            assert {"mma_float16_float16_beside", "copy_float16"} <= calls
        named = {f"in{n}": values[name] for n, name in enumerate(definition.inputs)}
        values[definition.outputs[0]] = run_ptx(function, named)["out0"]
    np.testing.assert_array_equal(values["z"], run(graph, given)["z"])
