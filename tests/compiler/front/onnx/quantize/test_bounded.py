"""Evaluating a float model takes little, or is refused before it begins."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from dovetail.compiler.errors import CompileLimitError
from dovetail.compiler.front.onnx.quantize import QuantizeOptions, quantize_model
from dovetail.compiler.front.onnx.quantize.evaluate import SLOW, Evaluator
from dovetail.compiler.front.onnx.quantize.model import read_model
from dovetail.compiler.pipeline.limits import Limits
from tests.compiler.cli.commands import invoke, refused
from tests.fuzz.hostile import HOSTILE

FEW = Limits(work=1 << 24, memory_bytes=1 << 30)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (
            "Expand",
            r"calibration, node 'e' \(Expand\): it takes 17,179,869,186 operations; allowed",
        ),
        ("Tile", r"node 'y' \(Tile\): it takes 51,539,607,558 operations"),
        ("MaxPool", r"node 'y' \(MaxPool\): it takes 1,000,000,008,000,000,0\d\d operations"),
        ("ConvTranspose", r"\(ConvTranspose\): it takes [\d,]+ (operations|MiB)"),
        ("SplitToSequence", r"node 'e' \(Expand\): it takes"),
        ("RandomNormal", r"\(RandomNormal\): it takes about 30,517,578 MiB; allowed are 1,024 MiB"),
    ],
)
def test_a_model_that_asks_for_much_is_refused(name: str, found: str) -> None:
    model = HOSTILE[name]()
    sizes = {
        each.name: [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in model.graph.input
    }
    sample = {each: np.ones(size, np.float32) for each, size in sizes.items()}
    with pytest.raises(CompileLimitError, match=found):
        quantize_model(model, [sample], QuantizeOptions(limits=FEW))


def _read(text: str, limits: Limits = FEW) -> Evaluator:
    return Evaluator(read_model(onnx.parser.parse_model(text), limits))


PLAIN = '<ir_version: 9, opset_import: ["": 18]> m (float[1, 2, 6, 6] x) => (float[n] y) '


def test_sizes_that_follow_from_data_are_looked_at_when_they_are_known() -> None:
    text = PLAIN.replace(" x)", " x, int64[4] s)") + "{ y = Expand (x, s) }"
    evaluator = _read(text)
    given = {"x": np.ones((1, 2, 6, 6), np.float32)}
    found = dict(evaluator.run({**given, "s": np.array([3, 2, 6, 6])}))
    assert found["y"].shape == (3, 2, 6, 6)
    with pytest.raises(CompileLimitError, match=r"\(Expand\): it takes [\d,]+ operations"):
        dict(evaluator.run({**given, "s": np.array([3_000_000, 2, 6, 6])}))


@pytest.mark.parametrize(("node", "times"), [("MatMul (x, x)", 32), ("Add (x, x)", 1)])
def test_a_node_may_take_the_work_that_is_allowed_and_products_more(node: str, times: int) -> None:
    x, plain = {"x": np.ones((1, 2, 60, 60), np.float32)}, PLAIN.replace("6, 6", "60, 60")

    def run(work: int) -> None:
        dict(_read(f"{plain} {{ y = {node} }}", Limits(work=work)).run(x))

    with pytest.raises(CompileLimitError, match=rf"; allowed are {times};") as refused:
        run(1)
    found = re.search(r"takes ([\d,]+) operations", str(refused.value))
    assert found
    least = -(-int(found[1].replace(",", "")) // times)
    run(least)
    with pytest.raises(CompileLimitError, match="or allow more"):
        run(least - 1)


def test_a_shape_that_only_values_decide_is_allowed() -> None:
    x = np.arange(72, dtype=np.float32).reshape(1, 2, 6, 6)
    found = dict(_read(PLAIN + "{ n = NonZero (x) y = Cast <to = 1> (n) }").run({"x": x}))
    assert found["y"].shape == (4, 71)


def test_sequences_are_evaluated() -> None:
    body = "{ q = SplitToSequence <axis = 2> (x) y = ConcatFromSequence <axis = 3> (q) }"
    x = np.arange(72, dtype=np.float32).reshape(1, 2, 6, 6)
    found = dict(_read(PLAIN + body).run({"x": x}))
    np.testing.assert_array_equal(found["y"], x.reshape(1, 2, 1, 36))


def test_all_nodes_together_take_no_longer_than_allowed() -> None:
    evaluator = _read(PLAIN + "{ y = Relu (x) }", Limits(seconds=1e-9))
    with pytest.raises(CompileLimitError, match=r"calibration, node 'y' \(Relu\): .* allowed are"):
        dict(evaluator.run({"x": np.ones((1, 2, 6, 6), np.float32)}))


INDICES = {"i": np.array([[0, 1, 3], [0, 0, 5]])}
NODES = {
    "Resize": ('y = Resize <mode = "cubic"> (x, , , s)', {"s": np.array([1, 2, 9, 7])}),
    "LpPool": ("y = LpPool <kernel_shape = [2, 3], strides = [1, 2], p = 2> (x)", {}),
    "ScatterND": ("y = ScatterND (x, i, u)", {**INDICES, "u": np.ones((2, 6), np.float32)}),
    "GatherND": ("y = GatherND (x, i)", INDICES),
    "MaxPool": ("y, p = MaxPool <kernel_shape = [2, 2]> (x)", {}),
}


@pytest.mark.parametrize("kind", NODES)
def test_what_the_reference_is_slow_at_gives_what_it_gives(kind: str) -> None:
    assert kind in SLOW
    text, constants = NODES[kind]
    model = onnx.parser.parse_model(f"{PLAIN}{{ {text} }}")
    for name, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    x = np.random.default_rng(3).normal(size=(1, 2, 6, 6)).astype(np.float32)
    found = dict(Evaluator(read_model(model)).run({"x": x}))["y"]
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_the_command_has_the_limits_of_compiling(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(PLAIN + "{ y = Conv (x, w) }")
    weights = np.ones((3, 2, 1, 1), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "float.onnx")
    np.save(tmp_path / "x.npy", np.ones((1, 2, 6, 6), np.float32))
    rest = ("-o", tmp_path / "out.onnx", "--data", tmp_path / "x.npy")
    done = invoke("quantize", tmp_path / "float.onnx", *rest, "--most-compile-seconds", "1e-9")
    refused(done, "allow more (--most-compile-seconds)")
    assert not (tmp_path / "out.onnx").exists()
    assert invoke("quantize", tmp_path / "float.onnx", *rest).exit_code == 0
