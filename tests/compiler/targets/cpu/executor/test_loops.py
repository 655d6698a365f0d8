"""Loops of models as loops of machine code, against ONNX Runtime and NumPy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from dovetail.compiler import compile
from dovetail.compiler.checking.kernels import check_model
from dovetail.compiler.errors import WorkLimitError
from dovetail.compiler.front.onnx.context import Tensor
from dovetail.compiler.front.onnx.model import import_model
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.repetition import Repeat
from dovetail.compiler.graph.parse import parse_text
from dovetail.compiler.graph.slices import slice_graph
from dovetail.compiler.graph.text import to_text
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions, CpuOptions
from dovetail.compiler.targets.cpu.executor.executor import Executor
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.runtime import Session
from dovetail.runtime.errors import WorkLimitError as RunLimitError
from dovetail.runtime.module import Module
from dovetail.runtime.native.part import CpuPart

Arrays = Mapping[str, Any]

LEAKY = """
h2 = Mul(h, decay) s = Add(h2, x) h1 = Tanh(s) y = Identity(h1)
"""


def parsed(text: str, opset: int = 18) -> onnx.ModelProto:
    head = f'<ir_version: 9, opset_import: ["": {opset}]>'
    return onnx.parser.parse_model(head + text)


def check(model: onnx.ModelProto, inputs: Arrays, rolled: bool = True) -> Executor:
    executor = Executor(model)
    found = executor.run(inputs)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_outputs()]
    for name, wanted in zip(names, session.run(names, dict(inputs)), strict=True):
        assert found[name].dtype == wanted.dtype
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-6, err_msg=name)
    assert bool(repeats(model, inputs)) == rolled
    return executor


def repeats(model: onnx.ModelProto, inputs: Arrays) -> list[Repeat]:
    """The loops of the imported graph, inner ones as well."""
    builder = GraphBuilder()
    values = {}
    for name, array in inputs.items():
        kind = TensorType(array.shape, str(array.dtype))
        values[name] = Tensor(builder.input(name, kind), kind)

    def resolve(name: str) -> Any:
        graph = slice_graph(builder, (name,))
        return run(graph, {each: inputs[each] for each in graph.inputs})[name]

    import_model(model, values, builder, resolve)
    found, graphs = [], [builder.nodes]
    while graphs:
        for node in graphs.pop():
            if isinstance(node.operator, Repeat):
                found.append(node.operator)
                graphs.append(list(node.operator.body.nodes))
    return found


def scan(steps: int, attributes: str = "", x: str = "") -> onnx.ModelProto:
    return parsed(f"""
    m (float[3] h0, float[3] decay, float[{x or f"{steps}, 3"}] xs)
      => (float[3] h, float[a, b] ys) {{
      h, ys = Scan <num_scan_inputs = 1, body = b (float[3] h, float[3] x) =>
        (float[3] h1, float[3] y) {{ {LEAKY} }} {attributes}> (h0, xs)
    }}""")


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def test_a_scan_of_100_000_steps_runs() -> None:
    h0, decay, xs = numbers(3), np.full(3, 0.5, np.float32), numbers(100_000, 3)
    check(scan(100_000), {"h0": h0, "decay": decay, "xs": xs})


def code_bytes(module: Module) -> int:
    (part,) = module.parts
    assert isinstance(part, CpuPart)
    return len(part.program.image.code)


def test_code_does_not_grow_with_the_iterations() -> None:
    sizes = [code_bytes(compile(scan(n), "cpu")) for n in (2, 200, 20_000)]
    assert max(sizes) - min(sizes) < 128


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("reversed_", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_scans_in_all_directions(backward: int, reversed_: int, axis: int) -> None:
    attributes = (
        f", scan_input_axes = [{axis}], scan_output_axes = [{1 - axis}], "
        f"scan_input_directions = [{backward}], scan_output_directions = [{reversed_}]"
    )
    model = scan(7, attributes, "3, 7" if axis else "7, 3")
    xs = numbers(3, 7) if axis else numbers(7, 3)
    check(model, {"h0": numbers(3), "decay": numbers(3), "xs": xs})


@pytest.mark.parametrize("n", [0, 1, 2, 9, 100])
@pytest.mark.parametrize("c", [False, True])
def test_a_condition_ends_a_loop(n: int, c: bool) -> None:
    model = parsed("""
    m (int64 n, bool c, float[2] v) => (float[2] w, float sum) {
      zero = Constant <value = float {0}> ()
      w, sum = Loop <body = b (int64 i, bool go, float[2] a, float s) =>
        (bool on, float[2] a1, float s1) {
          one = Constant <value = float {1.25}> () a1 = Mul (a, one)
          s1 = ReduceSum <keepdims = 0> (a1) ten = Constant <value = float {10}> ()
          on = Less (s1, ten) }> (n, c, v, zero)
    }""")
    inputs = {"n": np.array(n), "c": np.array(c), "v": np.ones(2, np.float32)}
    check(model, inputs, rolled=c and n > 1)


@pytest.mark.parametrize("n", [3, 50])
def test_what_a_loop_with_a_condition_collects_is_as_long_as_it_ran(n: int) -> None:
    model = parsed("""
    m (int64 n, float[2] v) => (float[2] w, float[k, 2] all) {
      w, all = Loop <body = b (int64 i, bool go, float[2] a) => (bool on, float[2] a1, float[2] y) {
          f = Cast <to = 1> (i) y = Add (a, f) a1 = Add (a, a)
          s = ReduceSum <keepdims = 0> (a1) most = Constant <value = float {500}> ()
          on = Less (s, most) }> (n, , v)
    }""")
    executor = check(model, {"n": np.array(n), "v": np.ones(2, np.float32)})
    again = executor.run({"n": np.array(n), "v": np.full(2, 40, np.float32)})
    assert again["all"].shape == (3, 2)


def test_loops_in_loops_read_what_is_around_them() -> None:
    model = parsed("""
    m (float[4, 5, 2] xs, float[2, 2] w, float[2] h0)
      => (float[2] h, float[a, b] hs, float[c, d, e] ys) {
      offset = ReduceSum <keepdims = 0> (xs)
      h, hs, ys = Scan <num_scan_inputs = 1, body = outer (float[2] h, float[5, 2] x) =>
        (float[2] h2, float[2] h3, float[5, 2] y) {
          scaled = Add (h, offset)
          h1, y = Scan <num_scan_inputs = 1, body = inner (float[2] g, float[2] p) =>
            (float[2] g1, float[2] g2) {
              row = Unsqueeze (g, axes) prod = MatMul (row, w) flat = Squeeze (prod, axes)
              sum = Add (flat, p) plus = Add (sum, h) g1 = Tanh (plus) g2 = Mul (g1, scaled)
            }> (h, x)
          h2 = Identity (h1) h3 = Mul (h1, offset)
        }> (h0, xs)
    }""")
    axes = onnx.numpy_helper.from_array(np.array([0]), "axes")
    model.graph.initializer.append(axes)
    check(model, {"xs": numbers(4, 5, 2), "w": numbers(2, 2), "h0": numbers(2)})


def test_states_that_swap_and_states_that_stay() -> None:
    model = parsed("""
    m (int64 n, float[3] p, float[3] q, float[3] r)
      => (float[3] a, float[3] b, float[3] c, float[k, 3] d) {
      a, b, c, d = Loop <body = body (int64 i, bool go, float[3] x, float[3] y, float[3] z) =>
        (bool on, float[3] y1, float[3] x1, float[3] z1, float[3] w) {
          on = Identity (go) x1 = Identity (x) y1 = Identity (y) z1 = Identity (z)
          w = Sub (x, z) }> (n, , p, q, r)
    }""")
    for n in (2, 3, 8):
        inputs = {"n": np.array(n), "p": numbers(3), "q": numbers(3) + 1, "r": numbers(3) + 2}
        check(model, inputs)


@pytest.mark.parametrize("n", [2, 3, 30])
def test_branches_in_a_loop_are_chosen_as_it_runs(n: int) -> None:
    model = parsed("""
    m (int64 n, float[3] x) => (float[3] y, float[k, 3] all, float[k] tags) {
      y, all, tags = Loop <body = b (int64 i, bool go, float[3] a)
        => (bool on, float[3] a1, float[3] c, float t) {
          on = Identity (go) two = Constant <value = int64 {2}> () odd = Mod (i, two)
          is_odd = Cast <to = 9> (odd)
          a1, t = If (is_odd) <
            then_branch = p () => (float[3] p1, float p2) {
              p1 = Sub (a, x) p2 = ReduceSum <keepdims = 0> (a) },
            else_branch = q () => (float[3] q1, float q2) {
              f = Cast <to = 1> (i) q1 = Add (a, f) s = ReduceMax <keepdims = 0> (q1)
              zero = Constant <value = float {0}> () above = Less (zero, s)
              q2 = If (above) <
                then_branch = r () => (float r1) { r1 = Neg (s) },
                else_branch = t () => (float t1) { t1 = Mul (s, f) }> }>
          c = Mul (a1, a)
        }> (n, , x)
    }""")
    check(model, {"n": np.array(n), "x": numbers(3) - 1})


def test_a_loop_of_known_values_is_run_while_the_model_is_imported() -> None:
    model = parsed("""
    m (float[2] x) => (float[k] y) {
      n = Constant <value = int64 {100}> () two = Constant <value = int64[1] {2}> ()
      s = Loop <body = b (int64 i, bool go, int64[1] s) => (bool on, int64[1] s1) {
          s1 = Add (s, s) most = Constant <value = int64 {1000}> () flat = Squeeze (s1)
          on = Less (flat, most) }> (n, , two)
      y = Expand (first, s)
    }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(1, np.float32), "first"))
    assert Executor(model).run({"x": np.zeros(2, np.float32)})["y"].shape == (1024,)
    assert compile(model, "cpu").outputs[0].shape == (1024,)


