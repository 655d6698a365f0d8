"""Written models by ONNX Runtime, against LiteRT and torch on the models they come from."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.front.onnx.write import onnx_model, write_model
from dovetail.compiler.front.source import Source
from dovetail.compiler.front.torch.source import TorchModel
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Binary, Bitcast, Unary
from dovetail.compiler.graph.operators.movement import Transpose
from dovetail.compiler.graph.operators.windows import WindowReduce
from dovetail.compiler.graph.types import TensorType

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from dovetail.compiler.front.tflite.source import TfliteModel
from tests.compiler.front.tflite.cases import Case, cases
from tests.compiler.front.tflite.compare import difference
from tests.compiler.front.tflite.networks import mobile_net
from tests.compiler.front.tflite.reference import litert

TORCH = Path(__file__).parents[2] / "torch" / "models"
UNKNOWN = {"BITCAST", "RIGHT_SHIFT"}
"""Operators that ONNX has nothing for, or nothing for numbers with a sign."""
Array = np.ndarray[Any, Any]


def by_runtime(model: onnx.ModelProto, inputs: dict[str, Array]) -> dict[str, Array]:
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def written(case: Case) -> str:
    """The fault of the written model; nothing if it gives LiteRT's results."""
    source = TfliteModel.of(case.content)
    try:
        model = onnx_model(source)
    except UnsupportedOperatorError as error:
        return "" if case.kind in UNKNOWN else str(error)
    names = [each.name for each in source.inputs]
    found = by_runtime(model, dict(zip(names, case.inputs, strict=True)))
    assert list(found) == [each.name for each in source.outputs]
    return difference(list(found.values()), litert(case.content, case.inputs, case.kind))


