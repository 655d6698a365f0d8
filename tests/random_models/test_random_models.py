"""A few random models; ``make fuzz-graphs`` runs many more."""

import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from dovetail.compiler import compile
from dovetail.compiler.targets.vta.draft import Draft, make_draft
from dovetail.compiler.targets.vta.plan import Plan
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.isa.errors import DovetailError
from dovetail.runtime import run
from dovetail.runtime.result import RunResult
from tests.exact_peer import SESSION

from . import plans, ready, relations
from .compare import KEPT, SOFT, FoundError, RefusedError, check, references, uncertain
from .draw import WHOLE, Sample, draw, wraps
from .memories import drawn_config
from .minimise import minimised
from .plans import drawn_plans
from .relations import check_related, related
from .running import compute


@pytest.mark.parametrize(
    ("target", "seeds"),
    [
        *(("cpu", (3, *range(10, 17))), ("cpu", (25, 26, *range(30, 37)))),
        ("vta:tiny", (3, 10, 11, 15, 16, 25, 33, 43, 46)),
    ],
)
def test_targets_give_what_onnx_runtime_gives(
    target: str, seeds: Iterable[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    run = 0
    for seed in seeds:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with drawn_plans(seed):
                    check(draw(seed), target)
            run += 1
        except RefusedError:
            pass
    assert run >= 4


def test_accelerators_with_small_memories_give_what_onnx_runtime_gives() -> None:
    configs = [drawn_config(seed) for seed in (6, 8, 31)]
    assert len({replace(each, name="") for each in configs}) == 3
    for seed, config in zip((6, 8, 31), configs, strict=True):
        with warnings.catch_warnings(), drawn_plans(seed):
            warnings.simplefilter("ignore")
            check(draw(seed), config)


def test_a_model_is_the_same_each_time() -> None:
    assert all(draw(seed).model == draw(seed).model for seed in range(10))


def test_inputs_are_no_larger_than_what_nodes_may_give() -> None:
    assert draw(1300050).inputs  # whose first shape would have 8,640 elements


def test_what_onnx_runtime_does_not_run_is_no_difference() -> None:
    sample = draw(25)
    sample.model.graph.node[-1].input[0] = "nothing"
    with pytest.raises(RefusedError, match="ONNX Runtime does not run"):
        references(sample.model, sample.inputs[0])


@pytest.mark.parametrize(
    "sum_of_products",
    ["MatMulInteger (x, w, zero, none)", "com.microsoft.QGemm (x, one, zero, w, one, none)"],
)
def test_sums_of_onnx_runtime_are_exact_on_every_cpu(
    sum_of_products: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without instructions for them, pairs of products are added in 16 bits, which saturate."""
    monkeypatch.setattr(onnxruntime, "InferenceSession", SESSION)
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18, "com.microsoft": 1]>
    m (uint8[1, 4] x) => (y) <float one = {{1.0}}, uint8 zero = {{0}}, int8 none = {{0}}> {{
      y = {sum_of_products}
    }}""")
    weights = onnx.numpy_helper.from_array(np.full((4, 16), 127, np.int8), "w")
    model.graph.initializer.append(weights)
    for optimised in (False, True):
        (found,) = compute(model, {"x": np.full((1, 4), 255, np.uint8)}, optimised=optimised)
        assert (found == 4 * 255 * 127).all()


@pytest.mark.parametrize("second", ["v", "w"])
def test_sums_are_exact_where_layers_share_weights_or_a_zero_point(
    second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnxruntime, "InferenceSession", SESSION)
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]>
    m (uint8[1, 2] x) => (uint8[1, 2] h, uint8[1, 2] i)
    <float s = {{1.0}}, float t = {{800.0}}, uint8 u = {{0}}, int8 z = {{0}},
     int8[2, 2] v = {{127, 127, 127, 127}}, int8[2, 2] w = {{127, 127, 127, 127}}> {{
      r = DequantizeLinear (x, s, u)
      p = DequantizeLinear (v, s, z)
      q = DequantizeLinear ({second}, s, z)
      f = MatMul (r, p)
      g = MatMul (r, q)
      h = QuantizeLinear (f, t, u)
      i = QuantizeLinear (g, t, u)
    }}""")
    for found in compute(model, {"x": np.array([[255, 255]], np.uint8)}, optimised=True):
        assert (found == 81).all()  # 2 * 255 * 127 / 800; at most 32,767 / 800 if it saturates


@pytest.mark.parametrize(("scale", "wrong"), [(1 / 4000, True), (1 / 1000, False)])
def test_a_softmax_whose_zeros_are_onnx_runtimes_is_noticed(scale: float, wrong: bool) -> None:
    """Whatever its result is named in the other model."""
    constants = {"s": np.float32(0.01), "z": np.uint8(0), "t": np.float32(scale)}
    kind, shape = onnx.TensorProto.UINT8, (1, 16)
    inputs = ["x", "s", "z", "t", "z"]
    node = helper.make_node(
        "QLinearSoftmax", inputs, ["y"], domain="com.microsoft", axis=1, opset=13
    )
    models = []
    for nodes in ([node], [helper.make_node("Identity", ["x"], ["q"])]):
        nodes.append(helper.make_node("Max", [nodes[0].output[0], "high"], ["out"]))
        given, found = (helper.make_tensor_value_info(n, kind, shape) for n in ("x", "out"))
        weights = {**constants, "high": np.full(shape, 255, np.uint8)}
        graph = helper.make_graph(
            *(nodes, "g", [given], [found]),
            [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        models.append(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    x = np.arange(16, dtype=np.uint8).reshape(shape)
    assert wraps(*models, {"x": x}) == wrong


def test_plans_drawn_differ_and_give_what_onnx_runtime_gives() -> None:
    keys, sample = set[tuple[object, ...]](), draw(25)

    def kept(planner: Planner, plan: Plan, *rest: Any) -> Draft:
        keys.add(plan.key)
        return make_draft(planner, plan, *rest)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(plans, "make_draft", kept)
        for seed in range(4):
            with drawn_plans(seed):
                KEPT.clear()
                check(sample, "vta:tiny")
    assert len(keys) >= 3


def test_plans_drawn_have_all_ways_to_run_layers() -> None:
    left = {"NoneType", "Tile", "Sized", "Blocks", "blockwise", "by rows"}

    def kept(planner: Planner, plan: Plan, *rest: Any) -> Draft:
        left.difference_update(type(each.how).__name__ for each in plan.choices)
        left.difference_update("blockwise" for _ in plan.blockwise)
        left.difference_update("by rows" for layer in planner.layers if layer.kernel.by_rows)
        return make_draft(planner, plan, *rest)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(plans, "make_draft", kept)
        for seed in (
            n for n in (71, 106, 133, 166, 306, *range(151, 371)) if n % 20 in WHOLE and left
        ):
            with drawn_plans(seed), suppress(DovetailError):
                compile(draw(seed).model, "vta:tiny")
    assert not left


def test_a_wrong_byte_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*arguments: Any) -> RunResult:
        result = run(*arguments)
        for array in result.outputs.values():
            array.reshape(-1)[:1] += 2
        return result

    monkeypatch.setattr(ready, "run", damaged)
    with pytest.raises(FoundError, match=r"1 of .* wrong"):
        check(draw(10), "cpu")


@pytest.mark.parametrize(("target", "seeds"), [("cpu", range(30, 36)), ("vta:tiny", (31,))])
def test_models_that_mean_the_same_give_the_same(
    target: str, seeds: Iterable[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    run = 0
    for seed in seeds:
        sample = draw(seed)
        with warnings.catch_warnings(), suppress(RefusedError):
            warnings.simplefilter("ignore")
            with drawn_plans(seed):
                check_related(sample, seed, target)
            run += 1
    assert run


def test_models_that_mean_the_same_do_so_to_onnx_runtime() -> None:
    kinds = set[str]()
    for seed in range(30):
        sample = draw(seed)
        nodes = related(sample, seed).model.graph.node
        kinds.update(node.op_type for node in nodes if node.output[0].startswith("same"))
        first, second = (
            compute(each.model, sample.inputs[0]) for each in (sample, related(sample, seed))
        )
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)
    assert kinds == {"Transpose", "Pad", "Slice", "Reshape", "Split", "Concat"}


def test_a_model_that_means_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = next(each for n in range(10, 99) if not _is_soft(each := draw(n)))
    model = onnx.ModelProto()
    model.CopyFrom(sample.model)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.9), "other"))
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            node.input[1] = "other"
    monkeypatch.setattr(relations, "related", lambda *_: Sample(model, sample.inputs))
    with pytest.raises(FoundError, match=r"a model that means the same: .* wrong"):
        check_related(sample, 10, "graph")


@pytest.mark.parametrize(("kind", "cuts"), [("Tanh", {"y": 1}), ("Neg", {})])
def test_what_stands_behind_a_loop_is_as_far_off_as_its_body(
    kind: str, cuts: dict[str, int]
) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]>
    m (float[2, 3] x) => (uint8[2, 3] y) <float s = {{0.01}}, uint8 z = {{128}}> {{
      t = Scan <num_scan_inputs = 1, body = b (float[3] a) => (float[3] c) {{ c = {kind} (a) }}> (x)
      y = QuantizeLinear (t, s, z)
    }}""")
    assert uncertain(Sample(model, ({"x": np.ones((2, 3), np.float32)},))) == cuts


def _is_soft(sample: Sample) -> bool:
    return any(node.op_type in SOFT for node in sample.model.graph.node)


def test_a_failing_model_is_made_small() -> None:
    def fails(sample: Sample) -> bool:
        return any(node.op_type == "Conv" for node in sample.model.graph.node)

    sample = next(each for seed in range(1, 99) if fails(each := draw(seed)))
    small = minimised(sample, fails)
    assert [node.op_type for node in small.model.graph.node] == ["Conv"]