def test_bodies_whose_shapes_depend_on_the_iteration_are_written_out() -> None:
    model = parsed("""
    m (int64 n, float[6] x) => (float[k] y, float[j] sums) {
      y, sums = Loop <body = b (int64 i, bool go, float[l] s) => (bool on, float[m] s1, float t) {
          on = Identity (go) s1 = Concat <axis = 0> (s, x) zero = Constant <value = int64[1] {0}> ()
          end = Unsqueeze (i, zero) part = Slice (x, zero, end)
          t = ReduceSum <keepdims = 0> (part) }> (n, , x)
    }""")
    check(model, {"n": np.array(5), "x": numbers(6)}, rolled=False)


ENDLESS = """
m (float[2] x) => (float[2] y) {
  y = Loop <body = b (int64 i, bool go, float[2] a) => (bool on, float[2] a1) {
      a1 = Mul (a, a) s = ReduceSum <keepdims = 0> (a1) m = Constant <value = float {-1}> ()
      on = Less (m, s) }> (, , x)
}"""


def test_a_loop_that_does_not_end_is_an_error() -> None:
    model = parsed(ENDLESS)
    executor = Executor(model, LlvmOptions(most_work=10**6))
    with pytest.raises(WorkLimitError, match="node 'y': its loop has not ended after 1e\\+06"):
        executor.run({"x": np.zeros(2, np.float32)})
    found = executor.run({"x": np.full(2, np.nan, np.float32)})
    assert np.isnan(found["y"]).all()


