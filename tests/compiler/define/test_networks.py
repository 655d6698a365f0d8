"""Every fused group of light networks: a plain definition, and a kernel that is it plus a trace."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from networks import bert

from dovetail.compiler.define.group import define_group
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.graph.groups import group_nodes
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, Node
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.operators.repetition import Repeat
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.loops.work import work
from dovetail.compiler.schedule.rules.cpu.group import schedule_group
from dovetail.compiler.schedule.rules.cpu.machine import Machine
from dovetail.compiler.schedule.steps.trace import replay, to_record
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS
from dovetail.compiler.targets.cpu.native import prepared

from .test_operators import is_plain

ROOT = Path(__file__).resolve().parents[3]
MODELS = (
    *("mlperf_tiny/ic_resnet8_int8", "mlperf_tiny/ic_resnet8_fp32", "mlperf_tiny/kws_dscnn_int8"),
    *("mlperf_tiny/ad01_int8", "mlperf_tiny/vww_mbv1_int8", "mnist/mnist"),
    *("cifar/resnet20_cifar10", "ultraface/ultraface_rfb_320"),
    "mobilenet_v1/mobilenet_v1_0.25_128_uint8",
)
LEAST_WORK = 30_000
"""Work of the definitions that are interpreted: element by element, that is slow."""


def groups(model: SourceModel) -> Iterator[tuple[Graph, tuple[Node, ...]]]:
    """The groups of what the model becomes on a CPU."""
    graph, passes = prepared(model.to_graph(batch=1))
    graph = passes.run(graph)
    for nodes in group_nodes(graph):
        if not isinstance(nodes[0].operator, Reshape | Repeat):
            yield graph, nodes


def check(model: SourceModel) -> int:
    """Check all groups; the number of definitions that were interpreted."""
    seen: set[str] = set()
    interpreted, values = 0, None
    for graph, nodes in groups(model):
        definition = define_group(graph, nodes)
        text = to_text(definition.function)
        if text in seen:
            continue
        seen.add(text)
        assert is_plain(definition.function), nodes[-1].origin
        schedule = schedule_group(definition, Machine(), INTRINSICS)
        trace = json.loads(json.dumps(to_record(schedule)))
        again = replay(definition.function, trace, INTRINSICS)
        assert to_text(again.function) == to_text(schedule.function), nodes[-1].origin
        if work(definition.function) > LEAST_WORK:
            continue
        values = values or run(graph, example(graph))
        given = {
            each.name: np.asarray(values[name]).reshape(each.shape)
            for each, name in zip(definition.function.inputs, definition.inputs, strict=True)
        }
        found = interpret(definition.function, given)
        for name, result in zip(definition.outputs, found.values(), strict=True):
            expected = values[name].reshape(result.shape)
            np.testing.assert_allclose(result, expected, rtol=2e-4, atol=1e-4, err_msg=name)
        interpreted += 1
    return interpreted


def example(graph: Graph) -> dict[str, np.ndarray]:
    """Inputs of small numbers."""
    rng = np.random.default_rng(0)
    return {
        name: rng.integers(1, 3, graph.types[name].shape).astype(graph.types[name].dtype.numpy)
        for name in graph.inputs
    }


@pytest.mark.parametrize("name", MODELS, ids=lambda name: name.split("/")[1])
def test_groups_of_a_network(name: str, shared_models: Path) -> None:
    check(SourceModel.load(shared_models / f"{name}.onnx"))


def test_groups_of_digits() -> None:
    assert check(SourceModel.load(ROOT / "examples" / "digits" / "digits_int8.onnx"))


def test_groups_of_bert() -> None:
    model = bert(layers=1, tokens=5, width=24, heads=12, vocabulary=50)
    assert check(SourceModel.of(model)) > 5
