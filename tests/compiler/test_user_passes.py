"""Passes of one's own: they run on every target, and are dumped and verified like the others."""

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import CompileOptions, compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.runtime import run


@dataclass(frozen=True, slots=True)
class ClipAt:
    """No requantised value above ``most``."""

    most: int
    name: str = "clip_at"

    def run(self, graph: Graph) -> Graph:
        nodes = tuple(
            replace(node, operator=replace(node.operator, high=min(node.operator.high, self.most)))
            if isinstance(node.operator, Requantize)
            else node
            for node in graph.nodes
        )
        return replace(graph, nodes=nodes)


@dataclass(frozen=True, slots=True)
class DoubleConstants:
    """Twice every float constant."""

    name: str = "double_constants"

    def run(self, graph: Graph) -> Graph:
        doubled = {}
        for name, array in graph.constants.items():
            doubled[name] = array * 2 if array.dtype == np.float32 else array
            doubled[name].setflags(write=False)
        return replace(graph, constants=MappingProxyType(doubled))


def float_model() -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product")],
        "float",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(np.ones((4, 2), np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_the_accelerator_and_the_cpu_run_the_changed_graph(digits_model: Path) -> None:
    options = CompileOptions(passes=(ClipAt(20),))
    results = []
    for target, device in (("vta:tiny", "sim"), ("cpu", "cpu")):
        plain = compile(digits_model, target=target)
        inputs = dict(random_inputs(plain))
        before = run(plain, inputs, device=device).outputs["logits"]
        after = run(compile(digits_model, target=target, options=options), inputs, device=device)
        results.append(after.outputs["logits"])
        assert not np.array_equal(before, results[-1])
    assert np.array_equal(*results)


def test_a_float_graph_is_changed() -> None:
    module = compile(
        float_model(), target="cpu", options=CompileOptions(passes=(DoubleConstants(),))
    )
    found = run(module, {"x": np.ones((1, 4), np.float32)}, device="cpu").outputs["y"]
    assert np.array_equal(found, np.full((1, 2), 8, np.float32))


@pytest.mark.parametrize("target", ["vta:tiny", "cpu"])
def test_the_graph_is_dumped_before_and_after(
    digits_model: Path, tmp_path: Path, target: str
) -> None:
    compile(digits_model, target, CompileOptions(dump=tmp_path, passes=(ClipAt(20),)))
    files = sorted(tmp_path.iterdir())
    (place,) = (n for n, path in enumerate(files) if path.name.endswith("_clip_at.txt"))
    assert "high=20" in files[place].read_text()
    assert "high=20" not in files[0].read_text()


def test_a_pass_that_breaks_the_graph_is_refused(digits_model: Path) -> None:
    @dataclass(frozen=True, slots=True)
    class DropFirst:
        name: str = "drop_first"

        def run(self, graph: Graph) -> Graph:
            return replace(graph, nodes=graph.nodes[1:])

    with pytest.raises(GraphError, match="before it is defined"):
        compile(digits_model, "vta:tiny", CompileOptions(passes=(DropFirst(),)))