@pytest.mark.parametrize(
    "family",
    ["unary", "binary", "products", "pools", "reductions", "movement", "indexing", "recurrent"],
)
def test_operators_give_the_results_of_litert(family: str) -> None:
    plain = [each for each in cases(family) if not TfliteModel.of(each.content).quantizes]
    wrong = [
        f"{case.kind} of {case.dtype}, number {number}: {said}"
        for number, case in enumerate(plain)
        if (said := written(case))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_network_has_its_channels_first_and_the_operators_of_onnx() -> None:
    content = mobile_net()
    model = onnx_model(TfliteModel.of(content))
    image = np.random.default_rng(5).random((1, 16, 16, 3), np.float32)
    found = by_runtime(model, {"image": image})
    assert list(found) == ["shares", "mean"]
    assert difference(list(found.values()), litert(content, (image,))) == ""
    assert Counter(node.op_type for node in model.graph.node) == {
        "Transpose": 1,
        "Conv": 8,
        "Clip": 7,
        "Add": 2,
        "ReduceMean": 1,
        "MatMul": 1,
        "Softmax": 1,
    }
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    assert [node.name for node in convolutions][:3] == ["stem", "deep", "point"]
    assert all(len(node.input) == 3 for node in convolutions), "without its bias"


@pytest.mark.parametrize("name", ["pictures", "pictures_core", "words", "words_core", "quantised"])
def test_programs_give_the_results_of_torch(name: str) -> None:
    source = TorchModel.of(TORCH / f"{name}.pt2")
    with np.load(TORCH / f"{name}.npz") as archive:
        given, wanted = (
            [archive[each] for each in sorted(archive) if each.startswith(kind)]
            for kind in ("input", "output")
        )
    names = [each.name for each in source.inputs]
    found = by_runtime(onnx_model(source), dict(zip(names, given, strict=True)))
    assert list(found) == [each.name for each in source.outputs]
    step = 0.05 if name == "quantised" else 1e-5
    for own, torchs in zip(found.values(), wanted, strict=True):
        np.testing.assert_allclose(own, torchs, rtol=1e-5, atol=step)


def test_an_open_batch_becomes_one_and_a_buffer_an_output() -> None:
    model = onnx_model(TorchModel.of(TORCH / "counter.pt2"), batch=1)
    assert [each.name for each in model.graph.input] == ["x", "count"]
    assert [each.name for each in model.graph.output] == ["mul", "mul_1", "count.updated"]
    assert [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == [1, 6]


def graph(build: Any, *kinds: TensorType) -> Graph:
    builder = GraphBuilder()
    names = [builder.input(f"x{place}", kind) for place, kind in enumerate(kinds)]
    return builder.build(tuple(build(builder, *names)))


def test_what_is_transposed_on_both_sides_is_added_before() -> None:
    def build(b: GraphBuilder, x: str, y: str, scale: str) -> list[str]:
        turned = [b.node(Transpose((0, 2, 3, 1)), (each,), each, "turn") for each in (x, y)]
        total = b.node(Binary("add"), tuple(turned), "total", "total")
        factor = b.constant("factor", np.arange(3, dtype=np.float32))
        channels = b.node(Binary("mul"), (total, factor), "channels", "channels")
        gated = b.node(Binary("mul"), (channels, scale), "gated", "gated")
        return [b.node(Transpose((0, 3, 1, 2)), (gated,), "y", "back")]

    image, gate = TensorType((1, 3, 4, 5), "float32"), TensorType((1, 1, 1, 3), "float32")
    made = write_model(graph(build, image, image, gate))
    assert "Transpose" not in [node.op_type for node in made.graph.node]
    rng = np.random.default_rng(3)
    given = {
        f"x{n}": rng.random(each.shape, np.float32) for n, each in enumerate((image, image, gate))
    }
    (found,) = by_runtime(made, given).values()
    scale = np.arange(3, dtype=np.float32)[:, None, None] * given["x2"].reshape(3, 1, 1)
    np.testing.assert_allclose(found, (given["x0"] + given["x1"]) * scale, rtol=1e-6)


def test_a_number_of_more_dimensions_than_its_tensor_is_no_activation() -> None:
    def build(b: GraphBuilder, x: str) -> list[str]:
        low, high = (b.constant("limit", np.full((1, 1), each, np.float32)) for each in (0, 6))
        cut = b.node(Binary("max"), (x, low), "cut", "cut")
        return [b.node(Binary("min"), (cut, high), "y", "y")]

    x = np.array([-1, 2, 7], np.float32)
    (found,) = by_runtime(
        write_model(graph(build, TensorType((3,), "float32"))), {"x0": x}
    ).values()
    assert found.tolist() == [[0, 2, 6]]


@pytest.mark.parametrize(("count", "pads"), [("all", 1), ("inside", 0), ("other", 1)])
def test_an_average_is_of_a_window_or_of_what_is_inside(count: str, pads: int) -> None:
    """pads: 1 where zeros around the picture count, as in a sum that is divided by a number."""
    window = WindowReduce((2, 3), (2, 3), (1, 1), (1, 1), ((1, 0), (1, 1)), "add")
    ones = np.ones((1, 1, 4, 5), np.float32)
    counts = {"all": np.full((1,), 6, np.float32), "other": np.full((1,), 5, np.float32)}
    counts["inside"] = window.evaluate([ones])[0]

    def build(b: GraphBuilder, x: str) -> list[str]:
        total = b.node(window, (x,), "total", "total")
        return [b.node(Binary("div"), (total, b.constant("count", counts[count])), "y", "y")]

    own = graph(build, TensorType((1, 2, 4, 5), "float32"))
    made = write_model(own)
    pools = [node for node in made.graph.node if node.op_type == "AveragePool"]
    found = [a.i for node in pools for a in node.attribute if a.name == "count_include_pad"]
    assert found == [pads]
    given = {"x0": np.random.default_rng(5).random((1, 2, 4, 5), np.float32)}
    (average,) = by_runtime(made, given).values()
    np.testing.assert_allclose(average, run(own, given)["y"], rtol=1e-6)


def test_narrow_types_and_flags_are_computed() -> None:
    def build(b: GraphBuilder, x: str, flags: str) -> list[str]:
        total = b.node(Binary("add"), (x, x), "total", "total")
        less = b.node(Binary("lt"), (x, total), "less", "less")
        return [total, b.node(Binary("and"), (less, flags), "both", "both")]

    made = write_model(graph(build, TensorType((5,), "uint8"), TensorType((5,), "bool")))
    given = {
        "x0": np.array([0, 7, 100, 128, 255], np.uint8),
        "x1": np.array([True, True, False, True, True]),
    }
    total, both = by_runtime(made, given).values()
    assert total.tolist() == [0, 14, 200, 0, 254]
    assert both.tolist() == [False, True, False, False, False]


def test_what_onnx_lacks_is_named_with_its_node() -> None:
    def build(b: GraphBuilder, x: str) -> list[str]:
        bits = b.node(Bitcast("int32"), (x,), "bits", "my_node")
        return [b.node(Unary("neg"), (bits,), "y", "other")]

    with pytest.raises(
        UnsupportedOperatorError, match="node 'my_node': Bitcast cannot be written as"
    ):
        write_model(graph(build, TensorType((2,), "float32")))


def test_a_model_quantised_as_litert_does_is_left_as_it_is() -> None:
    case = next(each for each in cases("products") if each.dtype == "int8")
    source: Source = TfliteModel.of(case.content)
    with pytest.raises(UnsupportedOperatorError, match=r"node 'y0': .* dovetail compile takes it"):
        onnx_model(source)
