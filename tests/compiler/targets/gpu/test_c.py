"""Models and loop programs as plain C, compiled by a C compiler, against the CPU target, the loop
interpreter and NumPy.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from math import erf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.cli.export.c_program import OPTIONS, write_c
from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.targets.gpu.compile import compile_function
from dovetail.compiler.targets.gpu.target import PLAIN_C
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.native.content import array_type
from dovetail.runtime.session import Session

from ...loops.strategies import arrays_for, functions

COMPILER = shutil.which("gcc") or shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
ALLOWED = ("maybe-uninitialized", "unused-but-set-variable")
"""Warnings about programs that are so."""
Arrays = Mapping[str, NDArray[Any]]


def run_c(part: GpuPart, source: Path, inputs: Arrays) -> tuple[int, Arrays]:
    """Return code and outputs of the function in ``source``; every warning is an error."""
    library = source.with_suffix(f".{source.stat().st_mtime_ns}.so")
    strict = ["-Wall", "-Wextra", "-Werror", *(f"-Wno-{each}" for each in ALLOWED)]
    flags = (*OPTIONS.split(), "-O0", *strict, "-shared", "-fPIC")
    command = [str(COMPILER), *flags, str(source), "-o", str(library)]
    subprocess.run([*command, "-lm"], check=True, timeout=60)
    outputs = {each.name: np.empty(each.shape, array_type(each.dtype)) for each in part.outputs}
    given = [np.ascontiguousarray(inputs[each.name]) for each in part.inputs]
    memory = np.empty(part.memory_bytes + 16, np.uint8)
    start = -memory.ctypes.data % 16
    places = [each.ctypes.data for each in (*given, *outputs.values(), memory[start:])]
    function = getattr(ctypes.CDLL(str(library)), f"{source.stem}_run")
    return function(*map(ctypes.c_void_p, places)), outputs


def test_an_int8_model_in_c_gives_the_bytes_of_the_cpu(digits_model: Path, tmp_path: Path) -> None:
    (part,) = compile(digits_model, PLAIN_C).parts
    assert isinstance(part, GpuPart)
    reference = Session(compile(digits_model, "cpu"))
    image = np.random.default_rng(5).random((1, 1, 8, 8), np.float32)
    _, source = write_c(part, tmp_path, "digits")
    status, found = run_c(part, source, {"image": image})
    assert status == 0
    for name, want in reference.run({"image": image}).outputs.items():
        np.testing.assert_array_equal(found[name], want)


def test_floats_in_c_are_numpys(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    weights = rng.standard_normal((12, 5)).astype(np.float32)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x.1", [7, 12]), ("float", [7, 5]))
    ]
    nodes = [
        helper.make_node("MatMul", ["x.1", "w"], ["a"]),
        helper.make_node("Erf", ["a"], ["b"]),
        helper.make_node("Softmax", ["b"], ["float"]),
    ]
    graph = helper.make_graph(
        nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")]
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (part,) = compile(model, PLAIN_C).parts
    assert isinstance(part, GpuPart)
    _, source = write_c(part, tmp_path, "network")
    x = rng.standard_normal((7, 12)).astype(np.float32)
    status, found = run_c(part, source, {"x.1": x})
    powers = np.exp(np.vectorize(erf)(x.astype(float) @ weights))
    want = powers / powers.sum(1, keepdims=True)
    assert status == 0
    np.testing.assert_allclose(found["float"], want, rtol=1e-5)


@pytest.mark.parametrize(("most_work", "status"), [(1 << 40, 0), (50, 1)])
def test_a_loop_goes_on_while_its_condition_holds(
    most_work: int, status: int, tmp_path: Path
) -> None:
    """Doubles from 1 to beyond 100; with less work allowed it says so."""
    whole, single = TensorProto.INT64, TensorProto.FLOAT
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["w"]),
            helper.make_node("Less", ["w", "most"], ["again"]),
        ],
        "body",
        [value("n", whole, []), value("c", TensorProto.BOOL, []), value("v", single, [2])],
        [value("again", TensorProto.BOOL, []), value("w", single, [2])],
    )
    body.node[1].input[0] = "first"
    body.node.insert(1, helper.make_node("ReduceMax", ["w"], ["first"], keepdims=0))
    constants = [
        numpy_helper.from_array(np.array(each), name)
        for name, each in (("count", np.int64(1000)), ("yes", np.bool_(True)))
    ]
    constants.append(numpy_helper.from_array(np.array(100, np.float32), "most"))
    node = helper.make_node("Loop", ["count", "yes", "x"], ["y"], body=body)
    graph = helper.make_graph(
        [node], "g", [value("x", single, [2])], [value("y", single, [2])], constants
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = CompileOptions()
    options = replace(options, cpu=replace(options.cpu, most_work=most_work))
    (part,) = compile(model, PLAIN_C, options).parts
    assert isinstance(part, GpuPart)
    _, source = write_c(part, tmp_path, "loop")
    given, found = run_c(part, source, {"x": np.array([1, 0.5], np.float32)})
    assert given == status
    if not status:
        np.testing.assert_array_equal(found["y"], np.array([128, 64], np.float32))


def agree(function: Function, folder: Path) -> None:
    """Hold a loop program in C to what the interpreter makes of it."""
    inputs = arrays_for(function)
    part = compile_function(function, PLAIN_C.name, PLAIN_C.backend)
    _, source = write_c(part, folder, "program")
    _, found = run_c(part, source, inputs)
    for buffer in function.outputs:
        array, want = found[buffer.name], interpret(function, inputs)[buffer.name]
        if buffer.dtype.is_float:
            np.testing.assert_allclose(
                array.astype(float), want.astype(float), rtol=2e-5, atol=1e-5, equal_nan=True
            )
        else:
            np.testing.assert_array_equal(array, want)


@given(function=functions(dtypes=tuple(DType), max_size=9))
@settings(max_examples=5)
def test_random_programs_in_c_equal_the_interpreter(
    tmp_path_factory: pytest.TempPathFactory, function: Function
) -> None:
    agree(function, tmp_path_factory.mktemp("c"))


def test_blocks_and_threads_are_refused() -> None:
    body = 'function "f"\n  output y: float32[8]\n  for i in 8 thread:\n    y[i] = 1.0:float32'
    with pytest.raises(GraphError, match="C has no blocks and threads"):
        compile_function(parse(body), PLAIN_C.name, PLAIN_C.backend)
