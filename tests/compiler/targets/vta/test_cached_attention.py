"""Attention of one token over a cache: heads smaller than blocks, a cache that grows in DRAM."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import calibration_steps, decoder

from dovetail.compiler import compile
from dovetail.compiler.dtypes import DType
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.assembly import Append
from dovetail.compiler.graph.operators.integer.products import RowProducts
from dovetail.compiler.graph.operators.integer.values import Lookup, Requantize, WeightedAdd
from dovetail.compiler.graph.passes.eliminate_dead import EliminateDead
from dovetail.compiler.graph.passes.integer_layers.recognition import integer_layers
from dovetail.compiler.graph.passes.simplify import simplify
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions, Overlap
from dovetail.compiler.pipeline.limits import Budget, Watch
from dovetail.compiler.targets.vta.capabilities import node_refusals
from dovetail.compiler.targets.vta.check import CheckError, check
from dovetail.compiler.targets.vta.passes.cached_attention import CachedAttention
from dovetail.compiler.targets.vta.passes.differences import DIFFERENCES
from dovetail.compiler.translation.module import validate_module
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory, Unit
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import AcceleratorPart, accelerator_part
from dovetail.runtime.module import Module
from tests.kept_costs import check_costs

TINY = find_config("tiny")
SIZES = {"width": 16, "heads": 4, "groups": 2, "vocabulary": 12}
OUTPUTS = ["logits", "new_keys", "new_values"]


def quantised(layers: int, positions: int = 8, **sizes: int) -> onnx.ModelProto:
    """A decoder, quantised by samples of its own."""
    model = decoder(layers, positions, **{**SIZES, **sizes})
    return quantize_model(model, calibration_steps(model, 6)).model


def integer_graph(model: onnx.ModelProto) -> Graph:
    """Its integer layers, and what is left of the model between them."""
    watch = Watch(CompileOptions().limits, None)
    imported = open_model(model, Budget(watch)).to_graph_and_rest(batch=1)
    assert imported is not None
    return simplify(integer_layers(imported.graph, imported.kinds).graph)


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return quantised(1)


@pytest.fixture(scope="module")
def module(model: onnx.ModelProto) -> Module:
    return compile(model, "vta:tiny", options=CompileOptions(overlap=Overlap.TILES))


def part_of(module: Module) -> AcceleratorPart:
    (part,) = (each for each in module.parts if isinstance(each, AcceleratorPart))
    return part


def counted(graph: Graph) -> Counter[str]:
    return Counter(type(node.operator).__name__ for node in graph.nodes)


@pytest.mark.parametrize(
    ("sizes", "products", "layers"),
    [
        ({}, 3, 5),
        ({"heads": 8, "groups": 2}, 3, 5),
        ({"groups": 1}, 6, 8),
        ({"width": 32}, 6, 6),
        ({"heads": 2, "groups": 1}, 6, 6),
    ],
)
def test_heads_that_fill_blocks_together_are_one_product(
    sizes: dict[str, int], products: int, layers: int
) -> None:
    """Products: scores, shares times values, and the new values as columns, for each group.

    Layers: one makes the queries, or keys, or values, of all groups.
    """
    graph = integer_graph(quantised(1, **sizes))
    found = CachedAttention(TINY.block).run(graph)
    assert counted(found)["RowProducts"] == products
    assert counted(found)["Conv2d"] == layers
    assert counted(found)["Append"] == products * 2 // 3
    sample = calibration_steps(decoder(1, 8, **{**SIZES, **sizes}), 5, seed=3)[3]
    expected, own = interpret(graph, sample), interpret(found, sample)
    for name in OUTPUTS:
        np.testing.assert_array_equal(own[name], expected[name])


def test_what_the_host_gives_in_place_of_a_layer_may_stay_outside(model: onnx.ModelProto) -> None:
    graph = integer_graph(model)
    sample = calibration_steps(decoder(1, 8, **SIZES), 5, seed=3)[3]
    known = {**sample, **interpret(graph, sample)}
    for given in (node for node in graph.nodes if isinstance(node.operator, Requantize)):
        nodes = tuple(node for node in graph.nodes if node is not given)
        rest = replace(graph, nodes=nodes, inputs=(*graph.inputs, given.output))
        found = CachedAttention(TINY.block).run(EliminateDead().run(rest))
        own = interpret(found, {name: known[name] for name in found.inputs})
        for name in OUTPUTS:
            np.testing.assert_array_equal(own[name], known[name])


def test_positions_that_fill_no_block_lie_with_the_new_row() -> None:
    graph = integer_graph(quantised(1, 6))
    found = CachedAttention(TINY.block).run(graph)
    (at, *others) = {n.operator.start for n in found.nodes if isinstance(n.operator, Append)}
    assert (at, others) == (4, [])
    sample = calibration_steps(decoder(1, 6, **SIZES), 5, seed=3)[3]
    expected, own = interpret(graph, sample), interpret(found, sample)
    for name in OUTPUTS:
        np.testing.assert_array_equal(own[name], expected[name])


def test_a_token_is_one_launch_with_the_same_bytes_everywhere(
    model: onnx.ModelProto, module: Module
) -> None:
    assert [part.target for part in module.parts] == ["cpu", "vta:tiny", "cpu"]
    check_costs(module.parts)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    reference = onnxruntime.InferenceSession(model.SerializeToString(), options)
    cpu = compile(model, "cpu")
    for sample in calibration_steps(model, 4, seed=1):
        own, simulated = (
            run(each, sample, device) for each, device in ((cpu, "cpu"), (module, "sim"))
        )
        assert simulated.cycles == part_of(module).expected_cycles
        for name, expected in zip(OUTPUTS, reference.run(OUTPUTS, sample), strict=True):
            np.testing.assert_array_equal(simulated.outputs[name], own.outputs[name])
            np.testing.assert_array_equal(simulated.outputs[name], expected)


def test_the_rtl_has_the_bytes_and_cycles_of_the_simulator(
    model: onnx.ModelProto, module: Module
) -> None:
    for sample in calibration_steps(model, 3, seed=2):
        simulated, found = (run(module, sample, device) for device in ("sim", "rtl"))
        assert found.cycles == simulated.cycles
        assert found.counters == simulated.counters
        for name in OUTPUTS:
            np.testing.assert_array_equal(found.outputs[name], simulated.outputs[name])


def test_the_program_is_the_function_of_its_layers_for_every_cache(
    model: onnx.ModelProto, module: Module
) -> None:
    watch = Watch(CompileOptions().limits, None)
    found = list(validate_module(module, open_model(model, Budget(watch))))
    assert [each.found is None for each in found] == [True, False, True]
    assert found[1].found is not None
    assert found[1].found.instructions == part_of(module).instruction_count


def test_the_new_row_is_loaded_after_it_is_stored(module: Module) -> None:
    program = accelerator_part(module).program
    check(program, TINY)
    waiting = [
        place
        for place, each in enumerate(program)
        if isinstance(each, Load) and each.memory is Memory.WGT and Unit.STORE in each.wait
    ]
    assert waiting
    wrong = list(program)
    wrong[waiting[0]] = replace(wrong[waiting[0]], wait=wrong[waiting[0]].wait - {Unit.STORE})
    with pytest.raises(CheckError):
        check(tuple(wrong), TINY)


def appended(axis: int, start: int, room: tuple[int, ...], by: tuple[int, ...]) -> GraphBuilder:
    """``whole``, ``by`` put behind ``start`` of what is given."""
    builder = GraphBuilder([], [], {}, {})
    builder.input("given", TensorType(room, DType.INT8))
    builder.input("row", TensorType(by, DType.INT8))
    builder.node(Append(axis, start), ("given", "row"), "whole", "append")
    return builder


@pytest.mark.parametrize(
    ("axis", "start", "room", "by", "reason"),
    [
        (2, 6, (1, 1, 8, 4), (1, 1, 1, 4), None),
        (3, 8, (1, 1, 4, 12), (1, 1, 4, 1), None),
        (2, 6, (1, 1, 7, 4), (1, 1, 1, 4), "required whole blocks of room"),
        (3, 6, (1, 1, 4, 8), (1, 1, 4, 1), "required whole blocks of room"),
        (3, 8, (1, 1, 4, 8), (1, 1, 4, 1), "required whole blocks of room"),
    ],
)
def test_a_row_is_put_where_blocks_have_room(
    axis: int, start: int, room: tuple[int, ...], by: tuple[int, ...], reason: str | None
) -> None:
    builder = appended(axis, start, room, by)
    channels = builder.types["whole"].shape[3]
    builder.input("x", TensorType((1, 1, 2, channels), DType.INT8))
    total = builder.node(RowProducts(0, 0), ("x", "whole"), "total", "product")
    refusal = node_refusals(builder.build((total,)), TINY.block).get(0)
    assert (refusal is None) == (reason is None)
    assert refusal is None or str(reason) in refusal.reason


def test_a_row_is_added_to_what_the_host_gives_and_layers_multiply_by() -> None:
    builder = appended(2, 6, (1, 1, 8, 4), (1, 1, 1, 4))
    square = builder.node(RowProducts(0, 0), ("whole", "whole"), "square", "square")
    reason = node_refusals(builder.build((square,)), TINY.block)[0].reason
    assert reason == "node 'append': RowProducts reads it; required weights"
    builder = GraphBuilder([], [], {}, {})
    for name, columns in (("x", 8), ("row", 1)):
        builder.input(name, TensorType((1, 1, columns, 4), DType.INT8))
    table = builder.constant("table", np.arange(-128, 128).astype(np.int8))
    made = builder.node(Lookup(), ("x", table), "made", "made")
    builder.node(Append(2, 6), (made, "row"), "whole", "append")
    refusals = node_refusals(builder.build(("whole",)), TINY.block)
    assert refusals[1].reason.endswith("which layers make; required what is given")


def test_a_difference_takes_no_table(model: onnx.ModelProto) -> None:
    graph = CachedAttention(TINY.block).run(integer_graph(model))
    found = DIFFERENCES.run(graph)
    sums = [node for node in found.nodes if isinstance(node.operator, WeightedAdd)]
    tables = [sum(isinstance(n.operator, Lookup) for n in each.nodes) for each in (graph, found)]
    assert len(sums) == tables[0] - tables[1] > 0
    assert all(min(s.operator.a_factor, s.operator.b_factor) < 0 for s in sums)
    sample = calibration_steps(model, 5, seed=4)[2]
    expected, own = interpret(graph, sample), interpret(found, sample)
    for name in OUTPUTS:
        np.testing.assert_array_equal(own[name], expected[name])


def test_a_token_is_one_launch_on_an_ecp5_with_parameters_of_rows() -> None:
    path = Path(__file__).parents[4] / "examples" / "story" / "ecp5.toml"
    model = quantised(1, 16, width=32, groups=1)
    options = CompileOptions(overlap=Overlap.TILES)
    found = compile(model, f"vta:{path}", options)
    assert [part.target for part in found.parts] == ["cpu", "vta:ecp5", "cpu"]
    (sample,) = calibration_steps(model, 1, seed=1)
    own, simulated = (run(each, sample) for each in (compile(model, "cpu"), found))
    assert simulated.cycles == part_of(found).expected_cycles
    for name in OUTPUTS:
        np.testing.assert_array_equal(simulated.outputs[name], own.outputs[name])