def test_a_saved_module_ends_as_well() -> None:
    module = compile(parsed(ENDLESS), "cpu", CompileOptions(cpu=CpuOptions(most_work=10**6)))
    with pytest.raises(RunLimitError, match="node 'y': its loop has not ended"):
        Session(module, "cpu").run(np.zeros(2, np.float32))


def test_too_many_iterations_are_refused_before_they_run() -> None:
    model = parsed("""
    m (int64 n, float[2] x) => (float[2] y) {
      y = Loop <body = b (int64 i, bool go, float[2] a) => (bool on, float[2] a1) {
          on = Identity (go) a1 = Add (a, x) }> (n, , x)
    }""")
    executor = Executor(model)
    x = np.ones(2, np.float32)
    with pytest.raises(WorkLimitError, match=r"of them in y; allowed are 1e\+15"):
        executor.run({"n": np.array(2**62), "x": x})
    found = executor.run({"n": np.array(1_000_000), "x": x})
    np.testing.assert_array_equal(found["y"], [1_000_001] * 2)


def test_loops_print_and_parse_back() -> None:
    inputs = {"h0": numbers(3), "decay": numbers(3), "xs": numbers(7, 3)}
    builder = GraphBuilder()
    values = {}
    for name, array in inputs.items():
        kind = TensorType(array.shape, str(array.dtype))
        values[name] = Tensor(builder.input(name, kind), kind)
    outputs = import_model(scan(7), values, builder)
    graph = builder.build(tuple(each.name for _, each in outputs))
    text = to_text(graph)
    again = parse_text(text)
    assert to_text(again) == text
    for name in graph.outputs:
        np.testing.assert_array_equal(run(graph, inputs)[name], run(again, inputs)[name])


def test_loops_are_checked_by_what_comes_out_of_them() -> None:
    inputs = {"h0": numbers(3), "decay": numbers(3), "xs": numbers(7, 3)}
    done = check_model(scan(7), inputs)
    assert [each.tensor for each in done.outputs] == ["h", "ys"]
    assert done.worst < 1e-6
