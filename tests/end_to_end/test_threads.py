"""Results do not depend on the number of threads: each element is computed by one of them, in the
order of one thread alone.
"""

import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from dovetail.compiler import compile
from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Convolution
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions, CpuOptions
from dovetail.compiler.targets.cpu.segment import LlvmOptions, compile_segment
from dovetail.runtime import run
from dovetail.runtime.module import Module

SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"
F32 = DType.FLOAT32


def loaded(name: str) -> tuple[Path, dict[str, NDArray[np.float32]]]:
    """A model's file and inputs for it."""
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{path} is missing")
    rng, graph = np.random.default_rng(1), onnx.load(path).graph
    weights = {each.name for each in graph.initializer}
    return path, {
        value.name: rng.standard_normal(
            [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in graph.input
        if value.name not in weights
    }


def outputs(module: Module, inputs: dict[str, NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    return list(run(module, inputs, device="cpu").outputs.values())


@pytest.mark.parametrize(
    ("name", "threads"),
    [("cifar/resnet20_cifar10.onnx", 5), ("ultraface/ultraface_rfb_320.onnx", 2)],
)
def test_a_network_gives_the_same_on_any_number_of_threads(name: str, threads: int) -> None:
    path, inputs = loaded(name)
    expected, several = (
        outputs(compile(path, "cpu", CompileOptions(cpu=CpuOptions(threads=number))), inputs)
        for number in (1, threads)
    )
    for found, each in zip(several, expected, strict=True):
        np.testing.assert_array_equal(found, each)


def convolution(channels: int, size: int, kernel: int, groups: int) -> Graph:
    """With a residual sum."""
    builder = GraphBuilder()
    rng = np.random.default_rng(channels + size)
    pad = kernel // 2
    x = builder.input("x", TensorType((1, channels, size, size), F32))
    shape = (channels, channels // groups, kernel, kernel)
    w = builder.constant("w", rng.standard_normal(shape).astype(np.float32))
    operator = Convolution((1, 1), (1, 1), ((pad, pad),) * 2, (1, 1), groups, F32)
    y = builder.node(operator, (x, w), "y", "conv")
    z = builder.node(operator, (y, w), "z", "conv2")
    return builder.build([builder.node(Binary(BinaryFunction.ADD), (z, x), "sum", "sum")])


@pytest.mark.parametrize(
    ("threads", "channels", "size", "kernel", "groups"),
    [
        *((count, 32, 29, *rest) for count in (2, 4) for rest in ((1, 1), (3, 32))),
        *((4, 64, 54, 3, 1), (2, 128, 27, 3, 1), (2, 256, 7, 1, 1), (4, 256, 7, 1, 1)),
    ],
)
def test_layers_shared_by_rows_or_by_channels_give_the_same(
    threads: int, channels: int, size: int, kernel: int, groups: int
) -> None:
    graph = convolution(channels, size, kernel, groups)
    x = np.random.default_rng(0).standard_normal((1, channels, size, size)).astype(np.float32)
    expected = compile_segment(graph, LlvmOptions()).run({"x": x})["sum"]
    found = compile_segment(graph, LlvmOptions(threads=threads)).run({"x": x})["sum"]
    np.testing.assert_array_equal(found, expected)


def test_programs_on_several_threads_each_run_at_the_same_time() -> None:
    """As many callers as programs, whose pools differ in size: nobody waits for ever."""
    graph = convolution(32, 29, 1, 1)
    x = np.random.default_rng(0).standard_normal((1, 32, 29, 29)).astype(np.float32)
    expected = compile_segment(graph, LlvmOptions()).run({"x": x})["sum"]
    segments = [compile_segment(graph, LlvmOptions(threads=count)) for count in (2, 3, 4, 2)]
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(100):
            if not np.array_equal(segments[number].run({"x": x})["sum"], expected):
                wrong.append(number)

    callers = [
        threading.Thread(target=call, args=(number,), daemon=True)
        for number in range(len(segments))
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
