"""Sums of bytes start from what is added to them, whatever follows."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Contract
from dovetail.compiler.graph.operators.elementwise import (
    Binary,
    BinaryFunction,
    Cast,
    Unary,
    UnaryFunction,
)
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.expressions import Constant
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Store
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.cpu.machine import Machine
from dovetail.compiler.targets.cpu.llvm.compile import compile_functions
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS
from dovetail.compiler.targets.cpu.recorded import schedule_kernel

PRODUCT = Contract(
    (9, 3, 4, 2, 16),
    ((((0, 1),), ((1, 4), (2, 1))), (((3, 1),), ((1, 1),), ((4, 1),), ((2, 1),))),
    (((0, 1),), ((3, 1),), ((4, 1),)),
    DType.INT32,
)
"""Labels: row, group of 4 to sum, place in it, block of columns, place in it."""


def layer(*following: str) -> Graph:
    """A product of bytes, and what follows: a bias first, ``sum`` for the product once more."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((9, 12), "uint8"))
    w = builder.input("w", TensorType((2, 3, 16, 4), "int8"))
    b = builder.input("b", TensorType((1, 2, 16), "int32"))
    product = builder.node(PRODUCT, (x, w), "p", "p")
    y = product
    for name in following:
        match name:
            case "bias":
                y = builder.node(Binary(BinaryFunction.ADD), (y, b), "y", "y")
            case "swapped":
                y = builder.node(Binary(BinaryFunction.ADD), (b, y), "y", "y")
            case "sum":
                y = builder.node(Binary(BinaryFunction.ADD), (y, product), "y", "y")
            case "tanh":
                y = builder.node(Cast(DType.FLOAT32), (y,), "y", "y")
                y = builder.node(Unary(UnaryFunction.TANH), (y,), "y", "y")
            case _:
                y = builder.node(Unary(UnaryFunction.NEG), (y,), "y", "y")
    return builder.build((y,))


@pytest.mark.parametrize(
    ("following", "starts"),
    [
        (("bias",), False),
        (("bias", "neg"), True),
        (("swapped", "neg"), True),
        (("neg", "bias"), False),
        (("bias", "sum"), False),
        (("bias", "bias"), True),
        (("bias", "tanh"), False),
    ],
)
def test_sums_start_from_it_where_nothing_else_reads_them(
    following: tuple[str, ...], starts: bool
) -> None:
    graph = layer(*following)
    rng = np.random.default_rng(3)
    given = {
        "x": rng.integers(0, 256, (9, 12), np.uint8),
        "w": rng.integers(-128, 128, (2, 3, 16, 4)).astype(np.int8),
        "b": rng.integers(-(2**31), 2**31 - 1, (1, 2, 16)).astype(np.int32),
    }
    kernel = schedule_kernel(graph, graph.nodes, Machine())
    function = kernel.function
    verify(function)
    zeros = [
        each
        for each in walk(function.body)
        if isinstance(each, Store) and each.value == Constant(0, DType.INT32)
    ]
    if starts:
        assert not zeros
    arrays = [given[name] for name in kernel.definition.inputs]
    named = {buffer.name: array for buffer, array in zip(function.inputs, arrays, strict=True)}
    wanted = run(graph, given)[graph.outputs[0]]
    meant = interpret(function, named, intrinsics=INTRINSICS)[function.outputs[0].name]
    (found,) = compile_functions([function]).run(function.name, arrays)
    np.testing.assert_array_almost_equal(meant, wanted, 5)
    np.testing.assert_array_almost_equal(found, wanted, 5)
