"""Small models that ask for much are compiled or refused soon, in little memory."""

import re

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.errors import CompileLimitError
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.operators.repetition import Repeat
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.limits import Budget, Limits, Watch
from dovetail.isa.errors import DovetailError

from .hostile import HOSTILE

FEW = Limits(steps=2_000, nodes=2_000, elements=1 << 18, work=1 << 25, memory_bytes=1 << 30)
REFUSED = {
    "doubling": r"node 'a\d+'.* elements of constants",
    "doubling what is dequantised": r"node 'a\d+'.*(64 GiB|elements of constants)",
    "product of large constants": r"node '[ab]\d+'.* elements of constants",
    "calls of sums": r"node '[bc]'.* 2,000 steps",
    "calls of nothing": r"node '[bc]'.* 2,000 steps",
    "known loop that grows": "node 'r'.* elements of constants",
    "loop that grows": "node 'r': a tensor of .*at most 64 GiB",
    "sparse constant": "import, constants of the model: .*elements of constants",
    "DFT": "node 'y'.* elements of constants",
    "HannWindow": "node 'y'.* elements of constants",
    "AveragePool": "node 'y'.* elements of constants",
    "RoiAlign": "node 'r'.* elements of constants",
    "Resize": "node 'y'.* elements of constants",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_model_is_compiled_or_refused_with_little(name: str) -> None:
    model = HOSTILE[name]()
    assert model.ByteSize() <= 2200
    budget, said = Budget(Watch(FEW)), ""
    try:
        SourceModel(model, budget).to_graph()
        compile(model, "cpu", CompileOptions(limits=FEW))
    except DovetailError as error:
        said = str(error)
    assert budget.steps <= FEW.steps + 1
    assert budget.elements <= FEW.elements + budget.granted
    assert re.search(REFUSED.get(name, ""), said)


def test_a_limit_that_is_raised_lets_a_model_through() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[2] x) => (float[2] y) '
        "{ a = Abs (x) b = Abs (a) y = Abs (b) }"
    )
    with pytest.raises(CompileLimitError, match=r"import, node 'y'.* 2 operators.*limits\.nodes"):
        compile(model, "cpu", CompileOptions(limits=Limits(nodes=2)))
    assert compile(model, "cpu", CompileOptions(limits=Limits(nodes=3))).parts


def test_a_small_loop_of_known_values_is_still_computed() -> None:
    model = HOSTILE["known loop"]()
    model.graph.node[1].attribute[0].t.int64_data[0] = 3
    graph = SourceModel(model).to_graph().graph
    assert not any(isinstance(node.operator, Repeat) for node in graph.nodes)
    assert run(graph, {"x": np.zeros(2, np.float32)})["y"] == 8 * (1 + 2)
