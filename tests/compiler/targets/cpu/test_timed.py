"""Programs with clocks: they compute the same, and tell when each call ended."""

import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.targets.cpu.arch.table import ARCHES
from dovetail.compiler.targets.cpu.llvm.build import LlvmOptions
from dovetail.compiler.targets.cpu.timed import TimedPart, timed_part
from dovetail.runtime.native.content import load_program
from dovetail.runtime.profile.cpu import measure_calls

FLOAT = TensorProto.FLOAT
RDTSC = b"\x0f\x31"
MRS_CNTVCT = 0xD53BE040
"""``mrs x0, cntvct_el0``, by Arm's manual (DDI 0487): op0 3, op1 3, CRn 14, CRm 0, op2 2."""
ROWS, SMALL, LARGE = 64, 8, 512


@pytest.fixture(scope="module", params=[1, 2])
def timed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TimedPart:
    """A small product, then a larger one."""
    rng = np.random.default_rng(0)
    weights = {
        "a": rng.standard_normal((SMALL, LARGE)).astype(np.float32),
        "b": rng.standard_normal((LARGE, LARGE)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"], name="small"),
        helper.make_node("MatMul", ["p", "b"], ["y"], name="large"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [ROWS, SMALL])],
        [helper.make_tensor_value_info("y", FLOAT, [ROWS, LARGE])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    path = tmp_path_factory.mktemp("timed") / "model.onnx"
    onnx.save(model, path)
    options = LlvmOptions(threads=request.param, jobs=1)
    return timed_part(SourceModel.of(Path(path)).to_graph(), options)


def test_clocks_change_no_result_and_count_on(timed: TimedPart) -> None:
    program = load_program(timed.part)
    x = np.random.default_rng(1).standard_normal((ROWS, SMALL)).astype(np.float32)
    constants = {c.shape: c for c in program.constants}
    assert len(constants) == len(program.constants) == 2
    y = np.empty((ROWS, LARGE), np.float32)
    clocks = program.last_words(len(timed.calls) + 1)
    program.run([x], [y])
    first = clocks.copy()
    assert (np.diff(first) > 0).all()
    program.run([x], [y])
    assert clocks[0] > first[-1]
    rng = np.random.default_rng(0)
    a, b = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((SMALL, LARGE), (LARGE,) * 2)
    )
    np.testing.assert_allclose(y, x @ a @ b, rtol=1e-3, atol=1e-3)


def test_times_are_seconds_of_the_test_itself(timed: TimedPart) -> None:
    x = np.ones((ROWS, SMALL), np.float32)
    begin = time.perf_counter()
    found = measure_calls(timed.part, {"x": x}, len(timed.calls), 20)
    assert found.shape == (20, len(timed.calls))
    assert found.min() > 0
    assert found.sum() < time.perf_counter() - begin


def test_every_kind_of_cpu_has_a_clock() -> None:
    """Code that reads it, for a CPU of another kind too."""
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Neg", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", FLOAT, [4])],
            [helper.make_tensor_value_info("y", FLOAT, [4])],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
    )
    graph = SourceModel.of(model).to_graph()
    found = {}
    for arch in ARCHES:
        code = timed_part(graph, LlvmOptions(level=arch.baseline, jobs=1)).part.program.image.code
        found[arch.name] = bytes(code)
    assert RDTSC in found["x86-64"]
    words = np.frombuffer(found["aarch64"][: len(found["aarch64"]) // 4 * 4], "<u4")
    assert ((words & ~np.uint32(31)) == MRS_CNTVCT).any()


def test_calls_touch_their_operands(timed: TimedPart) -> None:
    sizes = {end - begin for call in timed.calls for _, begin, end in call.touched}
    assert {4 * ROWS * SMALL, 4 * ROWS * LARGE} <= sizes
    weights = [e - b for call in timed.calls for name, b, e in call.touched if "constant" in name]
    assert sum(weights) >= 4 * (SMALL + LARGE) * LARGE
