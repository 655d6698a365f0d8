"""Written loops by ONNX Runtime, against the loops that were read."""

import numpy as np
import onnx
import onnxruntime
import pytest

from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.front.onnx.write import onnx_model, write_model
from dovetail.compiler.graph.interpreter import run
from tests.compiler.targets.cpu.executor.test_loops import numbers, parsed, scan

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from dovetail.compiler.front.tflite.source import TfliteModel
from tests.compiler.front.tflite.test_control import looping

LOOPS = {
    "nested": """
    m (float[4, 5, 2] xs, float[2] h0, float[2, 2] w) => (float[2] h, float[a, b] hs, float[n] ys) {
      o = ReduceSum <keepdims = 0> (xs)
      h, hs, ys = Scan <num_scan_inputs = 1, body = outer (float[2] h, float[5, 2] x) =>
        (float[2] h2, float[2] h3, float[5, 2] y) {
          h1, y = Scan <num_scan_inputs = 1, body = inner (float[2] g, float[2] p) =>
            (float[2] g1, float[2] g2) {
              r = MatMul (w, g) s = Sum (r, p, h, o) g1 = Tanh (s) g2 = Mul (g1, o)
            }> (h, x)
          h2 = Identity (h1) h3 = Mul (h1, o)
        }> (h0, xs)
    }""",
    "branches": """
    m (float[3] x) => (float[3] y, float[k, 3] all) {
      n = Constant <value = int64 {5}> () two = Constant <value = int64 {2}> ()
      y, all = Loop <body = b (int64 i, bool go, float[3] a) => (bool on, float[3] r, float[3] c) {
          on = Identity (go) odd = Mod (i, two) is_odd = Cast <to = 9> (odd)
          r = If (is_odd) <then_branch = p () => (float[3] p1) { p1 = Sub (a, x) },
            else_branch = q () => (float[3] q1) { f = Cast <to = 1> (i) q1 = Add (a, f) }>
          c = Mul (r, a) }> (n, , x)
    }""",
    "until": """
    m (float[2] x) => (float[2] y, int64 z) {
      n = Constant <value = int64 {100}> () zero = Constant <value = int64 {0}> ()
      y, z = Loop <body = b (int64 i, bool go, float[2] a, int64 c) =>
        (bool on, float[2] r, int64 d) {
          r = Sub (a, x) s = ReduceSum <keepdims = 0> (r) least = Constant <value = float {-7}> ()
          on = Less (least, s) d = Add (c, i) }> (n, , x, zero)
    }""",
}


def check(model: onnx.ModelProto) -> None:
    """The model that is written has one loop outside, and gives what the model gives."""
    inputs = {
        each.name: numbers(*(dim.dim_value for dim in each.type.tensor_type.shape.dim)) + 1
        for each in model.graph.input
    }
    again = write_model(SourceModel(model).to_graph(1).graph)
    onnx.checker.check_model(again, full_check=True)
    assert [node.op_type for node in again.graph.node].count("Loop") == 1
    found, wanted = (
        onnxruntime.InferenceSession(each.SerializeToString()).run(None, inputs)
        for each in (again, model)
    )
    for own, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_written_with_what_they_read(name: str) -> None:
    check(parsed(LOOPS[name]))


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("reversed_", [0, 1])
def test_slices_are_taken_and_collected_in_their_directions(backward: int, reversed_: int) -> None:
    ways = f", scan_input_directions = [{backward}], scan_output_directions = [{reversed_}]"
    check(scan(7, ways))


@pytest.mark.parametrize("least", [0, 3, 9])
def test_a_while_of_tensorflow_lite_becomes_a_loop(least: int) -> None:
    source = TfliteModel.of(looping())
    again = onnx_model(source)
    onnx.checker.check_model(again, full_check=True)
    names = [each.name for each in source.inputs]
    given = np.asarray(least, np.int32), np.arange(3, dtype=np.float32)
    inputs = dict(zip(names, given, strict=True))
    found = onnxruntime.InferenceSession(again.SerializeToString()).run(None, inputs)
    wanted = run(source.to_graph().graph, inputs)
    assert len(found) == len(source.outputs)
    for each, own in zip(source.outputs, found, strict=True):
        np.testing.assert_array_equal(own, wanted[each.name])
